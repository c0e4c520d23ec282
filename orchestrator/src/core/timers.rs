//! What is due at an instant that is known beforehand, in the order of instants.

use policy::Instant;
use policy::time::DAY_MS;

use super::state::Due;
use super::{Core, Fault};

impl Core {
    /// The timers that every platform starts with.
    pub(super) fn first_dues(&mut self, now: Instant) {
        let midnight = now.midnight().plus_ms(DAY_MS);
        self.due_at(midnight, Due::Midnight);
        self.due_at(midnight.plus_ms(self.state.settings.log.digest_at_ms), Due::Digest);
        let first = self.rules.schedule.next_after(now);
        self.schedule_cull(now, first);
    }

    /// Does whatever was due by `now`; says whether anything was.
    pub(super) fn run_due(&mut self, now: Instant) -> Result<bool, Fault> {
        let mut any = false;
        while let Some((at, due)) = self.take_due(now) {
            any = true;
            self.run_one(at, due, now)?;
        }
        Ok(any)
    }

    fn take_due(&mut self, now: Instant) -> Option<(Instant, Due)> {
        if self.next_due()? > now {
            return None;
        }
        self.state.due.pop_first()
    }

    /// Money moves, and days end, at the instant at which they were due; what people must still have time for
    /// (an appeal, a warning) counts from `now`.
    fn run_one(&mut self, at: Instant, due: Due, now: Instant) -> Result<(), Fault> {
        match due {
            Due::Midnight => self.midnight(at, now),
            Due::Clears(id) => self.income_clears(at, id),
            Due::CallLimit(call) => self.call_limit(at, &call),
            Due::EpisodeLimit(episode) => {
                self.stop_episode(episode, "its time is up");
                Ok(())
            }
            Due::LastEpisode(docket, agent) => self.start_last_episode(now, docket, &agent),
            Due::AppealsClose(docket) => self.close_appeals(now, docket),
            Due::JudgeRetry(docket, batch) => self.ask_again(now, docket, batch),
            Due::HoldWindow(docket) => self.execute(now, docket),
            Due::Warning => self.warn(now),
            Due::Digest => self.digest_due(at),
            Due::Wake(agent) => {
                self.wake_by_schedule(now, agent);
                Ok(())
            }
            Due::Again(agent) => {
                self.wake_again(agent);
                Ok(())
            }
        }
    }
}
