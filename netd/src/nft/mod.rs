//! `nf_tables` over one netlink socket that owns its table.
//!
//! Rules come from [`policy::confinement::Ruleset`] and from nowhere else; what is in force is read back by
//! dump and compared expression by expression. Nothing that somebody else put there is read: it is counted.

mod expression;
mod table;

pub(crate) use table::{Table, TableError};
