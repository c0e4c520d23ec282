//! When the next cull is, its warnings, and what happens at midnight (E12, E13).

use std::collections::BTreeSet;

use policy::economy::schedule::Due as CullDue;
use policy::economy::standing;
use policy::time::DAY_MS;
use policy::{AgentId, Instant};
use serde::Serialize;

use super::docket::{DocketKind, DocketState};
use super::input::DocketId;
use super::state::{Due, Event};
use super::{Core, Fault};

/// The next cull.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct NextCull {
    /// Its instant, stored: a clock that moves back never fires one twice.
    pub at_ms: Instant,
    /// Its docket, in which it goes from `scheduled` to `done`.
    pub docket: DocketId,
    /// Who has been warned of it.
    pub warned: BTreeSet<AgentId>,
    /// The instant of the next look at who must be warned.
    pub warning_ms: Instant,
}

impl Core {
    /// Sets up the cull after the last one.
    pub(super) fn schedule_cull(&mut self, now: Instant, at: Instant) {
        let docket = self.new_docket(DocketKind::Cull, at);
        self.set_cull(now, docket, at);
    }

    /// Closes the day, then runs the cull if it is its instant: one journal position.
    pub(super) fn midnight(&mut self, at: Instant, now: Instant) -> Result<(), Fault> {
        self.due_at(at.plus_ms(DAY_MS), Due::Midnight);
        self.close_day(at)?;
        if self.state.next_cull.at_ms == at { self.cull_due(now) } else { Ok(()) }
    }

    /// Of several missed only the latest runs, and only if it is at most a day late.
    fn cull_due(&mut self, now: Instant) -> Result<(), Fault> {
        let next = self.state.next_cull.at_ms;
        match self.rules.schedule.due(next, now) {
            CullDue::NotYet => Ok(()),
            CullDue::Run { at, .. } if at == next && self.is_unwarned(now) => {
                self.postpone(now, "nobody could be warned of it: the host was down")
            }
            CullDue::Run { at, .. } if at == next => self.run_cull(at, now),
            CullDue::Run { at, .. } => self.skip_to(now, at),
            CullDue::Postpone { at, .. } => {
                if at != next {
                    self.skip_to(now, at)?;
                }
                self.postpone(now, &format!("it was due at {at}, and it is more than a day late"))
            }
        }
    }

    /// Records every cull before `at` as skipped; that of `at` is due at its own midnight.
    fn skip_to(&mut self, now: Instant, at: Instant) -> Result<(), Fault> {
        while self.state.next_cull.at_ms < at {
            let (docket, missed) = (self.state.next_cull.docket, self.state.next_cull.at_ms);
            let skipped = self.docket_mut(docket)?;
            skipped.state = DocketState::Skipped;
            "the host was down, and a later cull was missed too".clone_into(&mut skipped.note);
            self.announce(format!("the cull of {missed} is skipped: the host was down"));
            self.schedule_cull(now, missed.plus_ms(self.rules.cull.period_ms()));
        }
        Ok(())
    }

    /// Puts the next cull off to the first midnight that is at least the warning's time away, and warns again.
    pub(super) fn postpone(&mut self, now: Instant, why: &str) -> Result<(), Fault> {
        let docket = self.state.next_cull.docket;
        let earliest = now.plus_ms(self.state.settings.schedule.warning_ms);
        let midnight = earliest.midnight();
        let at = if midnight == earliest { midnight } else { midnight.plus_ms(DAY_MS) };
        self.set_cull(now, docket, at);
        let postponed = self.docket_mut(docket)?;
        postponed.at_ms = at;
        postponed.state = DocketState::Postponed;
        why.clone_into(&mut postponed.note);
        self.announce(format!("the cull is postponed to {at}: {why}"));
        self.warn_all(now);
        Ok(())
    }

    /// Looks who would be condemned and has not been told (E12).
    pub(super) fn warn(&mut self, now: Instant) -> Result<(), Fault> {
        let settings = &self.state.settings.schedule;
        let left = self.state.next_cull.at_ms.since_ms(now);
        let docket = self.state.next_cull.docket;
        let first = self.state.dockets.get(&docket).is_some_and(|next| next.state == DocketState::Scheduled);
        let (least, strict, step) = (settings.warning_least_ms, settings.strict, settings.warning_step_ms);
        if left <= 0 {
            // The cull itself is due too, and knows what to do about it.
            return Ok(());
        }
        if first && left < least && !strict && !self.to_warn(now).is_empty() {
            return self.postpone(now, "its warnings would have come too late");
        }
        if first {
            self.docket_mut(docket)?.state = DocketState::Warned;
        }
        self.warn_all(now);
        let again = now.plus_ms(step);
        if again < self.state.next_cull.at_ms {
            self.state.next_cull.warning_ms = again;
            self.due_at(again, Due::Warning);
        }
        Ok(())
    }

    /// Whether there are agents that the cull would take unwarned, and that counts (E12).
    fn is_unwarned(&self, now: Instant) -> bool {
        let docket = self.state.dockets.get(&self.state.next_cull.docket);
        let never = docket.is_some_and(|next| next.state == DocketState::Scheduled);
        never && !self.state.settings.schedule.strict && !self.to_warn(now).is_empty()
    }

    fn warn_all(&mut self, now: Instant) {
        let at = self.state.next_cull.at_ms;
        for (id, sentence) in self.to_warn(now) {
            let hours = at.since_ms(now) / policy::time::HOUR_MS;
            let text = format!("Warning: the next cull is at {at}, in {hours} hours. {sentence}");
            if let Some(agent) = self.state.agents.get_mut(&id) {
                agent.events.push(Event::platform(text));
            }
            self.announce(format!("{id} is warned of the cull of {at}"));
            self.state.wanting.insert(id.clone());
            self.state.next_cull.warned.insert(id);
        }
    }

    /// Who would be condemned with the figures of `now`, at the cull's own instant, and has not been told.
    fn to_warn(&self, now: Instant) -> Vec<(AgentId, String)> {
        let figures = self.cull_figures(self.period(now));
        let standings = standing::standings(self.state.next_cull.at_ms, &self.rules.cull, &figures);
        let new = |id: &AgentId| !self.state.next_cull.warned.contains(id);
        standings
            .into_iter()
            .filter(|(id, stands)| stands.is_condemned() && new(id))
            .map(|(id, stands)| (id, stands.sentence(&self.rules.cull)))
            .collect()
    }

    fn set_cull(&mut self, now: Instant, docket: DocketId, at: Instant) {
        let old = self.state.next_cull.warning_ms;
        self.state.due.remove(&(old, Due::Warning));
        let warning_ms = at.plus_ms(-self.state.settings.schedule.warning_ms).max(now);
        self.state.next_cull = NextCull { at_ms: at, docket, warned: BTreeSet::new(), warning_ms };
        self.due_at(warning_ms, Due::Warning);
    }
}
