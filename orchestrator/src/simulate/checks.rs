//! What must hold after every event (E32), worked out from the rows that people read, beside the core's own books.
//!
//! Transfers are added up here a second time, income and costs too; a full look at the core's ledger comes at every
//! midnight and every so many events. Nothing here can change what the core does.

use std::collections::{BTreeMap, BTreeSet};

use policy::time::DAY_MS;
use policy::{AgentId, Instant};

use super::outcome::CheckOutcome;
use crate::core::docket::{Docket, DocketState};
use crate::core::input::{DocketId, Input};
use crate::core::reply::Reply;
use crate::core::row::{Cell, Row, Table};
use crate::core::state::Life;
use crate::core::{Core, Step};

/// What is checked; the order is that of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    Conservation,
    NobodyBelowZero,
    QuotaKept,
    OneReportADeath,
    CondemnedResolved,
    ReportsAtMidnight,
    GrantsNeverIncome,
    NoCullTwice,
    SameKeySameAnswer,
    ReplaySameState,
}

impl Check {
    const ALL: [Self; 10] = [
        Self::Conservation,
        Self::NobodyBelowZero,
        Self::QuotaKept,
        Self::OneReportADeath,
        Self::CondemnedResolved,
        Self::ReportsAtMidnight,
        Self::GrantsNeverIncome,
        Self::NoCullTwice,
        Self::SameKeySameAnswer,
        Self::ReplaySameState,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Conservation => "conservation",
            Self::NobodyBelowZero => "nobody_below_zero",
            Self::QuotaKept => "every_quota_kept",
            Self::OneReportADeath => "one_report_a_death_none_a_reprieve",
            Self::CondemnedResolved => "every_condemned_agent_resolved",
            Self::ReportsAtMidnight => "every_midnight_a_report_for_every_living_agent",
            Self::GrantsNeverIncome => "grants_never_income",
            Self::NoCullTwice => "no_cull_twice",
            Self::SameKeySameAnswer => "same_key_same_answer",
            Self::ReplaySameState => "replay_same_state",
        }
    }
}

/// A full look at the core's own books comes each so many events, besides every midnight.
const FULL_EVERY: u64 = 5_000;
/// How long after its deadline a docket may take where nothing goes wrong, beyond its hold window.
const ALLOWANCE_MS: i64 = DAY_MS / 2;
/// What outages of the host and the judge may add where they are made.
const FAULT_ALLOWANCE_MS: i64 = 4 * DAY_MS;

/// One agent as the rows tell of it.
#[derive(Debug, Default)]
struct Shadow {
    born_ms: i64,
    living: bool,
    dead: bool,
    income_nano: i64,
    costs_nano: i64,
    /// Income that was taken back while it lived: less income, or a cost.
    reversed_nano: i64,
    death_reports: u32,
}

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Checks {
    broken: BTreeMap<Check, Instant>,
    books: BTreeMap<String, i64>,
    posted: BTreeMap<String, i64>,
    sum: i128,
    agents: BTreeMap<String, Shadow>,
    /// Income by its key, for what may be taken back; kept only where faults are made.
    incomes: Option<BTreeMap<String, (String, i64)>>,
    open: BTreeSet<DocketId>,
    culls: BTreeMap<Instant, DocketId>,
    next_midnight: Instant,
    allowance_ms: i64,
    events: u64,
    full_at: u64,
}

/// What one step's rows tell of the work log.
#[derive(Debug, Default)]
struct Published {
    reports: BTreeMap<i64, BTreeSet<String>>,
    twice: bool,
    dead: BTreeSet<String>,
    reprieved: BTreeSet<String>,
    agents: BTreeSet<String>,
    dockets: BTreeSet<DocketId>,
}

impl Checks {
    pub(super) fn new(start: Instant, faults: bool) -> Self {
        Self {
            broken: BTreeMap::new(),
            books: BTreeMap::new(),
            posted: BTreeMap::new(),
            sum: 0,
            agents: BTreeMap::new(),
            incomes: faults.then(BTreeMap::new),
            open: BTreeSet::new(),
            culls: BTreeMap::new(),
            next_midnight: start.midnight().plus_ms(DAY_MS),
            allowance_ms: if faults { FAULT_ALLOWANCE_MS } else { ALLOWANCE_MS },
            events: 0,
            full_at: FULL_EVERY,
        }
    }

    /// Looks at what one step did.
    pub(super) fn after(&mut self, core: &Core, now: Instant, (input, step): (&Input, &Step)) {
        self.events += 1;
        self.reversal(input, step);
        let mut published = Published::default();
        for row in &step.rows {
            self.row(now, row, &mut published);
        }
        self.hold(Check::Conservation, self.sum == 0, now);
        self.deaths(now, &published);
        for agent in &published.agents {
            let same = self.agents.get(agent).is_some_and(|told| told.agrees(core, agent));
            self.hold(Check::GrantsNeverIncome, same, now);
        }
        for docket in &published.dockets {
            self.docket(core, now, *docket);
        }
        if core.last_instant() >= self.next_midnight {
            self.midnights(core, &published);
            self.full(core, now);
        } else if self.events >= self.full_at {
            self.full_at = self.events + FULL_EVERY;
            self.full(core, now);
        }
        self.hold(Check::ReportsAtMidnight, !published.twice, now);
    }

