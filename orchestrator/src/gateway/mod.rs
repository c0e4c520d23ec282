//! The gateway: every model call passes here and is paid (G1 to G11).

pub mod request;
pub mod shape;
pub mod usage;
