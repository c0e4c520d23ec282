//! The last screen of a run: tables and paragraphs over its evidence.

use std::collections::{BTreeMap, BTreeSet};

use policy::judge::frame::APPEAL_CHARS_MAX;
use policy::judge::sanitise::sanitise;
use policy::time::DAY_MS;
use policy::{Instant, Money};
use serde_json::{Value, json};

use super::checks::Check;
use super::evidence::{Agent, Case, Docket, Evidence};
use super::screen::Screen;

/// Names of the five dimensions, as in the judge's answer.
const DIMENSIONS: [&str; 5] = ["traction", "plan", "cost_discipline", "learning", "risk"];

/// How often each host was asked for.
type Tally = BTreeMap<String, usize>;

/// Shows everything, but for the checks.
pub fn show(evidence: &Evidence, screen: Screen) {
    for docket in evidence.dockets.iter().filter(|docket| docket.kind == "cull") {
        if evidence.cases.iter().any(|case| case.docket == docket.docket) {
            cull_table(evidence, docket, screen);
        }
    }
    for docket in &evidence.dockets {
        judgements(evidence, docket, screen);
    }
    endings(evidence, screen);
    hosts(evidence, screen);
    signals(evidence, screen);
}

fn short(at_ms: i64) -> String {
    Instant::from_ms(at_ms).to_string().chars().take(16).collect()
}

/// Each agent's figures of the period, those under the line below it.
fn cull_table(evidence: &Evidence, docket: &Docket, screen: Screen) {
    screen.heading(&format!("cull of {}", short(docket.at_ms)));
    let start = docket.at_ms - 10 * DAY_MS;
    let income = evidence.income_between(start, docket.at_ms);
    let condemned: BTreeMap<&str, &Case> = evidence
        .cases
        .iter()
        .filter(|case| case.docket == docket.docket)
        .map(|case| (case.agent.as_str(), case))
        .collect();
    let mut agents: Vec<(&Agent, Money)> = evidence
        .agents
        .iter()
        .filter(|agent| agent.died_ms.is_none_or(|died| died >= docket.at_ms))
        .map(|agent| (agent, income.get(&agent.agent).copied().unwrap_or(Money::ZERO)))
        .collect();
    agents.sort_by(|(one, earned), (other, more)| more.cmp(earned).then(one.created.cmp(&other.created)));
    let row = |(agent, earned): &(&Agent, Money)| {
        let case = condemned.get(agent.agent.as_str());
        let costs = evidence.costs_between(&agent.agent, start, docket.at_ms);
        vec![
            agent.agent.clone(),
            earned.to_string(),
            costs.to_string(),
            case.map_or_else(|| "passes".to_owned(), |case| format!("condemned: {}", case.reason)),
            case.and_then(|case| case.decision.clone()).unwrap_or_default(),
        ]
    };
    let head = ["agent", "income", "costs", "at the cull", "after the appeal"].map(str::to_owned).to_vec();
    let (over, under): (Vec<_>, Vec<_>) =
        agents.iter().partition(|(agent, _)| !condemned.contains_key(agent.agent.as_str()));
    let line = vec!["--- the line ---".to_owned(), Money::DOLLAR.to_string()];
    let rows =
        [head].into_iter().chain(over.into_iter().map(row)).chain([line]).chain(under.into_iter().map(row));
    screen.table(&rows.collect::<Vec<_>>());
    let appellants = evidence.appellants(docket.docket).count();
    let reprieved = condemned.values().filter(|case| case.decision.as_deref() == Some("reprieved")).count();
    screen.line(&format!(
        "  {} condemned, {appellants} appellants, at most {} reprieved (a quarter, rounded up), {reprieved} reprieved",
        condemned.len(),
        appellants.div_ceil(4)
    ));
}

fn judgements(evidence: &Evidence, docket: &Docket, screen: Screen) {
    let cases: Vec<&Case> = evidence.cases.iter().filter(|case| case.docket == docket.docket).collect();
    if cases.is_empty() {
        return;
    }
    screen.heading(&format!(
        "judgements of docket {} ({}, {})",
        docket.docket,
        docket.kind,
        short(docket.at_ms)
    ));
    let scores = scores_of(evidence, docket.docket);
    for case in cases {
        judgement(case, scores.get(&case.agent), screen);
    }
}

fn judgement(case: &Case, scores: Option<&Value>, screen: Screen) {
    let decision = case.decision.as_deref().unwrap_or("undecided");
    let why = case.why.as_deref().unwrap_or("-").replace('_', " ");
    let promise = case.promise.map_or_else(|| "none".to_owned(), |promise| promise.to_string());
    let dimensions = scores.map(|scores| {
        let one =
            |name: &&str| scores.get(*name).and_then(Value::as_u64).map(|score| format!("{name} {score}"));
        DIMENSIONS.iter().filter_map(one).collect::<Vec<_>>().join(", ")
    });
    screen.line(&format!("  {}: {decision} ({why}); promise {promise}", case.agent));
    if let Some(dimensions) = dimensions.filter(|text| !text.is_empty()) {
        screen.line(&format!("      scores: {dimensions}"));
    }
    if let Some(reasoning) = &case.reasoning {
        screen.paragraph("      ", &format!("Anubis: {reasoning}"));
    }
    match &case.appeal {
        None => screen.line("      no appeal: no appellant, and not counted in the quota"),
        Some(appeal) => tricks(appeal, screen),
    }
}

