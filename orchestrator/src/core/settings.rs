//! The economy's settings, journalled with the genesis row. Every default stands here, once.
//!
//! Spans are in milliseconds of the core's clock, amounts in nano-dollars, shares in hundredths of a percent.

use policy::economy::cull::CullSettings;
use policy::economy::price::{PriceBook, PriceRow};
use policy::economy::quota::QuotaSettings;
use policy::economy::schedule::{WARNING_MS, WARNING_MS_MIN};
use policy::economy::tier::Rung;
use policy::time::{DAY_MS, HOUR_MS};
use policy::{Instant, Money, ProfileName};
use serde::{Deserialize, Serialize};

/// Settings of the economy; what is left out takes its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Grants, the treasury, income.
    pub money: MoneySettings,
    /// What a model costs, and who may call it.
    pub models: ModelSettings,
    /// Wakes, episodes, profiles.
    pub lives: LifeSettings,
    /// Who is condemned (E14 to E16).
    pub cull: CullSettings,
    /// How many live (E20 to E22).
    pub quota: QuotaSettings,
    /// When culls are, and what is waited for (E12, E13, E25).
    pub schedule: ScheduleSettings,
    /// The last episode and its texts.
    pub appeal: AppealSettings,
    /// Who is asked about appeals.
    pub judge: JudgeSettings,
    /// Daily reports and the digest.
    pub log: LogSettings,
}

/// Grants, the treasury, income.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoneySettings {
    /// What the owner puts into the treasury at genesis.
    pub treasury_nano: Money,
    /// What an agent is born with (E1).
    pub grant_nano: Money,
    /// How long income clears before it can be spent (E5).
    pub clearing_ms: i64,
    /// How long a call may stay open before it is charged its hold (G6).
    pub call_limit_ms: i64,
}

impl Default for MoneySettings {
    fn default() -> Self {
        Self { treasury_nano: dollars(1_000), grant_nano: dollars(5), clearing_ms: 0, call_limit_ms: HOUR_MS }
    }
}

/// Prices and menus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Every model that has a price; one without cannot be called (G5).
    pub prices: Vec<PriceRow>,
    /// What agents may call, unless their tier names others (E8).
    pub menu: Vec<String>,
    /// The shortest prompt that a call can have, in tokens: an agent that cannot pay for one starves (E7).
    pub prompt_tokens_min: u64,
    /// Whose account the calls are paid to.
    pub provider: String,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            prices: PriceBook::default().rows().to_vec(),
            menu: vec!["claude-sonnet-5-5".to_owned(), "claude-haiku-5-5".to_owned()],
            // The constitution and the shortest of messages, as the gateway bounds them: fewer, and an agent that
            // can call nothing any more would not be seen to starve.
            prompt_tokens_min: 8_000,
            provider: "anthropic".to_owned(),
        }
    }
}

/// Wakes, episodes, profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LifeSettings {
    /// From one scheduled wake to the next (E10).
    pub wake_every_ms: i64,
    /// When in the period between wakes the first agent's wake is, from midnight.
    pub wake_at_ms: i64,
    /// How much later each further agent wakes, so that they do not all start at once.
    pub wake_spread_ms: i64,
    /// How long an episode may run (E10).
    pub episode_wall_ms: i64,
    /// What an episode may spend (E10).
    pub episode_spend_nano: Money,
    /// The rungs of the tiers, from the lowest (E8).
    pub tiers: Vec<Rung>,
    /// With this many agents that are not dead, none has a child; an admin may make more (E9).
    pub population_max: u32,
    /// The egress profile of an agent that lives, unless its tier names another.
    pub profile: ProfileName,
    /// The profile of a condemned agent: it must allow nothing (E17).
    pub condemned_profile: ProfileName,
    /// Whether a starving agent is condemned between culls (E7).
    pub starving: bool,
}

impl Default for LifeSettings {
    fn default() -> Self {
        Self {
            wake_every_ms: DAY_MS,
            wake_at_ms: 8 * HOUR_MS,
            wake_spread_ms: 300_000,
            episode_wall_ms: HOUR_MS,
            episode_spend_nano: dollars(1),
            tiers: vec![
                Rung::default(),
                Rung {
                    profit_from_nano: Some(dollars(20)),
                    age_from_days: 10,
                    may_reproduce: true,
                    ..Rung::default()
                },
            ],
            population_max: 100,
            profile: profile("agents"),
            condemned_profile: profile("nothing"),
            starving: true,
        }
    }
}

