//! What must be true after a run, each from evidence that was not made for it.

use std::collections::{BTreeMap, BTreeSet};

use policy::economy::cull::{CullRules, CullSettings, Figures, LifeState, cull};
use policy::economy::quota::{self, QuotaRules, QuotaSettings};
use policy::judge::formula::formula;
use policy::judge::frame::APPEAL_CHARS_MAX;
use policy::judge::reparse;
use policy::judge::sanitise::sanitise;
use policy::signal::Source;
use policy::time::DAY_MS;
use policy::{Instant, Money};
use serde::Serialize;

use super::cast::{CAST, Kind};
use super::evidence::{Case, Docket, Evidence, ProxyLine};
use super::files::{BORN, FIRST_CULL, HOST_ADDRESS};
use super::witness::Sighting;
use super::world::{LIBRARY, MARKET};

/// One thing that must be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether it is.
    pub held: bool,
    /// With which figures.
    pub detail: String,
}

/// A check.
pub fn check(name: &'static str, held: bool, detail: impl Into<String>) -> Check {
    Check { name, held, detail: detail.into() }
}

/// What a run was, as far as it says what must be true after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// It was long enough for the first cull.
    pub cull: bool,
    /// A model scored, so that no formula fits.
    pub live_judge: bool,
}

/// All checks over what a run left behind.
pub fn all(evidence: &Evidence, scope: Scope) -> Vec<Check> {
    let mut checks = vec![born(evidence)];
    if scope.cull {
        checks.extend([starved_apart(evidence), idle_condemned(evidence), within_quota(evidence)]);
        checks.extend([decided_by_code(evidence), frame_held(evidence), tricks_seen(evidence)]);
        checks.extend([silence_is_no_appeal(evidence), deaths_published(evidence)]);
    }
    if scope.cull && !scope.live_judge {
        checks.extend([words_moved_nothing(evidence), quota_chose(evidence)]);
    }
    checks.extend([books(evidence), purses(evidence), income_booked_once(evidence)]);
    checks.push(reports_of_every_midnight(evidence));
    checks.extend([only_allowed_hosts(evidence), no_refused_name_looked_up(evidence)]);
    checks.extend([world_saw_the_proxy_alone(evidence), runaway_was_seen(evidence)]);
    checks.extend([prober_was_refused(evidence), workers_raised_nothing(evidence)]);
    checks
}

fn of_kind(kind: Kind) -> impl Iterator<Item = &'static str> {
    CAST.iter().filter(move |member| member.kind == kind).map(|member| member.id)
}

fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn is_first_cull(docket: &Docket) -> bool {
    docket.kind == "cull" && docket.at_ms == FIRST_CULL.ms()
}

fn first_cull(evidence: &Evidence) -> Option<&Docket> {
    evidence.dockets.iter().find(|docket| is_first_cull(docket))
}

fn cases_of(evidence: &Evidence, docket: i64) -> Vec<&Case> {
    evidence.cases.iter().filter(|case| case.docket == docket).collect()
}

fn born(evidence: &Evidence) -> Check {
    let wanted: BTreeSet<&str> = CAST.iter().map(|member| member.id).collect();
    let found: BTreeSet<&str> = evidence.agents.iter().map(|agent| agent.agent.as_str()).collect();
    let young = evidence.agents.iter().filter(|agent| agent.born_ms - BORN.ms() > DAY_MS / 2 - 1).count();
    let held = wanted == found && young == 0;
    check("twelve agents were born", held, format!("{} agents, {young} of them too late", found.len()))
}

fn starved_apart(evidence: &Evidence) -> Check {
    let dockets: Vec<&Docket> =
        evidence.dockets.iter().filter(|docket| docket.kind == "starvation").collect();
    let whose: Vec<&str> = dockets
        .iter()
        .flat_map(|docket| cases_of(evidence, docket.docket))
        .map(|case| case.agent.as_str())
        .collect();
    let before = dockets.iter().all(|docket| docket.at_ms < FIRST_CULL.ms());
    let held = before && whose == of_kind(Kind::Starver).collect::<Vec<_>>();
    check(
        "the starving agent had a docket of its own",
        held,
        format!("starved before the cull: {}", list(whose)),
    )
}

