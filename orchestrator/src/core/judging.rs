//! judging
