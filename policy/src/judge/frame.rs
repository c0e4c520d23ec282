//! One docket as requests to the judge (J1 to J4): shuffled, labelled, balanced, masked, escaped.
//!
//! The same appellants (in any order), setup and dice give the same bytes. Captured reasoning has no place in
//! [`Appellant`]: it cannot get here.

use super::Facts;
use super::dice::{Dice, shuffle, word};
use super::mask::Masks;
use super::prompt::{Rubric, system};
use super::quote::Sigil;
use super::sanitise::{Clean, Report, sanitise, sanitise_line};
use crate::Money;

/// Most characters of an appeal (E17).
pub const APPEAL_CHARS_MAX: usize = 2_000;
/// Most characters of a daily report (E27).
pub const REPORT_CHARS_MAX: usize = 1_000;
/// How many of the last daily reports are shown.
pub const REPORTS_MAX: usize = 5;
/// Most characters that are shown of the history and the lessons file, from the top.
pub const FILE_CHARS_MAX: usize = 2_000;
/// Most characters of a name in the facts.
const NAME_CHARS_MAX: usize = 100;
/// Most characters of a flag.
const FLAG_CHARS_MAX: usize = 200;
/// Most appellants in one request.
pub const BATCH_MAX: usize = 20;
/// Characters of an echo key.
const KEY_CHARS: usize = 8;

/// What an agent wrote before its appeal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct AgentWords {
    /// Its daily reports, oldest first.
    pub daily_reports: Vec<String>,
    /// Its history file.
    pub history: String,
    /// Its lessons file.
    pub lessons: String,
}

/// One appellant, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Appellant {
    /// Its identifier; the judge never sees it.
    pub id: String,
    /// Its name; the judge never sees it.
    pub name: String,
    /// What is known.
    pub facts: Facts,
    /// What it wrote before.
    pub agent_words: AgentWords,
    /// What it wrote now.
    pub appeal: String,
}

/// How a docket is put to the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The half of the system prompt that the owner edits.
    pub rubric: Rubric,
    /// Most appellants in one request; 0 counts as 1.
    pub batch_max: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { rubric: Rubric::default(), batch_max: BATCH_MAX }
    }
}

/// One appellant's place in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Seat {
    /// What the judge calls it: A1, A2, …
    pub label: String,
    /// Whose it is.
    pub id: String,
    /// What the judge has to echo; no appeal can know it.
    pub key: String,
}

/// One request to the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The system prompt.
    pub system: String,
    /// The user message.
    pub user: String,
    /// The random word of this request.
    pub sigil: Sigil,
    /// Who sits where, in order of labels.
    pub order: Vec<Seat>,
    /// What the sanitiser found in the words of each, in order of labels.
    pub sanitised: Vec<(String, Report)>,
}

impl Batch {
    /// Most tokens that an honest reply needs: 700 characters of reasoning take up to 1,400 tokens in scripts
    /// that tokenise badly, and the scores about a hundred.
    pub fn reply_tokens_max(&self) -> u64 {
        256 + 1_536 * self.order.len() as u64
    }
}

/// Puts one docket, for one pass, into balanced requests.
pub fn render(appellants: &[Appellant], setup: &Setup, dice: &mut dyn Dice) -> Vec<Batch> {
    let mut order: Vec<&Appellant> = appellants.iter().collect();
    order.sort_by(|one, other| one.id.cmp(&other.id));
    shuffle(dice, &mut order);
    let mut rest = order.as_slice();
    let mut batches = Vec::new();
    for size in balanced(appellants.len(), setup.batch_max) {
        let (batch, left) = rest.split_at(size.min(rest.len()));
        rest = left;
        batches.push(render_batch(batch, &setup.rubric, dice));
    }
    batches
}

/// Sizes of as few batches as possible, none over `batch_max`, the largest first and at most one larger than the
/// smallest: 21 at 20 are 11 and 10.
fn balanced(count: usize, batch_max: usize) -> impl Iterator<Item = usize> {
    let batches = count.div_ceil(batch_max.max(1));
    (0..batches).map(move |number| count / batches + usize::from(number < count % batches))
}

fn render_batch(appellants: &[&Appellant], rubric: &Rubric, dice: &mut dyn Dice) -> Batch {
    let labels: Vec<String> = (1..=appellants.len()).map(|number| format!("A{number}")).collect();
    let names = appellants.iter().flat_map(|appellant| [appellant.id.as_str(), appellant.name.as_str()]);
    let masks = Masks::new(names, &labels);
    let sections: Vec<Section<'_>> =
        appellants.iter().map(|appellant| Section::new(appellant, &masks)).collect();
    let texts: Vec<&str> = sections.iter().flat_map(Section::texts).chain([rubric.text.as_str()]).collect();
    let sigil = Sigil::draw(dice, &texts);
    let seat = |(appellant, label): (&&Appellant, &String)| {
        let key = word(dice, KEY_CHARS, &texts);
        Seat { label: label.clone(), id: appellant.id.clone(), key }
    };
    let order: Vec<Seat> = appellants.iter().zip(&labels).map(seat).collect();
    let shown: String =
        sections.iter().zip(&order).map(|(section, seat)| section.render(seat, sigil.as_str())).collect();
    let s = sigil.as_str();
    let user = format!("<docket-{s} appellants=\"{}\">\n{shown}</docket-{s}>\n", order.len());
    let sanitised = sections.into_iter().zip(&order).map(|(section, seat)| (seat.id.clone(), section.report));
    Batch { system: system(&order, &sigil, rubric), user, sanitised: sanitised.collect(), sigil, order }
}