/// The cull, worked out again from the ledger's postings.
fn idle_condemned(evidence: &Evidence) -> Check {
    const NAME: &str = "the cull condemned exactly those under the line";
    let (Some(docket), Ok(rules)) = (first_cull(evidence), CullRules::parse(CullSettings::default())) else {
        return check(NAME, false, "there was no cull");
    };
    let income = evidence.income_between(docket.at_ms - rules.period_ms(), docket.at_ms);
    let figures: Vec<Figures<&str>> = evidence
        .agents
        .iter()
        .map(|agent| Figures {
            id: agent.agent.as_str(),
            created: u64::try_from(agent.created).unwrap_or(0),
            born: Instant::from_ms(agent.born_ms),
            state: if agent.died_ms.is_some_and(|died| died < docket.at_ms) {
                LifeState::Dead
            } else {
                LifeState::Alive
            },
            exempt: false,
            paused: false,
            period_income: income.get(&agent.agent).copied().unwrap_or(Money::ZERO),
            period_costs: Money::ZERO,
            lifetime_profit: Money::ZERO,
        })
        .collect();
    let expected = cull(Instant::from_ms(docket.at_ms), &rules, &figures);
    let condemned: BTreeSet<&str> =
        cases_of(evidence, docket.docket).into_iter().map(|case| case.agent.as_str()).collect();
    let held = condemned == expected.idle.iter().copied().collect() && !expected.performance_ran;
    let detail =
        format!("{} eligible, {} idle: {}", expected.eligible.len(), expected.idle.len(), list(condemned));
    check(NAME, held, detail)
}

fn within_quota(evidence: &Evidence) -> Check {
    let mut told = Vec::new();
    let mut held = first_cull(evidence).is_some();
    for docket in evidence.dockets.iter().filter(|docket| !cases_of(evidence, docket.docket).is_empty()) {
        let appellants = evidence.appellants(docket.docket).count();
        // ceil(0.25 × appellants), written out beside the rule that it checks.
        let most = appellants.div_ceil(4);
        let reprieved = cases_of(evidence, docket.docket)
            .into_iter()
            .filter(|case| case.decision.as_deref() == Some("reprieved"))
            .count();
        held &= reprieved <= most && docket.state == "done";
        told.push(format!(
            "docket {}: {reprieved} of {appellants} appellants, at most {most}",
            docket.docket
        ));
    }
    check("no docket spared more than its quota", held, told.join("; "))
}

fn decided_by_code(evidence: &Evidence) -> Check {
    const NAME: &str = "every decision is what the rule makes of the judgements";
    let Ok(rules) = QuotaRules::parse(QuotaSettings::default()) else {
        return check(NAME, false, "there is no rule");
    };
    let numbers: BTreeMap<&str, (i64, i64)> =
        evidence.agents.iter().map(|agent| (agent.agent.as_str(), (agent.created, agent.born_ms))).collect();
    let mut wrong = Vec::new();
    let mut compared = 0_usize;
    for docket in &evidence.dockets {
        let appellants: Vec<quota::Appellant<&str>> = evidence
            .appellants(docket.docket)
            .filter_map(|case| {
                let (created, born_ms) = numbers.get(case.agent.as_str())?;
                let facts = case.facts.as_ref()?;
                Some(quota::Appellant {
                    id: case.agent.as_str(),
                    created: u64::try_from(*created).ok()?,
                    born: Instant::from_ms(*born_ms),
                    promise: u32::try_from(case.promise?).ok()?,
                    lifetime_profit: facts.lifetime_profit_nano,
                    reprieves: facts.reprieves,
                })
            })
            .collect();
        let decided = quota::decide(&appellants, &rules);
        for case in cases_of(evidence, docket.docket) {
            compared += 1;
            let reprieved = decided
                .decisions
                .iter()
                .any(|one| one.id == case.agent && one.decision == quota::Decision::Reprieved);
            if reprieved != (case.decision.as_deref() == Some("reprieved")) || case.decision.is_none() {
                wrong.push(case.agent.as_str());
            }
        }
    }
    let held = wrong.is_empty() && compared > 0;
    check(NAME, held, format!("{compared} decisions worked out again; different: {}", list(wrong)))
}

