//! The frame of the judge: what goes in and what may come out (J1 to J16).
//!
//! The judge scores and never decides; [`crate::economy::quota`] does. Everything that an agent wrote reaches it,
//! and other agents, through [`sanitise`] alone.

pub mod dice;
pub mod facts;
pub mod formula;
pub mod frame;
pub mod json;
mod look_alikes;
pub mod mask;
mod phrases;
pub mod prompt;
pub mod quote;
pub mod reader;
pub mod reparse;
pub mod sanitise;
mod style;

pub use dice::Dice;
pub use facts::Facts;