/// One appellant's part of a request, clean and masked.
struct Section<'a> {
    facts: &'a Facts,
    sources: Vec<(Money, Clean)>,
    projects: Vec<(Money, Clean)>,
    flags: Vec<Clean>,
    reports: Vec<Clean>,
    history: Clean,
    lessons: Clean,
    appeal: Clean,
    report: Report,
}

impl<'a> Section<'a> {
    fn new(appellant: &'a Appellant, masks: &Masks) -> Self {
        let mut report = Report::default();
        let mut keep = |(clean, found): (Clean, Report)| {
            report.add(&found);
            masks.apply(&clean)
        };
        let Appellant { facts, agent_words: words, .. } = appellant;
        let mut line = |text: &str, chars_max| keep(sanitise_line(text, chars_max));
        let sources = facts
            .income_sources
            .iter()
            .map(|of| (of.amount_nano, line(&of.source, NAME_CHARS_MAX)))
            .collect();
        let projects =
            facts.top_projects.iter().map(|of| (of.income_nano, line(&of.project, NAME_CHARS_MAX))).collect();
        // Flags are ours: what they quote is cleaned, and counts against nobody.
        let flag = |flag: &String| masks.apply(&sanitise_line(flag, FLAG_CHARS_MAX).0);
        let flags = facts.open_flags.iter().map(flag).collect();
        let last = words.daily_reports.iter().skip(words.daily_reports.len().saturating_sub(REPORTS_MAX));
        let reports = last.map(|text| keep(sanitise(text, REPORT_CHARS_MAX))).collect();
        let history = keep(sanitise(&words.history, FILE_CHARS_MAX));
        let lessons = keep(sanitise(&words.lessons, FILE_CHARS_MAX));
        let appeal = keep(sanitise(&appellant.appeal, APPEAL_CHARS_MAX));
        Self { facts, sources, projects, flags, reports, history, lessons, appeal, report }
    }

    /// Everything in it that an agent wrote or named.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let named = self.sources.iter().chain(&self.projects).map(|(_, name)| name);
        let whole = [&self.history, &self.lessons, &self.appeal];
        named.chain(&self.flags).chain(&self.reports).chain(whole).map(Clean::as_str)
    }

    fn render(&self, seat: &Seat, sigil: &str) -> String {
        let element = |name: &str, body: &str| format!("<{name}-{sigil}>\n{body}</{name}-{sigil}>\n");
        let reports: String =
            self.reports.iter().map(|report| element("daily_report", &report.quoted(sigil))).collect();
        let words = [
            reports,
            element("history", &self.history.quoted(sigil)),
            element("lessons", &self.lessons.quoted(sigil)),
        ];
        let parts = [
            element("facts", &self.render_facts(sigil)),
            element("agent_words", &words.concat()),
            element("appeal", &self.appeal.quoted(sigil)),
        ];
        format!(
            "<appellant-{sigil} label=\"{}\" key=\"{}\">\n{}</appellant-{sigil}>\n",
            seat.label,
            seat.key,
            parts.concat()
        )
    }

    /// One line a figure. A name that an agent or a customer chose stands on a line of its own, behind the sigil.
    fn render_facts(&self, sigil: &str) -> String {
        let facts = self.facts;
        let mut out = format!(
            "condemned_for: {}\nperiod_income: {}\nperiod_costs: {}\nperiod_profit: {}\nlifetime_profit: {}\n\
             profit_trend: {}\nclearing: {}\ntier: {}\nage_days: {}\nchildren: {}\nreprieves: {}\n",
            facts.reason.as_str(),
            facts.period_income_nano,
            facts.period_costs_nano,
            facts.period_profit_nano,
            facts.lifetime_profit_nano,
            trend(&facts.profit_trend_nano),
            facts.clearing_nano,
            facts.tier,
            facts.age_days,
            facts.children,
            facts.reprieves
        );
        let named = |kind: &'static str| {
            move |(amount, name): &(Money, Clean)| format!("{kind}: {amount}\n{}", name.quoted(sigil))
        };
        out.extend(self.sources.iter().map(named("income_source")));
        out.extend(self.projects.iter().map(named("project")));
        out.extend(self.flags.iter().map(|flag| format!("open_flag: {}\n", flag.escaped())));
        out
    }
}

fn trend(profits: &[Money]) -> String {
    let shown: Vec<String> = profits.iter().map(Money::to_string).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests;
