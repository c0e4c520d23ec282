//! What a confinement lets through: the ruleset as a value.