    /// Notes whether something held.
    pub(super) fn hold(&mut self, check: Check, held: bool, now: Instant) {
        if !held {
            self.broken.entry(check).or_insert(now);
        }
    }

    /// Whether a docket is still open.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// What held, with a last full look.
    pub(super) fn outcome(mut self, core: &Core, now: Instant) -> Vec<CheckOutcome> {
        self.full(core, now);
        let outcome = |check: Check| CheckOutcome {
            name: check.word().to_owned(),
            held: !self.broken.contains_key(&check),
            first_broken_ms: self.broken.get(&check).copied(),
        };
        Check::ALL.into_iter().map(outcome).collect()
    }

    /// Income that is taken back is less income or a cost, of an agent that lives.
    fn reversal(&mut self, input: &Input, step: &Step) {
        let Input::ReverseIncome { income, .. } = input else { return };
        if !step.changed || step.reply != Reply::Done {
            return;
        }
        let known = self.incomes.as_mut().and_then(|incomes| incomes.remove(income));
        if let Some((agent, amount)) = known
            && let Some(shadow) = self.agents.get_mut(&agent).filter(|shadow| !shadow.dead)
        {
            shadow.reversed_nano += amount;
        }
    }

    fn row(&mut self, now: Instant, row: &Row, published: &mut Published) {
        match row.table {
            Table::Transfers => self.transfer(row),
            Table::Accounts => self.account(now, row),
            Table::Agents => {
                let id = text(row, 0).to_owned();
                let shadow = self.agents.entry(id.clone()).or_default();
                shadow.born_ms = int(row, 3);
                shadow.living = matches!(text(row, 4), "alive" | "condemned");
                if text(row, 4) == "dead" {
                    shadow.dead = true;
                    published.dead.insert(id.clone());
                }
                published.agents.insert(id);
            }
            Table::WorkLog => self.entry(row, published),
            Table::Dockets => {
                published.dockets.insert(u64::try_from(int(row, 0)).unwrap_or(0));
            }
            Table::Cases | Table::Judgements | Table::Flags => {}
        }
    }

    fn transfer(&mut self, row: &Row) {
        let (debit, credit, amount, kind) = (text(row, 2), text(row, 3), int(row, 4), text(row, 5));
        add(&mut self.books, debit, -amount);
        add(&mut self.books, credit, amount);
        let of = |account: &str| account.strip_prefix("agent/").map(str::to_owned);
        match kind {
            "income" => {
                if let Some(agent) = of(credit) {
                    if let Some(incomes) = &mut self.incomes {
                        incomes.insert(text(row, 6).to_owned(), (agent.clone(), amount));
                    }
                    self.agents.entry(agent).or_default().income_nano += amount;
                }
            }
            "call" => {
                if let Some(agent) = of(debit) {
                    self.agents.entry(agent).or_default().costs_nano += amount;
                }
            }
            _ => {}
        }
    }

    fn account(&mut self, now: Instant, row: &Row) {
        let (account, posted, held) = (text(row, 0), int(row, 1), int(row, 2));
        let before = self.posted.get(account).copied().unwrap_or(0);
        self.sum += i128::from(posted) - i128::from(before);
        self.hold(Check::Conservation, self.books.get(account).copied().unwrap_or(0) == posted, now);
        let may_owe = account.starts_with("income/") || matches!(account, "shortfall" | "external");
        self.hold(Check::NobodyBelowZero, held >= 0 && (may_owe || posted >= held), now);
        if let Some(known) = self.posted.get_mut(account) {
            *known = posted;
        } else {
            self.posted.insert(account.to_owned(), posted);
        }
    }

    fn entry(&mut self, row: &Row, published: &mut Published) {
        let (at, kind, agent) = (int(row, 1), text(row, 2), text(row, 3).to_owned());
        match kind {
            "report" | "no_report" => {
                published.twice |= !published.reports.entry(at).or_default().insert(agent);
            }
            "death_report" | "no_death_report" => {
                self.agents.entry(agent.clone()).or_default().death_reports += 1;
                published.dead.insert(agent);
            }
            "reprieve" => {
                published.reprieved.insert(agent);
            }
            _ => {}
        }
    }