fn frame_held(evidence: &Evidence) -> Check {
    let broken = evidence.asked.iter().filter(|asked| reparse::docket(&asked.user).is_err()).count();
    let held = broken == 0 && !evidence.asked.is_empty();
    let detail = format!("{} frames read back strictly, {broken} broken", evidence.asked.len());
    check("no appeal broke out of the judge's frame", held, detail)
}

fn tricks_seen(evidence: &Evidence) -> Check {
    const NAME: &str = "the frame breaker's tricks are seen as such";
    let forged = evidence.cases.iter().find(|case| of_kind(Kind::FrameBreaker).any(|id| id == case.agent));
    let Some(appeal) = forged.and_then(|case| case.appeal.as_deref()) else {
        return check(NAME, false, "there is no appeal of its");
    };
    let (_clean, report) = sanitise(appeal, APPEAL_CHARS_MAX);
    let held = report.dropped() > 0 && report.folded() > 0 && !report.phrases.is_empty();
    let detail = format!(
        "{} hidden characters dropped, {} look-alikes folded, phrases: {}",
        report.dropped(),
        report.folded(),
        list(report.phrases)
    );
    check(NAME, held, detail)
}

fn silence_is_no_appeal(evidence: &Evidence) -> Check {
    let silent: Vec<&Case> =
        evidence.cases.iter().filter(|case| of_kind(Kind::Silent).any(|id| id == case.agent)).collect();
    let denied = |case: &&Case| case.appeal.is_none() && case.decision.as_deref() == Some("denied");
    let held = !silent.is_empty() && silent.iter().all(denied);
    check("who submits no appeal is no appellant", held, format!("{} silent, denied uncounted", silent.len()))
}

fn words_moved_nothing(evidence: &Evidence) -> Check {
    let judged = evidence.cases.iter().filter_map(|case| Some((case, case.facts.as_ref()?, case.promise?)));
    let judged: Vec<_> = judged.filter(|(case, ..)| case.appeal.is_some()).collect();
    let moved: Vec<&str> = judged
        .iter()
        .filter(|(_, facts, promise)| i64::from(formula(facts).promise) != *promise)
        .map(|(case, ..)| case.agent.as_str())
        .collect();
    let held = moved.is_empty() && !judged.is_empty();
    let detail =
        format!("{} promises equal the formula over the facts; different: {}", judged.len(), list(moved));
    check("every score of the stand-in judge follows from the facts alone", held, detail)
}

/// By the formula one more passes the floor than the quota has places.
fn quota_chose(evidence: &Evidence) -> Check {
    let turned_away: Vec<&str> = evidence
        .cases
        .iter()
        .filter(|case| {
            case.why.as_deref() == Some("over_quota") && case.promise.is_some_and(|promise| promise >= 40)
        })
        .map(|case| case.agent.as_str())
        .collect();
    let held = !turned_away.is_empty();
    check("the quota turned away who had passed the floor", held, list(turned_away))
}

fn books(evidence: &Evidence) -> Check {
    let sum: i128 = evidence.postings.iter().map(|posting| i128::from(posting.amount_nano)).sum();
    let mut balances: BTreeMap<&str, i128> = BTreeMap::new();
    for posting in &evidence.postings {
        *balances.entry(posting.account.as_str()).or_default() += i128::from(posting.amount_nano);
    }
    let differ = evidence.accounts.iter().filter(|account| {
        balances.get(account.account.as_str()).copied().unwrap_or(0) != i128::from(account.posted_nano)
    });
    let differ: Vec<&str> = differ.map(|account| account.account.as_str()).collect();
    let held = sum == 0 && differ.is_empty() && !evidence.postings.is_empty();
    let detail =
        format!("{} postings sum to {sum}; balances that differ: {}", evidence.postings.len(), list(differ));
    check("the books sum to zero", held, detail)
}

