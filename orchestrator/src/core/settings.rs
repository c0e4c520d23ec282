//! The economy's settings, journalled with the genesis row. Every default stands here, once.

use serde::{Deserialize, Serialize};

/// Settings of the economy; what is left out takes its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {}
