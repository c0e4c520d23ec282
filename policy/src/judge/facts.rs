//! The verified half of what the judge is told: figures from the ledger, never an agent's own.

use crate::Money;
use crate::economy::Reason;

/// One agent's facts, at the docket's snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Facts {
    /// Why it was condemned.
    pub reason: Reason,
    /// Gross income of the period.
    pub period_income_nano: Money,
    /// Costs of the period.
    pub period_costs_nano: Money,
    /// Profit of the period.
    pub period_profit_nano: Money,
    /// Profit of its life.
    pub lifetime_profit_nano: Money,
    /// Profit of each of the last spans, oldest first.
    pub profit_trend_nano: Vec<Money>,
    /// Income announced that can still be reversed; counted in no figure above.
    pub clearing_nano: Money,
    /// Where its income came from. The names were chosen outside: they are quoted, never stated.
    pub income_sources: Vec<IncomeSource>,
    /// What its income was for. The names are its own.
    pub top_projects: Vec<Project>,
    /// Its tier.
    pub tier: u32,
    /// Whole days since the grant that gave it life.
    pub age_days: u32,
    /// Living and dead children.
    pub children: u32,
    /// Open flags from signals, oldest first.
    pub open_flags: Vec<String>,
    /// Reprieves so far.
    pub reprieves: u32,
}

/// One source of income.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct IncomeSource {
    /// Its name.
    pub source: String,
    /// What it brought in, in the period.
    pub amount_nano: Money,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Project {
    /// Its name.
    pub project: String,
    /// What it brought in, in the period.
    pub income_nano: Money,
}

#[cfg(test)]
pub(crate) fn plain() -> Facts {
    Facts {
        reason: Reason::Idle,
        period_income_nano: Money::from_nano(400_000_000),
        period_costs_nano: Money::from_nano(1_500_000_000),
        period_profit_nano: Money::from_nano(-1_100_000_000),
        lifetime_profit_nano: Money::from_nano(-1_300_000_000),
        profit_trend_nano: vec![Money::from_nano(-200_000_000), Money::from_nano(-1_100_000_000)],
        clearing_nano: Money::ZERO,
        income_sources: vec![IncomeSource {
            source: "Alma's bakery".to_owned(),
            amount_nano: Money::from_nano(400_000_000),
        }],
        top_projects: vec![Project {
            project: "menu texts".to_owned(),
            income_nano: Money::from_nano(400_000_000),
        }],
        tier: 1,
        age_days: 12,
        children: 0,
        open_flags: vec!["direct_attempt (3)".to_owned()],
        reprieves: 0,
    }
}