fn purses(evidence: &Evidence) -> Check {
    let mut balances: BTreeMap<&str, i128> = BTreeMap::new();
    let mut below = BTreeSet::new();
    for posting in evidence.postings.iter().filter(|posting| posting.account.starts_with("agent/")) {
        let balance = balances.entry(posting.account.as_str()).or_default();
        *balance += i128::from(posting.amount_nano);
        if *balance < 0 {
            below.insert(posting.account.as_str());
        }
    }
    check(
        "no purse was ever below zero",
        below.is_empty(),
        format!("below zero at some time: {}", list(below)),
    )
}

/// Every payment that the control plane acknowledged is in the ledger once, and nothing else is.
///
/// One whose acknowledgement was lost (the control plane was stopped) may be booked: it was announced.
fn income_booked_once(evidence: &Evidence) -> Check {
    let (mut announced, mut acknowledged, mut times) = (BTreeMap::new(), BTreeSet::new(), 0_usize);
    for sighting in &evidence.world {
        if let Sighting::Announced { id, amount_nano, status, .. } = sighting {
            times += 1;
            announced.insert(id.as_str(), *amount_nano);
            if (200..300).contains(status) {
                acknowledged.insert(id.as_str());
            }
        }
    }
    let booked: Vec<(&str, i64)> = evidence
        .postings
        .iter()
        .filter(|posting| posting.kind == "income" && posting.amount_nano > 0)
        .map(|posting| (posting.reference.as_str(), posting.amount_nano))
        .collect();
    let ids: BTreeSet<&str> = booked.iter().map(|(id, _)| *id).collect();
    let once = ids.len() == booked.len() && acknowledged.is_subset(&ids);
    let held = once && !booked.is_empty() && booked.iter().all(|(id, nano)| announced.get(id) == Some(nano));
    let detail = format!("{} payments announced {times} times, {} booked", announced.len(), booked.len());
    check("income is booked once, however often it is announced", held, detail)
}

