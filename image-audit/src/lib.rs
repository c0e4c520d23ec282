//! image-audit
