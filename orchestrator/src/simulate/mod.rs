//! The simulator: the same core on a virtual clock, with stand-in agents and a stand-in judge (E31 to E35).

pub mod outcome;