fn deaths_published(evidence: &Evidence) -> Check {
    let dead: BTreeMap<&str, i64> = evidence
        .agents
        .iter()
        .filter(|agent| agent.state == "dead")
        .map(|agent| (agent.agent.as_str(), 1))
        .collect();
    let mut told: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in evidence.log.iter().filter(|entry| entry.kind.ends_with("death_report")) {
        *told.entry(entry.agent.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let held = dead == told && !dead.is_empty();
    let detail = format!("dead: {}; published: {}", list(dead.into_keys()), list(told.into_keys()));
    check("one death report for each of the dead, none for anyone else", held, detail)
}

fn reports_of_every_midnight(evidence: &Evidence) -> Check {
    let mut wrong = Vec::new();
    for agent in &evidence.agents {
        let end = agent.died_ms.unwrap_or(evidence.last_ms);
        let first = Instant::from_ms(agent.born_ms).midnight().ms() + DAY_MS;
        let midnights = (first..=end).step_by(usize::try_from(DAY_MS).unwrap_or(usize::MAX)).count();
        let reports = evidence.log.iter().filter(|entry| {
            entry.agent.as_deref() == Some(&agent.agent)
                && matches!(entry.kind.as_str(), "report" | "no_report")
        });
        if reports.count() != midnights {
            wrong.push(agent.agent.as_str());
        }
    }
    let held = wrong.is_empty() && !evidence.log.is_empty();
    check("every midnight has a report of every living agent", held, format!("missing: {}", list(wrong)))
}

fn is_allowed(line: &ProxyLine) -> bool {
    line.verdict == "allow"
}

fn only_allowed_hosts(evidence: &Evidence) -> Check {
    let reached: BTreeSet<&str> = evidence
        .proxy
        .iter()
        .filter(|line| is_allowed(line))
        .filter_map(|line| line.host.as_deref())
        .collect();
    let held = reached == BTreeSet::from([LIBRARY, MARKET]);
    check(
        "agents reached the two allowed sites and nothing else",
        held,
        format!("reached: {}", list(reached)),
    )
}

fn no_refused_name_looked_up(evidence: &Evidence) -> Check {
    let asked: BTreeSet<&str> = evidence
        .world
        .iter()
        .filter_map(|sighting| match sighting {
            Sighting::Query { name, .. } => Some(name.as_str()),
            Sighting::Connection { .. }
            | Sighting::Request { .. }
            | Sighting::Announced { .. }
            | Sighting::Stray { .. } => None,
        })
        .collect();
    let refused = evidence.proxy.iter().filter(|line| !is_allowed(line)).count();
    let held = asked == BTreeSet::from([LIBRARY, MARKET]) && refused > 0;
    let detail = format!("{refused} refusals; names that reached the name server: {}", list(asked));
    check("no refused name was ever looked up", held, detail)
}

fn world_saw_the_proxy_alone(evidence: &Evidence) -> Check {
    let host = HOST_ADDRESS.to_string();
    let (mut from_proxy, mut others) = (0_usize, 0_usize);
    for sighting in &evidence.world {
        match sighting {
            Sighting::Connection { from, .. } if *from == host => from_proxy += 1,
            Sighting::Connection { .. } | Sighting::Stray { .. } => others += 1,
            Sighting::Query { .. } | Sighting::Request { .. } | Sighting::Announced { .. } => {}
        }
    }
    let dialled = evidence.proxy.iter().filter(|line| line.dialled.is_some()).count();
    let held = others == 0 && from_proxy == dialled && dialled > 0;
    let detail = format!("{from_proxy} connections seen, {dialled} dialled by the proxy, {others} others");
    check("the world saw the proxy's connections and no other packet", held, detail)
}

fn runaway_was_seen(evidence: &Evidence) -> Check {
    let drops: u64 = evidence
        .signals
        .iter()
        .filter(|signal| {
            signal.source == Source::Netd && of_kind(Kind::Runaway).any(|id| id == signal.agent.as_str())
        })
        .map(|signal| signal.count)
        .sum();
    let flags: BTreeSet<&str> = evidence
        .flags
        .iter()
        .filter(|(agent, _, source, _)| source == "netd" && of_kind(Kind::Runaway).any(|id| id == agent))
        .map(|(_, name, ..)| name.as_str())
        .collect();
    let held = drops > 0 && !flags.is_empty();
    check(
        "who went round the proxy was refused and seen",
        held,
        format!("{drops} packets; flags: {}", list(flags)),
    )
}

fn prober_was_refused(evidence: &Evidence) -> Check {
    let of_prober = |line: &&ProxyLine| of_kind(Kind::Prober).any(|id| id == line.agent);
    let refused = evidence.proxy.iter().filter(of_prober).filter(|line| !is_allowed(line)).count();
    let opened = evidence.proxy.iter().filter(of_prober).filter(|line| is_allowed(line)).count();
    let names: BTreeSet<&str> = evidence
        .signals
        .iter()
        .filter(|signal| {
            signal.source == Source::Proxy && of_kind(Kind::Prober).any(|id| id == signal.agent.as_str())
        })
        .map(|signal| signal.name.as_str())
        .collect();
    let held = refused >= 15 && opened == 0 && names.contains("ip_literal") && names.contains("deny_burst");
    check(
        "who asked for what is not allowed was refused and seen",
        held,
        format!("{refused} refusals; signals: {}", list(names)),
    )
}

/// The allow twin of the two before: honest work raises nothing.
fn workers_raised_nothing(evidence: &Evidence) -> Check {
    let warned: BTreeSet<&str> = evidence
        .signals
        .iter()
        .filter(|signal| signal.severity > policy::signal::Severity::Info)
        .map(|signal| signal.agent.as_str())
        .filter(|agent| of_kind(Kind::Earner).any(|id| id == *agent))
        .collect();
    let worked = evidence
        .proxy
        .iter()
        .filter(|line| is_allowed(line))
        .filter(|line| of_kind(Kind::Earner).any(|id| id == line.agent));
    let worked = worked.count();
    let held = warned.is_empty() && worked > 0;
    check(
        "honest work raised no flag",
        held,
        format!("{worked} tunnels of earners; flagged: {}", list(warned)),
    )
}