/// What the sanitiser found in an appeal, if anything.
fn tricks(appeal: &str, screen: Screen) {
    let (clean, report) = sanitise(appeal, APPEAL_CHARS_MAX);
    let tags = appeal.matches('<').count() + appeal.matches('{').count();
    if report.dropped() + report.folded() + report.phrases.len() == 0 && tags == 0 {
        return;
    }
    let phrases = if report.phrases.is_empty() { "none".to_owned() } else { report.phrases.join(", ") };
    screen.line(&format!(
        "      sanitiser: {} hidden characters dropped, {} look-alikes folded, {tags} tags and braces made text, \
         phrases: {phrases}",
        report.dropped(),
        report.folded()
    ));
    let shown: String = clean.as_str().chars().take(160).collect();
    screen.paragraph("      ", &format!("the judge read: \"{}...\"", shown.replace('\n', " / ")));
}

/// The judge's scores by agent, from what the strict reader made of its answers; the last answer counts.
fn scores_of(evidence: &Evidence, docket: i64) -> BTreeMap<String, Value> {
    let mut scores = BTreeMap::new();
    for asked in evidence.asked.iter().filter(|asked| asked.docket == docket) {
        let read: Vec<(String, String, Value)> = serde_json::from_str(&asked.read).unwrap_or_default();
        scores.extend(read.into_iter().map(|(_label, agent, score)| (agent, score)));
    }
    scores
}

fn endings(evidence: &Evidence, screen: Screen) {
    screen.heading("deaths and reprieves, as the work log has them");
    for entry in &evidence.log {
        if matches!(entry.kind.as_str(), "death_report" | "no_death_report" | "reprieve") {
            let whose = entry.agent.as_deref().unwrap_or("-");
            screen.line(&format!("  {}  {}  {whose}", short(entry.at_ms), entry.kind.replace('_', " ")));
            screen.paragraph("      ", &entry.text);
            if let Some(figures) = &entry.figures {
                screen.paragraph("      ", figures);
            }
        }
    }
}

fn hosts(evidence: &Evidence, screen: Screen) {
    screen.heading("hosts, from the proxy's log");
    let mut seen: BTreeMap<&str, (Tally, Tally)> = BTreeMap::new();
    for line in &evidence.proxy {
        let (reached, refused) = seen.entry(line.agent.as_str()).or_default();
        let side = if line.verdict == "allow" { reached } else { refused };
        *side.entry(line.host.clone().unwrap_or_else(|| "(malformed)".to_owned())).or_default() += 1;
    }
    for agent in &evidence.agents {
        let Some((reached, refused)) = seen.get(agent.agent.as_str()) else {
            screen.line(&format!("  {}: asked for nothing", agent.agent));
            continue;
        };
        screen.line(&format!("  {}", agent.agent));
        for (what, side) in [("reached", reached), ("refused", refused)] {
            if !side.is_empty() {
                let hosts: Vec<String> =
                    side.iter().map(|(host, times)| format!("{host} x{times}")).collect();
                screen.paragraph("      ", &format!("{what}: {}", hosts.join(", ")));
            }
        }
    }
}

fn signals(evidence: &Evidence, screen: Screen) {
    screen.heading("signals");
    let mut seen: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for signal in &evidence.signals {
        let names = seen.entry(signal.agent.as_str()).or_default();
        *names.entry(signal.name.clone()).or_default() += signal.count;
    }
    for (agent, name, source, count) in evidence.flags.iter().filter(|(.., source, _)| !is_spooled(source)) {
        let names = seen.entry(agent.as_str()).or_default();
        *names.entry(format!("{name} ({source})")).or_default() += u64::try_from(*count).unwrap_or(0);
    }
    for (agent, names) in &seen {
        let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} x{count}")).collect();
        screen.line(&format!("  {agent}: {}", names.join(", ")));
    }
    let flagged: BTreeSet<&str> = evidence.flags.iter().map(|(agent, ..)| agent.as_str()).collect();
    screen.line(&format!("  open flags against: {}", flagged.into_iter().collect::<Vec<_>>().join(", ")));
}

fn is_spooled(source: &str) -> bool {
    matches!(source, "netd" | "proxy")
}

/// The summary for programs.
pub fn summary(evidence: &Evidence, checks: &[Check], wall_ms: u128) -> Value {
    let dockets = evidence.dockets.iter().map(|docket| {
        let cases = evidence.cases.iter().filter(|case| case.docket == docket.docket);
        let cases = cases.map(|case| {
            json!({
                "agent": case.agent, "reason": case.reason, "promise": case.promise,
                "decision": case.decision, "why": case.why, "rank": case.rank, "appealed": case.appeal.is_some(),
            })
        });
        json!({
            "docket": docket.docket, "kind": docket.kind, "at_ms": docket.at_ms, "state": docket.state,
            "cases": cases.collect::<Vec<_>>(),
        })
    });
    let agents = evidence.agents.iter().map(|agent| {
        json!({
            "agent": agent.agent, "state": agent.state, "reprieves": agent.reprieves,
            "lifetime_income_nano": agent.lifetime_income_nano, "lifetime_costs_nano": agent.lifetime_costs_nano,
        })
    });
    json!({
        "held": checks.iter().all(|check| check.held),
        "checks": checks,
        "dockets": dockets.collect::<Vec<_>>(),
        "agents": agents.collect::<Vec<_>>(),
        "last_ms": evidence.last_ms,
        "wall_ms": u64::try_from(wall_ms).unwrap_or(u64::MAX),
    })
}
