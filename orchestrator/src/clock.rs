//! The clock of the control plane: the host's, or a simulated one that runs faster (the demo's).
//!
//! Neither ever runs backwards, and both go on from the journal's last instant.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as HostInstant, SystemTime, UNIX_EPOCH};

use policy::Instant;

/// The longest that the ticker sleeps: a host clock that is set forward is noticed within it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// How fast simulated time runs, in simulated milliseconds a real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// While an episode, a call or a question is open.
    pub busy: u32,
    /// While nothing is.
    pub idle: u32,
    /// The longest real time that an idle wait takes before time jumps to what is due.
    pub idle_max: Duration,
}

/// Tells what time it is for the core; clones tell the same.
#[derive(Debug, Clone)]
pub struct Clock {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    /// Never less than this.
    floor: Instant,
    pace: Option<Pace>,
}

/// Simulated time: `base`, and `rate` times what has passed since `since`, but never beyond `limit`.
#[derive(Debug)]
struct Pace {
    rates: Rates,
    base: Instant,
    since: HostInstant,
    busy: bool,
    limit: Option<Instant>,
}

impl Clock {
    /// The host's clock.
    pub fn real() -> Self {
        Self { shared: Arc::new(Mutex::new(Shared { floor: Instant::from_ms(i64::MIN), pace: None })) }
    }

    /// Simulated time from `start` on, as soon as an engine has it. It stands still at whatever is due until that
    /// is done, so that nothing is late by the speed alone.
    pub fn accelerated(start: Instant, rates: Rates) -> Self {
        let pace = Pace { rates, base: start, since: HostInstant::now(), busy: true, limit: Some(start) };
        Self { shared: Arc::new(Mutex::new(Shared { floor: start, pace: Some(pace) })) }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.with(Shared::now)
    }

    /// Whether it is simulated time: whoever shows an instant of it says so.
    pub fn is_simulated(&self) -> bool {
        self.with(|shared| shared.pace.is_some())
    }

    /// How long to wait, on the host, until `due`. By the host's clock at most a second: then ask again. By a
    /// simulated one the whole wait, for an idle one jumps at its end.
    pub fn until(&self, due: Option<Instant>) -> Duration {
        self.with(|shared| shared.until(due))
    }

    /// Time goes on from `last` at the earliest.
    pub(crate) fn resume(&self, last: Instant) {
        self.with(|shared| shared.rise_to(last));
    }

    /// Tells a simulated clock whether anything is open, and what it must not run past.
    pub(crate) fn pace(&self, busy: bool, limit: Option<Instant>) {
        self.with(|shared| {
            let now = shared.now();
            if let Some(pace) = &mut shared.pace {
                (pace.base, pace.since) = (now, HostInstant::now());
                (pace.busy, pace.limit) = (busy, limit);
            }
        });
    }

    /// The wait for `due` is over: an idle simulated clock jumps there.
    pub(crate) fn arrive(&self, due: Instant) {
        self.with(|shared| {
            if shared.pace.as_ref().is_some_and(|pace| !pace.busy) {
                shared.rise_to(due);
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Shared) -> T) -> T {
        // Nothing in here can panic half-way: a poisoned lock still holds whole values.
        act(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn now(&mut self) -> Instant {
        let read = match &self.pace {
            None => host_now(),
            Some(pace) => pace.read(),
        };
        self.floor = self.floor.max(read);
        self.floor
    }

    fn rise_to(&mut self, last: Instant) {
        self.floor = self.floor.max(last);
        if let Some(pace) = &mut self.pace {
            (pace.base, pace.since) = (pace.base.max(last), HostInstant::now());
        }
    }

    fn until(&mut self, due: Option<Instant>) -> Duration {
        let now = self.now();
        let Some(due) = due else { return SLEEP_MAX };
        let left = Duration::from_millis(u64::try_from(due.since_ms(now)).unwrap_or(0));
        match &self.pace {
            None => left.min(SLEEP_MAX),
            Some(pace) if pace.busy => left / pace.rates.busy.max(1),
            Some(pace) => (left / pace.rates.idle.max(1)).min(pace.rates.idle_max),
        }
    }
}

impl Pace {
    fn read(&self) -> Instant {
        let rate = if self.busy { self.rates.busy } else { self.rates.idle };
        let passed = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let run = self.base.plus_ms(passed.saturating_mul(i64::from(rate)) / 1_000);
        // What is due by now holds time back, but never makes it run backwards.
        self.limit.map_or(run, |limit| run.min(limit.max(self.base)))
    }
}

fn host_now() -> Instant {
    let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Instant::from_ms(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_ms(1_000_000);

    fn rates() -> Rates {
        Rates { busy: 1_000, idle: 1_000_000, idle_max: Duration::from_millis(5) }
    }

    #[test]
    fn simulated_time_stands_still_at_what_is_due() {
        let clock = Clock::accelerated(START, rates());
        assert_eq!(clock.now(), START);
        clock.pace(false, Some(START.plus_ms(10)));
        while clock.now() < START.plus_ms(10) {
            std::thread::yield_now();
        }
        assert_eq!(clock.now(), START.plus_ms(10));
        clock.pace(false, Some(START));
        assert_eq!(clock.now(), START.plus_ms(10));
    }

    #[test]
    fn idle_time_jumps_and_busy_time_does_not() {
        let clock = Clock::accelerated(START, rates());
        let due = START.plus_ms(policy::time::DAY_MS);
        clock.pace(false, Some(due));
        assert!(clock.until(Some(due)) <= Duration::from_millis(5));
        clock.pace(true, Some(due));
        clock.arrive(due);
        assert!(clock.now() < due);
        clock.pace(false, Some(due));
        clock.arrive(due);
        assert_eq!(clock.now(), due);
    }

    #[test]
    fn an_idle_clock_waits_as_long_as_it_was_told_before_it_jumps() {
        let patient = Rates { busy: 1, idle: 1, idle_max: Duration::from_hours(1) };
        let clock = Clock::accelerated(START, patient);
        let due = START.plus_ms(policy::time::DAY_MS);
        clock.pace(false, Some(due));
        assert_eq!(clock.until(Some(due)), patient.idle_max);
    }

    #[test]
    fn no_clock_runs_back_behind_the_journal() {
        for clock in [Clock::real(), Clock::accelerated(START, rates())] {
            let far = Instant::from_ms(9_000_000_000_000);
            clock.resume(far);
            assert!(clock.now() >= far);
        }
    }

    #[test]
    fn only_the_accelerated_clock_is_simulated() {
        assert!(!Clock::real().is_simulated());
        assert!(Clock::accelerated(START, rates()).is_simulated());
    }
}
