//! The deterministic machine: `Core::step(now, input) -> Step`.

pub mod effect;
pub mod input;
pub mod reply;
pub mod settings;
