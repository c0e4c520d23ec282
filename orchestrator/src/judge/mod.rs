//! The judge's shell: seeded dice, and the JSON that its commands speak.
//!
//! What goes in and what may come out is decided in [`policy::judge`]; nothing here looks at a text.

pub mod dice;
pub mod document;

pub use dice::SeededDice;
