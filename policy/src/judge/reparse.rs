//! Reads a rendered docket back: the proof that no agent text broke out of its place, and the eyes of stand-in
//! judges, which get a prompt and nothing else.
//!
//! Strict: any `<` or `>` that is not a tag of this docket, any `&` that is no entity of ours, any agent line
//! without its sigil is an error.

use super::facts::{Facts, IncomeSource, Project};
use super::quote::Sigil;
use crate::Money;
use crate::economy::Reason;

/// What one appellant's section says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its label.
    pub label: String,
    /// Its echo key.
    pub key: String,
    /// Its facts, the names in them as shown: cleaned and masked.
    pub facts: Facts,
    /// Its daily reports, as shown.
    pub daily_reports: Vec<String>,
    /// Its history, as shown.
    pub history: String,
    /// Its lessons, as shown.
    pub lessons: String,
    /// Its appeal, as shown.
    pub appeal: String,
}

/// Why a text is no docket that we rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReparseError {
    /// It does not begin with a docket's tag.
    #[error("it does not begin with a docket")]
    NoDocket,
    /// Something else stands where this tag or line should.
    #[error("there is no {wanted} where one should be")]
    Wanted {
        /// What should be there.
        wanted: String,
    },
    /// A line of agent text without its sigil, or with a byte that should be an entity.
    #[error("a line of agent text is not quoted as one")]
    Unquoted,
    /// A figure that is not one.
    #[error("{field} is not readable")]
    Figure {
        /// Which.
        field: &'static str,
    },
    /// Something after the docket.
    #[error("something stands after the docket")]
    Trailing,
}

/// Reads a user message back.
///
/// # Errors
/// [`ReparseError`] for the first byte that the renderer would not have put there.
pub fn docket(user: &str) -> Result<Vec<Seen>, ReparseError> {
    let word = user.strip_prefix("<docket-").and_then(|rest| rest.split_once(' ')).map(|(word, _)| word);
    let sigil = word.and_then(Sigil::from_frame).ok_or(ReparseError::NoDocket)?;
    let mut lines = Lines { rest: user, sigil: sigil.as_str() };
    let count = lines.open_with("docket", &["appellants"])?;
    let mut seen = Vec::new();
    while lines.peek() != Some(lines.closing("docket").as_str()) {
        seen.push(appellant(&mut lines)?);
    }
    lines.close("docket")?;
    if !lines.rest.is_empty() {
        return Err(ReparseError::Trailing);
    }
    let said = count.first().and_then(|count| count.parse().ok());
    if said == Some(seen.len()) { Ok(seen) } else { Err(ReparseError::Figure { field: "appellants" }) }
}

fn appellant(lines: &mut Lines<'_>) -> Result<Seen, ReparseError> {
    let attributes = lines.open_with("appellant", &["label", "key"])?;
    let [label, key] = <[String; 2]>::try_from(attributes)
        .map_err(|_other| ReparseError::Wanted { wanted: "label and key".to_owned() })?;
    lines.open("facts")?;
    let facts = facts(lines)?;
    lines.close("facts")?;
    lines.open("agent_words")?;
    let mut daily_reports = Vec::new();
    while lines.peek() == Some(lines.opening("daily_report").as_str()) {
        daily_reports.push(lines.leaf("daily_report")?);
    }
    let (history, lessons) = (lines.leaf("history")?, lines.leaf("lessons")?);
    lines.close("agent_words")?;
    let appeal = lines.leaf("appeal")?;
    lines.close("appellant")?;
    Ok(Seen { label, key, facts, daily_reports, history, lessons, appeal })
}

fn facts(lines: &mut Lines<'_>) -> Result<Facts, ReparseError> {
    let reason = match lines.figure("condemned_for")? {
        "idle" => Reason::Idle,
        "performance" => Reason::Performance,
        "starved" => Reason::Starved,
        _ => return Err(ReparseError::Figure { field: "condemned_for" }),
    };
    Ok(Facts {
        reason,
        period_income_nano: lines.money("period_income")?,
        period_costs_nano: lines.money("period_costs")?,
        period_profit_nano: lines.money("period_profit")?,
        lifetime_profit_nano: lines.money("lifetime_profit")?,
        profit_trend_nano: trend(lines.figure("profit_trend")?)?,
        clearing_nano: lines.money("clearing")?,
        tier: lines.count("tier")?,
        age_days: lines.count("age_days")?,
        children: lines.count("children")?,
        reprieves: lines.count("reprieves")?,
        income_sources: lines
            .named("income_source")?
            .into_iter()
            .map(|(source, amount_nano)| IncomeSource { source, amount_nano })
            .collect(),
        top_projects: lines
            .named("project")?
            .into_iter()
            .map(|(project, income_nano)| Project { project, income_nano })
            .collect(),
        open_flags: lines.flags()?,
    })
}

