//! The spool of signals: one JSON object a line, appended, bounded.
//!
//! A flood must fill neither the disk nor the reader: of one class and agent [`LINES_MAX`] lines are written a
//! minute; the rest of the minute is one line with its count. The kernel's counters stay exact all the while.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use policy::confinement::{Attempt, Class};
use policy::signal::{Detail, Severity, Signal, Source};
use policy::{AgentId, Instant as Moment};

use crate::lines::Lines;

/// How long one window of counting lasts.
const WINDOW: Duration = Duration::from_mins(1);
/// Lines of one class and agent that one window writes.
const LINES_MAX: u32 = 30;
/// One part in so many of the spool's size takes alarms alone.
const ALARMS_PART: u64 = 8;

struct Window {
    began: Instant,
    lines: u32,
    held: u64,
    first_held: Moment,
}

/// What is to be written, but for whose it is.
struct Seen<'n> {
    name: &'n str,
    severity: Severity,
    time_ms: Moment,
    count: u64,
    detail: BTreeMap<String, Detail>,
}

impl<'n> Seen<'n> {
    fn now(name: &'n str, severity: Severity, detail: BTreeMap<String, Detail>) -> Self {
        Self { name, severity, time_ms: wall_clock(), count: 1, detail }
    }
}

/// The open spool.
pub(crate) struct Spool {
    file: Lines<File>,
    bytes_max: u64,
    run: u64,
    written: u64,
    kept_out: u64,
    alarms_kept_out: bool,
    windows: BTreeMap<(AgentId, Class), Window>,
}

/// The wall clock, in the one form that signals have.
pub(crate) fn wall_clock() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Spool {
    /// Over an open file. `run` tells this netd's ids from those of every other.
    pub(crate) fn new(file: File, bytes_max: u64, run: u64) -> Self {
        Self {
            file: Lines::new(file),
            bytes_max,
            run,
            written: 0,
            kept_out: 0,
            alarms_kept_out: false,
            windows: BTreeMap::new(),
        }
    }

    /// One refused packet.
    pub(crate) fn attempt(&mut self, agent: &AgentId, class: Class, attempt: Option<&Attempt>, now: Instant) {
        let window = self.windows.entry((agent.clone(), class)).or_insert(Window {
            began: now,
            lines: 0,
            held: 0,
            first_held: wall_clock(),
        });
        if window.lines >= LINES_MAX {
            if window.held == 0 {
                window.first_held = wall_clock();
            }
            window.held += 1;
            return;
        }
        window.lines += 1;
        let detail = attempt.map(detail).unwrap_or_default();
        self.write(agent, Seen::now(class.name(), class.severity(), detail));
    }

    /// Something about the watch itself.
    pub(crate) fn note(
        &mut self,
        agent: &AgentId,
        name: &str,
        severity: Severity,
        detail: &[(&str, Detail)],
    ) {
        let detail = detail.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        self.write(agent, Seen::now(name, severity, detail));
    }

    /// Ends the windows that are over; says how long until the next one is.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Duration> {
        let over = |window: &Window| now.saturating_duration_since(window.began) >= WINDOW;
        let ended: Vec<_> = self.windows.extract_if(.., |_, window| over(window)).collect();
        for ((agent, class), window) in ended {
            self.sum_up(&agent, class, &window);
        }
        let left = |window: &Window| WINDOW.saturating_sub(now.saturating_duration_since(window.began));
        self.windows.values().map(left).min()
    }

    /// Ends all windows of an agent.
    pub(crate) fn forget(&mut self, agent: &AgentId) {
        let ended: Vec<_> = self.windows.extract_if(.., |(whose, _), _| whose == agent).collect();
        for ((agent, class), window) in ended {
            self.sum_up(&agent, class, &window);
        }
    }

    fn sum_up(&mut self, agent: &AgentId, class: Class, window: &Window) {
        if window.held > 0 {
            let detail = [("summed_up".to_owned(), Detail::Flag(true))].into();
            let seen = Seen::now(class.name(), class.severity(), detail);
            self.write(agent, Seen { time_ms: window.first_held, count: window.held, ..seen });
        }
    }

    fn write(&mut self, agent: &AgentId, seen: Seen<'_>) {
        self.written += 1;
        let Seen { name, severity, time_ms, count, detail } = seen;
        let id = format!("netd-{:x}-{}", self.run, self.written);
        let (agent, name) = (agent.clone(), name.to_owned());
        let signal = Signal { time_ms, id, source: Source::Netd, agent, name, severity, count, detail };
        if let Err(error) = self.append(&signal) {
            crate::say(&format!("cannot write a signal to the spool: {error}"));
        }
    }

    /// Whether a signal of this weight may still be written: the last part of the spool is kept for alarms, so that
    /// a flood of lesser signals does not hide them.
    fn has_room(&mut self, severity: Severity) -> std::io::Result<bool> {
        let shared_max = self.bytes_max - self.bytes_max / ALARMS_PART;
        let is_alarm = severity == Severity::Alarm;
        // Asked every time: whoever reads the spool may cut it.
        let size = self.file.sink().metadata()?.len();
        let has_room = size < if is_alarm { self.bytes_max } else { shared_max };
        if size < shared_max && self.kept_out > 0 {
            crate::say(&format!("the spool has room again: {} signals were lost", self.kept_out));
            (self.kept_out, self.alarms_kept_out) = (0, false);
        }
        if has_room {
            return Ok(true);
        }
        if is_alarm && !self.alarms_kept_out {
            crate::say("the spool has its full size: alarms are lost too until it is made smaller");
            self.alarms_kept_out = true;
        } else if self.kept_out == 0 {
            crate::say("the spool is full but for alarms: other signals are lost until it is made smaller");
        }
        self.kept_out += 1;
        Ok(false)
    }

    fn append(&mut self, signal: &Signal) -> std::io::Result<()> {
        if !self.has_room(signal.severity)? {
            return Ok(());
        }
        let mut line = serde_json::to_vec(signal)?;
        line.push(b'\n');
        // In one call, so that a reader never sees half a line of a living netd.
        if let Some(news) = self.file.write(&line).news("signals to the spool") {
            crate::say(&news);
        }
        Ok(())
    }
}