/// When culls are, and what is waited for; who is condemned is in [`policy::economy::cull`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleSettings {
    /// The first cull, a midnight UTC; left out, one period after the midnight before genesis (E13).
    pub first_ms: Option<Instant>,
    /// How long before a cull the warnings go out (E12).
    pub warning_ms: i64,
    /// A warning that comes later than this before its cull postpones it (E12).
    pub warning_least_ms: i64,
    /// From one look at who must be warned to the next (E12).
    pub warning_step_ms: i64,
    /// Whether a late warning postpones nothing (E12).
    pub strict: bool,
    /// How long decisions wait for an admin before they are carried out (E25).
    pub hold_window_ms: i64,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            first_ms: None,
            warning_ms: WARNING_MS,
            warning_least_ms: WARNING_MS_MIN,
            warning_step_ms: HOUR_MS,
            strict: false,
            hold_window_ms: 0,
        }
    }
}

/// The last episode of a condemned agent and its texts (E17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppealSettings {
    /// What the treasury lays out for it.
    pub budget_nano: Money,
    /// How long it has from the moment that it is condemned.
    pub window_ms: i64,
    /// Longest appeal, in characters.
    pub appeal_chars_max: usize,
    /// Longest death report, in characters.
    pub death_report_chars_max: usize,
    /// How long to wait before a last episode that could not be started is tried again.
    pub retry_ms: i64,
}

impl Default for AppealSettings {
    fn default() -> Self {
        Self {
            budget_nano: Money::from_nano(250_000_000),
            window_ms: 6 * HOUR_MS,
            appeal_chars_max: 2_000,
            death_report_chars_max: 3_000,
            retry_ms: 60_000,
        }
    }
}

/// Who is asked about appeals, and what a reprieve brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSettings {
    /// Whether there is a judge at all (E19).
    pub enabled: bool,
    /// The model that scores.
    pub model: String,
    /// The token limit of a request; a large batch gets as much more as an honest reply to it needs.
    pub max_tokens: u64,
    /// Most appellants in one request.
    pub batch_max: u32,
    /// What a reprieved agent gets (E23).
    pub reprieve_grant_nano: Money,
    /// First wait after an outage; each further one is twice as long (E26).
    pub retry_first_ms: i64,
    /// Longest wait between two tries (E26).
    pub retry_longest_ms: i64,
    /// How long an outage may last before an admin is asked (E26).
    pub outage_ms: i64,
    /// How many of its latest daily reports are shown (J2).
    pub reports_shown: usize,
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            model: "claude-sonnet-5-5".to_owned(),
            max_tokens: 16_000,
            batch_max: 20,
            reprieve_grant_nano: dollars(5),
            retry_first_ms: 60_000,
            retry_longest_ms: HOUR_MS,
            outage_ms: DAY_MS,
            reports_shown: 5,
        }
    }
}

/// Daily reports (E27) and the digest (E28).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Longest daily report, in characters (E27).
    pub report_chars_max: usize,
    /// When the digest of the day before is due, from midnight (E28).
    pub digest_at_ms: i64,
    /// The model that writes it (E28).
    pub digest_model: String,
    /// Most tokens that it may answer with.
    pub digest_max_tokens: u64,
    /// Longest digest, in words (E28).
    pub digest_words_max: usize,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            report_chars_max: 1_000,
            digest_at_ms: 5 * HOUR_MS,
            digest_model: "claude-haiku-5-5".to_owned(),
            digest_max_tokens: 2_000,
            digest_words_max: 500,
        }
    }
}

const fn dollars(count: i64) -> Money {
    Money::from_nano(count * Money::DOLLAR.nano())
}

#[expect(clippy::expect_used, reason = "both names are literals that fit the grammar; a test reads them")]
fn profile(name: &str) -> ProfileName {
    ProfileName::parse(name).expect("a literal that fits")
}
