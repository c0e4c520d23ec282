//! start-up
fn main() {}