    fn deaths(&mut self, now: Instant, published: &Published) {
        let once = |shadow: &Shadow| shadow.death_reports == 1 && !shadow.living;
        let dead = published.dead.iter().all(|agent| self.agents.get(agent).is_some_and(once));
        let none = |shadow: &Shadow| shadow.death_reports == 0;
        let reprieved = published.reprieved.iter().all(|agent| self.agents.get(agent).is_some_and(none));
        self.hold(Check::OneReportADeath, dead && reprieved, now);
    }

    /// Every midnight that the step has closed told of every agent that lived through it.
    fn midnights(&mut self, core: &Core, published: &Published) {
        while self.next_midnight <= core.last_instant() {
            let at = self.next_midnight;
            let told = published.reports.get(&at.ms());
            let all = self
                .agents
                .iter()
                .filter(|(_, shadow)| shadow.living && shadow.born_ms < at.ms())
                .all(|(agent, _)| told.is_some_and(|told| told.contains(agent)));
            self.hold(Check::ReportsAtMidnight, all, at);
            self.next_midnight = at.plus_ms(DAY_MS);
        }
    }

    fn docket(&mut self, core: &Core, now: Instant, id: DocketId) {
        let Some(docket) = core.docket(id).filter(|docket| docket.condemned_ms.is_some()) else { return };
        if docket.kind == crate::core::docket::DocketKind::Cull {
            let first = *self.culls.entry(docket.at_ms).or_insert(id);
            let newest = self.culls.last_key_value().is_some_and(|(_, newest)| *newest >= id);
            self.hold(Check::NoCullTwice, first == id && newest, now);
        }
        if docket.state >= DocketState::Decided && docket.state <= DocketState::Done {
            self.hold(Check::QuotaKept, quota_kept(core, docket), now);
        }
        if docket.state == DocketState::Done {
            self.open.remove(&id);
            let resolved = docket.cases.iter().all(|(agent, case)| {
                let dead = matches!(core.life(agent), Some(Life::Dead { .. }));
                case.done && dead != case.is_reprieved()
            });
            self.hold(Check::CondemnedResolved, resolved, now);
        } else {
            self.open.insert(id);
        }
    }

    /// The whole ledger, and every docket that should be over.
    fn full(&mut self, core: &Core, now: Instant) {
        self.hold(Check::Conservation, core.check().is_ok(), now);
        let window = core.settings().schedule.hold_window_ms;
        let late: bool = self.open.iter().filter_map(|id| core.docket(*id)).any(|docket| {
            let since = docket.deadline_ms.map_or(0, |deadline| now.since_ms(deadline));
            docket.outage_ms.is_none() && since > self.allowance_ms.saturating_add(window)
        });
        self.hold(Check::CondemnedResolved, !late, now);
    }
}

impl Shadow {
    /// Whether the core's figures of an agent are those of its transfers: income from customers alone, costs of calls
    /// alone, and what was taken back once, as the one or the other.
    fn agrees(&self, core: &Core, agent: &str) -> bool {
        let Some(known) = AgentId::parse(agent).ok().and_then(|id| core.lifetime(&id)) else { return false };
        let (income, costs) = (known.income_nano.nano(), known.costs_nano.nano());
        let back = self.income_nano - income;
        (0..=self.reversed_nano).contains(&back)
            && income - costs == self.income_nano - self.costs_nano - self.reversed_nano
    }
}

/// E20 to E22, worked out a second time from the cases alone.
fn quota_kept(core: &Core, docket: &Docket) -> bool {
    let rules = &core.settings().quota;
    // The base is as it was when the code decided: who has a place or a reason from the quota appealed then.
    let by_quota = |why: &str| !matches!(why, "no_appeal" | "no_judge" | "withdrawn");
    let decided = || docket.cases.values().filter_map(|case| case.decision.map(|verdict| (case, verdict)));
    let appellants = decided().filter(|(_, verdict)| by_quota(verdict.why.word())).count();
    let quota = (appellants as u64 * u64::from(rules.share_bps)).div_ceil(10_000);
    let spared = decided().filter(|(_, verdict)| verdict.reprieved);
    spared.clone().count() as u64 <= quota
        && spared.into_iter().all(|(case, _)| {
            case.promise() >= rules.floor * rules.passes
                && case.facts.reprieves < rules.max_reprieves
                && case.appeal().is_some()
        })
}

fn add(books: &mut BTreeMap<String, i64>, account: &str, amount: i64) {
    if let Some(known) = books.get_mut(account) {
        *known += amount;
    } else {
        books.insert(account.to_owned(), amount);
    }
}

fn text(row: &Row, at: usize) -> &str {
    match row.cells.get(at) {
        Some(Cell::Text(text)) => text,
        Some(Cell::Int(_) | Cell::Null) | None => "",
    }
}

fn int(row: &Row, at: usize) -> i64 {
    match row.cells.get(at) {
        Some(Cell::Int(value)) => *value,
        Some(Cell::Text(_) | Cell::Null) | None => 0,
    }
}