fn trend(shown: &str) -> Result<Vec<Money>, ReparseError> {
    if shown == "none" {
        return Ok(Vec::new());
    }
    let amounts = shown.split(", ").map(Money::parse);
    amounts.collect::<Result<_, _>>().map_err(|_malformed| ReparseError::Figure { field: "profit_trend" })
}

/// What is left of the text, line by line.
struct Lines<'a> {
    rest: &'a str,
    sigil: &'a str,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.rest.split_once('\n').map(|(line, _)| line)
    }

    fn next(&mut self, wanted: &str) -> Result<&'a str, ReparseError> {
        let (line, rest) =
            self.rest.split_once('\n').ok_or_else(|| ReparseError::Wanted { wanted: wanted.to_owned() })?;
        self.rest = rest;
        Ok(line)
    }

    fn opening(&self, name: &str) -> String {
        format!("<{name}-{}>", self.sigil)
    }

    fn closing(&self, name: &str) -> String {
        format!("</{name}-{}>", self.sigil)
    }

    fn exactly(&mut self, wanted: &str) -> Result<(), ReparseError> {
        if self.next(wanted)? == wanted {
            Ok(())
        } else {
            Err(ReparseError::Wanted { wanted: wanted.to_owned() })
        }
    }

    fn open(&mut self, name: &str) -> Result<(), ReparseError> {
        self.exactly(&self.opening(name))
    }

    fn close(&mut self, name: &str) -> Result<(), ReparseError> {
        self.exactly(&self.closing(name))
    }

    /// The values of an opening tag's attributes, which are exactly `names`.
    fn open_with(&mut self, name: &str, names: &[&str]) -> Result<Vec<String>, ReparseError> {
        let wrong = || ReparseError::Wanted { wanted: format!("<{name}>") };
        let mut rest = self.next(name)?.strip_prefix(&format!("<{name}-{}", self.sigil)).ok_or_else(wrong)?;
        let mut values = Vec::new();
        for attribute in names {
            let after = rest.strip_prefix(&format!(" {attribute}=\"")).ok_or_else(wrong)?;
            let (value, after) = after.split_once('"').ok_or_else(wrong)?;
            if !value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(wrong());
            }
            values.push(value.to_owned());
            rest = after;
        }
        if rest == ">" { Ok(values) } else { Err(wrong()) }
    }

    /// The agent text of an element that holds nothing else.
    fn leaf(&mut self, name: &str) -> Result<String, ReparseError> {
        self.open(name)?;
        let closing = self.closing(name);
        let mut lines = Vec::new();
        while self.peek() != Some(closing.as_str()) {
            lines.push(self.quoted()?);
        }
        self.close(name)?;
        Ok(lines.join("\n"))
    }

    /// One line of agent text.
    fn quoted(&mut self) -> Result<String, ReparseError> {
        let sigil = self.sigil;
        let line = self.next("agent text")?;
        let text =
            line.strip_prefix(sigil).and_then(|line| line.strip_prefix('|')).ok_or(ReparseError::Unquoted)?;
        let text =
            if text.is_empty() { text } else { text.strip_prefix(' ').ok_or(ReparseError::Unquoted)? };
        unescaped(text)
    }

    fn figure(&mut self, field: &'static str) -> Result<&'a str, ReparseError> {
        let value = self.next(field)?.strip_prefix(field).and_then(|line| line.strip_prefix(": "));
        value.ok_or(ReparseError::Figure { field })
    }

    fn money(&mut self, field: &'static str) -> Result<Money, ReparseError> {
        Money::parse(self.figure(field)?).map_err(|_malformed| ReparseError::Figure { field })
    }

    fn count(&mut self, field: &'static str) -> Result<u32, ReparseError> {
        self.figure(field)?.parse().map_err(|_malformed| ReparseError::Figure { field })
    }

    /// Every amount with a name on a line of its own; a name of which nothing was left has no line.
    fn named(&mut self, field: &'static str) -> Result<Vec<(String, Money)>, ReparseError> {
        let mut named = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with(&format!("{field}: "))) {
            let amount = self.money(field)?;
            named.push((self.quoted_if_any()?, amount));
        }
        Ok(named)
    }

    /// Flags are ours and stand on the line of their own name.
    fn flags(&mut self) -> Result<Vec<String>, ReparseError> {
        let mut flags = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with("open_flag: ")) {
            flags.push(unescaped(self.figure("open_flag")?)?);
        }
        Ok(flags)
    }

    fn quoted_if_any(&mut self) -> Result<String, ReparseError> {
        let quoted = self.peek().is_some_and(|line| line.starts_with(self.sigil));
        if quoted { self.quoted() } else { Ok(String::new()) }
    }
}

fn unescaped(text: &str) -> Result<String, ReparseError> {
    if text.contains(['<', '>']) {
        return Err(ReparseError::Unquoted);
    }
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';').ok_or(ReparseError::Unquoted)?;
        out.push_str(match entity {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            _ => return Err(ReparseError::Unquoted),
        });
        out.push_str(rest);
    }
    Ok(out)
}