fn detail(attempt: &Attempt) -> BTreeMap<String, Detail> {
    let protocol = match attempt.protocol {
        Some(1) => Detail::Text("icmp".to_owned()),
        Some(6) => Detail::Text("tcp".to_owned()),
        Some(17) => Detail::Text("udp".to_owned()),
        Some(58) => Detail::Text("icmpv6".to_owned()),
        Some(number) => Detail::Number(i64::from(number)),
        None => Detail::Text("unknown".to_owned()),
    };
    let mut detail: BTreeMap<String, Detail> = [
        ("protocol".to_owned(), protocol),
        ("address".to_owned(), Detail::Text(attempt.destination.to_string())),
    ]
    .into();
    if let Some(port) = attempt.port {
        detail.insert("port".to_owned(), Detail::Number(i64::from(port)));
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    fn attempt() -> Attempt {
        Attempt { destination: "9.9.9.9".parse().unwrap(), protocol: Some(6), port: Some(443) }
    }

    fn lines(file: &mut File) -> Vec<Signal> {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_flood_is_bounded_and_its_count_is_exact() {
        let mut file = tempfile::tempfile().unwrap();
        let mut spool = Spool::new(file.try_clone().unwrap(), 1 << 20, 7);
        let agent = AgentId::parse("a").unwrap();
        let start = Instant::now();
        for _ in 0..1000 {
            spool.attempt(&agent, Class::DirectAttempt, Some(&attempt()), start);
        }
        spool.attempt(&agent, Class::MetadataProbe, Some(&attempt()), start);
        assert_eq!(spool.settle(start), Some(WINDOW));
        assert_eq!(spool.settle(start + WINDOW), None);
        let all = lines(&mut file);
        let flood: Vec<_> = all.iter().filter(|signal| signal.name == "direct_attempt").collect();
        assert_eq!(flood.len(), 31);
        assert_eq!(flood.iter().map(|signal| signal.count).sum::<u64>(), 1000);
        assert_eq!(all.iter().filter(|signal| signal.name == "metadata_probe").count(), 1);
        let ids: std::collections::BTreeSet<_> = all.iter().map(|signal| &signal.id).collect();
        assert_eq!(ids.len(), all.len(), "an id came twice");
    }

    #[test]
    fn a_full_spool_grows_no_more_and_goes_on_when_it_is_cut() {
        let mut file = tempfile::tempfile().unwrap();
        let mut spool = Spool::new(file.try_clone().unwrap(), 10, 7);
        let agent = AgentId::parse("a").unwrap();
        for _ in 0..3 {
            spool.attempt(&agent, Class::DirectAttempt, None, Instant::now());
        }
        assert_eq!(lines(&mut file).len(), 1);
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        spool.attempt(&agent, Class::DirectAttempt, None, Instant::now());
        assert_eq!(lines(&mut file).len(), 1);
    }

    #[test]
    fn a_spool_full_of_lesser_signals_still_takes_alarms_up_to_its_size() {
        let mut file = tempfile::tempfile().unwrap();
        let mut spool = Spool::new(file.try_clone().unwrap(), 8000, 7);
        let agent = AgentId::parse("a").unwrap();
        let mut flood = |severity: Severity| {
            for _ in 0..100 {
                spool.note(&agent, "flood", severity, &[]);
            }
            let all = lines(&mut file);
            all.iter().filter(|signal| signal.severity == severity).count()
        };
        let (warnings, alarms) = (flood(Severity::Warn), flood(Severity::Alarm));
        assert!(warnings > 10 && (1..100).contains(&alarms), "{warnings} warnings, {alarms} alarms");
        assert_eq!(flood(Severity::Warn), warnings);
        assert!(file.metadata().unwrap().len() < 8000 + 200);
    }
}
