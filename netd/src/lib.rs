//! netd
