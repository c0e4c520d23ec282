//! Signals become flags that stay open among the facts until an admin closes them.

use std::collections::BTreeMap;

use policy::signal::{Severity, Signal, Source};
use policy::{AgentId, Instant, Money};

use super::Core;
use super::reply::{Refusal, Reply};
use super::row::{Row, Table};
use super::state::Flag;

impl Core {
    /// A second signal with the same id changes nothing; one that is only worth a line opens no flag.
    pub(super) fn signal_seen(&mut self, signal: &Signal) -> Reply {
        if !self.state.signals_seen.insert(signal.id.clone()) {
            return Reply::Done;
        }
        match signal.severity {
            Severity::Info => {}
            Severity::Warn | Severity::Alarm => {
                let flag = Flag {
                    agent: signal.agent.clone(),
                    source: signal.source,
                    name: signal.name.clone(),
                    severity: signal.severity,
                    count: signal.count,
                    seen_ms: signal.time_ms,
                    closed_ms: None,
                    reason: None,
                };
                self.open_flag(&signal.id, flag);
            }
        }
        Reply::Done
    }

    pub(super) fn spool_read(&mut self, spool: &str, offset: u64) -> Reply {
        self.state.spools.insert(spool.to_owned(), offset);
        Reply::Done
    }

    pub(super) fn close_flag(&mut self, now: Instant, id: &str, reason: &str) -> Reply {
        let Some(flag) = self.state.flags.get_mut(id) else {
            return Refusal::Unknown { what: format!("flag {id}") }.into();
        };
        if flag.closed_ms.is_none() {
            flag.closed_ms = Some(now);
            flag.reason = Some(reason.to_owned());
            let row = flag.row(id);
            self.out.rows.push(row);
        }
        Reply::Done
    }

    /// Income whose payer is one of ours looks like income and is none (E5).
    pub(super) fn flag_internal(&mut self, now: Instant, agent: &AgentId, key: &str, amount: Money) {
        self.announce(format!(
            "income {key} of {amount} for {agent} is internal: an agent of the platform pays"
        ));
        let id = format!("internal-income/{key}");
        self.own_flag(now, (agent, Source::Gateway), &id, ("internal_income", 1));
    }

    /// A flag that the core itself raises, once an `id`.
    pub(super) fn own_flag(
        &mut self,
        now: Instant,
        (agent, source): (&AgentId, Source),
        id: &str,
        (name, count): (&str, u64),
    ) {
        let flag = Flag {
            agent: agent.clone(),
            source,
            name: name.to_owned(),
            severity: Severity::Warn,
            count,
            seen_ms: now,
            closed_ms: None,
            reason: None,
        };
        if self.state.signals_seen.insert(id.to_owned()) {
            self.open_flag(id, flag);
        }
    }

    /// The flags that are open against an agent, as its facts list them: one line a kind, with how often.
    pub fn open_flags(&self, agent: &AgentId) -> Vec<String> {
        let mut kinds: BTreeMap<(Source, &str), u64> = BTreeMap::new();
        let open = self.state.flags.values().filter(|flag| flag.agent == *agent && flag.closed_ms.is_none());
        for flag in open {
            let count = kinds.entry((flag.source, &flag.name)).or_default();
            *count = count.saturating_add(flag.count);
        }
        kinds
            .iter()
            .map(|((source, name), count)| format!("{name} ({}), {count} times", word(*source)))
            .collect()
    }

    /// Every flag, open or closed, by its signal's id.
    pub fn flags(&self) -> impl Iterator<Item = (&str, &Flag)> {
        self.state.flags.iter().map(|(id, flag)| (id.as_str(), flag))
    }

    /// How far a spool has been read, in bytes.
    pub fn spool_offset(&self, spool: &str) -> u64 {
        self.state.spools.get(spool).copied().unwrap_or(0)
    }

    fn open_flag(&mut self, id: &str, flag: Flag) {
        self.out.rows.push(flag.row(id));
        self.state.flags.insert(id.to_owned(), flag);
    }
}

impl Flag {
    fn row(&self, id: &str) -> Row {
        let severity = match self.severity {
            Severity::Info => "info",
            Severity::Warn => "warn",
            Severity::Alarm => "alarm",
        };
        Row::new(
            Table::Flags,
            [
                id.into(),
                self.agent.as_str().into(),
                word(self.source).into(),
                self.name.as_str().into(),
                severity.into(),
                self.count.into(),
                self.seen_ms.into(),
                self.closed_ms.into(),
                self.reason.as_deref().into(),
            ],
        )
    }
}

const fn word(source: Source) -> &'static str {
    match source {
        Source::Netd => "netd",
        Source::Proxy => "proxy",
        Source::Gateway => "gateway",
        Source::Judge => "judge",
    }
}
