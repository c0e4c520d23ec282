//! When the next cull is, and what happens at midnight (E12, E13).

use std::collections::BTreeSet;

use policy::{AgentId, Instant};
use serde::Serialize;

use super::state::Due;
use super::{Core, Fault};

/// The next cull.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct NextCull {
    /// Its instant, stored: a clock that moves back never fires one twice.
    pub at_ms: Instant,
    /// Who has been warned of it.
    pub warned: BTreeSet<AgentId>,
    /// The instant of the next look at who must be warned.
    pub warning_ms: Instant,
}

impl Core {
    /// Sets the next cull to `at`, with its first warning.
    pub(super) fn schedule_cull(&mut self, now: Instant, at: Instant) {
        let old = self.state.next_cull.warning_ms;
        self.state.due.remove(&(old, Due::Warning));
        let warning_ms = at.plus_ms(-self.state.settings.schedule.warning_ms).max(now);
        self.state.next_cull = NextCull { at_ms: at, warned: BTreeSet::new(), warning_ms };
        self.due_at(warning_ms, Due::Warning);
    }
}

// Temporary seam until the cull lands.
impl Core {
    pub(super) fn midnight(&mut self, at: Instant, _now: Instant) -> Result<(), Fault> {
        self.due_at(at.plus_ms(policy::time::DAY_MS), Due::Midnight);
        self.close_day(at)
    }
}
