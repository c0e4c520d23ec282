//! Crafted images through the whole auditor. Names such as E4 are rows of the table of evasions.

mod archives;
mod command;
mod craft;
mod engines;
mod evasions;
mod folders;
mod human;
mod robust;
mod sources;
