//! execution
