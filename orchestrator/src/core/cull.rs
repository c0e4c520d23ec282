//! cull
