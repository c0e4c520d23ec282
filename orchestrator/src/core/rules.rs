//! The settings, checked once and made into `policy`'s rules.

use policy::Instant;
use policy::economy::SettingError;
use policy::economy::cull::CullRules;
use policy::economy::price::{PriceBook, PriceError};
use policy::economy::quota::QuotaRules;
use policy::economy::schedule::Schedule;
use policy::time::DAY_MS;

use super::settings::Settings;

/// What `policy` decides by.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub cull: CullRules,
    pub quota: QuotaRules,
    pub prices: PriceBook,
    pub schedule: Schedule,
}

impl Default for Rules {
    fn default() -> Self {
        let cull = CullRules::default();
        Self {
            schedule: Schedule::from_start(Instant::default(), &cull),
            cull,
            quota: QuotaRules::default(),
            prices: PriceBook::default(),
        }
    }
}

/// Why settings make no rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A number out of its range.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// A price book that contradicts itself.
    #[error("{0}")]
    Prices(#[from] PriceError),
    /// A model that is asked or on the menu, without a price.
    #[error("{setting} names {model}, which has no price")]
    Priceless {
        /// Which setting.
        setting: &'static str,
        /// The model.
        model: String,
    },
    /// A cull at another time of day.
    #[error("first_ms is {found}, and must be a midnight UTC")]
    NotMidnight {
        /// What it was.
        found: Instant,
    },
    /// A span or amount that must be more than nothing.
    #[error("{setting} is {found}, and must be more than 0")]
    NotPositive {
        /// Which setting.
        setting: &'static str,
        /// What it was.
        found: i64,
    },
    /// A seed of another shape.
    #[error("the seed is not 64 hexadecimal digits")]
    Seed,
}

impl Rules {
    /// Checks settings at genesis.
    pub(super) fn parse(now: Instant, settings: &Settings, seed: &str) -> Result<Self, RulesError> {
        if seed.len() != 64 || !seed.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RulesError::Seed);
        }
        check_spans(settings)?;
        let cull = CullRules::parse(settings.cull.clone())?;
        let quota = QuotaRules::parse(settings.quota.clone())?;
        let prices = PriceBook::parse(settings.models.prices.clone())?;
        let asked =
            [("judge.model", &settings.judge.model), ("log.digest_model", &settings.log.digest_model)];
        let menu = settings.models.menu.iter().map(|model| ("models.menu", model));
        for (setting, model) in menu.chain(asked) {
            if prices.at(model, now).is_none() {
                return Err(RulesError::Priceless { setting, model: model.clone() });
            }
        }
        let schedule = match settings.schedule.first_ms {
            Some(found) if found.midnight() != found => return Err(RulesError::NotMidnight { found }),
            Some(first) => Schedule::new(first, &cull),
            None => Schedule::from_start(now, &cull),
        };
        Ok(Self { cull, quota, prices, schedule })
    }
}

/// Checks settings as genesis would, but for when prices begin: `darwin serve --check-config` calls it before there
/// is a journal, or a time.
///
/// # Errors
/// [`RulesError`] names the first setting that is wrong.
pub fn check(settings: &Settings) -> Result<(), RulesError> {
    let after_all = Instant::from_ms(i64::MAX);
    Rules::parse(after_all, settings, &"0".repeat(64)).map(|_rules| ())
}

fn check_spans(settings: &Settings) -> Result<(), RulesError> {
    let spans = [
        ("money.treasury_nano", settings.money.treasury_nano.nano()),
        ("money.grant_nano", settings.money.grant_nano.nano()),
        ("money.call_limit_ms", settings.money.call_limit_ms),
        ("lives.wake_every_ms", settings.lives.wake_every_ms),
        ("lives.episode_wall_ms", settings.lives.episode_wall_ms),
        ("appeal.window_ms", settings.appeal.window_ms),
        ("appeal.retry_ms", settings.appeal.retry_ms),
        ("appeal.budget_nano", settings.appeal.budget_nano.nano()),
        ("judge.batch_max", i64::from(settings.judge.batch_max)),
        ("judge.retry_first_ms", settings.judge.retry_first_ms),
        ("judge.retry_longest_ms", settings.judge.retry_longest_ms),
        ("judge.outage_ms", settings.judge.outage_ms),
        ("schedule.warning_ms", settings.schedule.warning_ms),
        ("schedule.warning_step_ms", settings.schedule.warning_step_ms),
        // At least nothing: these are counted from one up, so that the one table can say "more than 0".
        ("money.clearing_ms + 1", settings.money.clearing_ms.saturating_add(1)),
        ("schedule.hold_window_ms + 1", settings.schedule.hold_window_ms.saturating_add(1)),
        ("judge.reprieve_grant_nano + 1", settings.judge.reprieve_grant_nano.nano().saturating_add(1)),
    ];
    for (setting, found) in spans {
        if found <= 0 {
            return Err(RulesError::NotPositive { setting, found });
        }
    }
    if !(0..DAY_MS).contains(&settings.log.digest_at_ms) {
        return Err(RulesError::NotPositive {
            setting: "log.digest_at_ms (within a day)",
            found: settings.log.digest_at_ms,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_rules_before_there_is_a_time() {
        assert_eq!(check(&Settings::default()), Ok(()));
    }

    #[test]
    fn settings_that_contradict_themselves_are_named() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            check(&settings).unwrap_err().to_string()
        };
        assert!(with(|s| s.models.menu.push("gpt-9".to_owned())).contains("models.menu names gpt-9"));
        assert!(with(|s| s.judge.model = "x".to_owned()).contains("judge.model names x"));
        assert!(with(|s| s.schedule.first_ms = Some(Instant::from_ms(1))).contains("midnight"));
        assert!(with(|s| s.appeal.window_ms = 0).contains("appeal.window_ms is 0"));
        assert!(with(|s| s.schedule.hold_window_ms = -1).contains("hold_window_ms"));
        assert!(with(|s| s.log.digest_at_ms = DAY_MS).contains("digest_at_ms"));
        assert!(with(|s| s.quota.passes = 6).contains("passes is 6"));
    }
}
