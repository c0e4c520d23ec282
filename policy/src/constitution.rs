//! The rules that the gateway puts before every model call (E30).
