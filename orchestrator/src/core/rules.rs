//! The settings, checked once and made into `policy`'s rules.

use policy::Instant;
use policy::economy::cull::CullRules;
use policy::economy::price::PriceBook;
use policy::economy::quota::QuotaRules;
use policy::economy::schedule::Schedule;
use policy::economy::tier::Tiers;
use policy::time::DAY_MS;

use super::settings::Settings;

/// What `policy` decides by.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub cull: CullRules,
    pub quota: QuotaRules,
    pub prices: PriceBook,
    pub tiers: Tiers,
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
            tiers: Tiers::default(),
        }
    }
}

/// One setting of which no rule can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct SettingMistake {
    /// The setting, by its dotted path below the economy.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
}

/// Why settings make no rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// Settings out of their range, or that contradict each other.
    #[error("{}", listed(.0))]
    Settings(Vec<SettingMistake>),
    /// A seed of another shape.
    #[error("the seed is not 64 hexadecimal digits")]
    Seed,
}

fn listed(mistakes: &[SettingMistake]) -> String {
    let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    all.join("; ")
}

impl Rules {
    /// Checks settings at genesis.
    pub(super) fn parse(now: Instant, settings: &Settings, seed: &str) -> Result<Self, RulesError> {
        if seed.len() != 64 || !seed.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RulesError::Seed);
        }
        let found = mistakes(now, settings);
        let made = (
            CullRules::parse(settings.cull.clone()),
            QuotaRules::parse(settings.quota.clone()),
            PriceBook::parse(settings.models.prices.clone()),
            Tiers::parse(&settings.lives.tiers),
        );
        let (Ok(cull), Ok(quota), Ok(prices), Ok(tiers), []) = (made.0, made.1, made.2, made.3, &*found)
        else {
            return Err(RulesError::Settings(found));
        };
        let schedule = match settings.schedule.first_ms {
            Some(first) => Schedule::new(first, &cull),
            None => Schedule::from_start(now, &cull),
        };
        Ok(Self { cull, quota, prices, tiers, schedule })
    }
}

/// Every mistake of the settings that genesis would find, but for when prices begin: `darwin serve --check-config`
/// calls it before there is a journal, or a time.
pub fn check(settings: &Settings) -> Vec<SettingMistake> {
    mistakes(Instant::from_ms(i64::MAX), settings)
}

fn mistakes(now: Instant, settings: &Settings) -> Vec<SettingMistake> {
    let mut found = range_mistakes(settings);
    let cull = CullRules::mistakes(&settings.cull).into_iter();
    found.extend(cull.map(|error| SettingMistake { key: cull_key(error.setting), what: error.to_string() }));
    let quota = QuotaRules::mistakes(&settings.quota).into_iter();
    found
        .extend(quota.map(|error| SettingMistake { key: quota_key(error.setting), what: error.to_string() }));
    let prices = PriceBook::mistakes(&settings.models.prices).into_iter();
    found.extend(prices.map(|error| SettingMistake { key: "models.prices", what: error.to_string() }));
    let tiers = Tiers::mistakes(&settings.lives.tiers).into_iter();
    found.extend(tiers.map(|error| SettingMistake { key: "lives.tiers", what: error.to_string() }));
    let is_sold =
        |model: &String| settings.models.prices.iter().any(|row| row.model == *model && row.from <= now);
    let asked = [("judge.model", &settings.judge.model), ("log.digest_model", &settings.log.digest_model)];
    let menu = settings.models.menu.iter().map(|model| ("models.menu", model));
    let rungs = settings.lives.tiers.iter().filter_map(|rung| rung.menu.as_ref()).flatten();
    let rungs = rungs.map(|model| ("lives.tiers", model));
    for (key, model) in menu.chain(rungs).chain(asked).filter(|(_, model)| !is_sold(model)) {
        found.push(SettingMistake { key, what: format!("{model} has no price") });
    }
    if let Some(first) = settings.schedule.first_ms.filter(|first| first.midnight() != *first) {
        found.push(SettingMistake { key: "schedule.first_ms", what: format!("{first} is no midnight UTC") });
    }
    found
}

fn cull_key(setting: &str) -> &'static str {
    match setting {
        "period_days" => "cull.period_days",
        "performance_share_bps" => "cull.performance_share_bps",
        "idle_under_nano" => "cull.idle_under_nano",
        _ => "cull",
    }
}

fn quota_key(setting: &str) -> &'static str {
    match setting {
        "share_bps" => "quota.share_bps",
        "floor" => "quota.floor",
        "passes" => "quota.passes",
        _ => "quota",
    }
}

/// Spans, amounts and counts, each with the least that it may be.
fn range_mistakes(settings: &Settings) -> Vec<SettingMistake> {
    let Settings { money, lives, appeal, judge, log, schedule, .. } = settings;
    let at_least = [
        ("money.treasury_nano", money.treasury_nano.nano(), 1),
        ("money.grant_nano", money.grant_nano.nano(), 1),
        ("money.clearing_ms", money.clearing_ms, 0),
        ("money.call_limit_ms", money.call_limit_ms, 1),
        ("lives.wake_every_ms", lives.wake_every_ms, 1),
        ("lives.wake_at_ms", lives.wake_at_ms, 0),
        ("lives.wake_spread_ms", lives.wake_spread_ms, 0),
        ("lives.episode_wall_ms", lives.episode_wall_ms, 1),
        ("lives.episode_spend_nano", lives.episode_spend_nano.nano(), 1),
        ("appeal.window_ms", appeal.window_ms, 1),
        ("appeal.retry_ms", appeal.retry_ms, 1),
        ("appeal.budget_nano", appeal.budget_nano.nano(), 1),
        ("judge.batch_max", judge.batch_max.into(), 1),
        ("judge.reprieve_grant_nano", judge.reprieve_grant_nano.nano(), 0),
        ("judge.retry_first_ms", judge.retry_first_ms, 1),
        ("judge.retry_longest_ms", judge.retry_longest_ms, judge.retry_first_ms),
        ("judge.outage_ms", judge.outage_ms, 1),
        ("schedule.warning_ms", schedule.warning_ms, 1),
        ("schedule.warning_least_ms", schedule.warning_least_ms, 0),
        ("schedule.warning_step_ms", schedule.warning_step_ms, 1),
        ("schedule.hold_window_ms", schedule.hold_window_ms, 0),
        ("log.digest_at_ms", log.digest_at_ms, 0),
    ];
    let too_little = at_least.into_iter().filter(|(_, found, least)| found < least);
    let mut wrong: Vec<_> = too_little
        .map(|(key, found, least)| SettingMistake { key, what: format!("{found} is less than {least}") })
        .collect();
    if log.digest_at_ms >= DAY_MS {
        let what = format!("{} is not within a day of {DAY_MS} ms", log.digest_at_ms);
        wrong.push(SettingMistake { key: "log.digest_at_ms", what });
    }
    if schedule.warning_least_ms > schedule.warning_ms {
        let what = "longer than schedule.warning_ms: every warning would postpone its cull".to_owned();
        wrong.push(SettingMistake { key: "schedule.warning_least_ms", what });
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_rules_before_there_is_a_time() {
        assert_eq!(check(&Settings::default()), []);
    }

    #[test]
    fn every_setting_that_is_wrong_is_named_at_once() {
        let mut settings = Settings::default();
        settings.models.menu.push("gpt-9".to_owned());
        settings.judge.model = "x".to_owned();
        settings.schedule.first_ms = Some(Instant::from_ms(1));
        settings.schedule.hold_window_ms = -1;
        settings.appeal.window_ms = 0;
        settings.log.digest_at_ms = DAY_MS;
        settings.quota.passes = 6;
        settings.quota.floor = 101;
        settings.cull.period_days = 0;
        settings.lives.tiers[0].age_from_days = 1;
        settings.judge.retry_longest_ms = settings.judge.retry_first_ms - 1;
        let mut keys: Vec<&str> = check(&settings).iter().map(|mistake| mistake.key).collect();
        keys.sort_unstable();
        assert_eq!(
            keys,
            [
                "appeal.window_ms",
                "cull.period_days",
                "judge.model",
                "judge.retry_longest_ms",
                "lives.tiers",
                "log.digest_at_ms",
                "models.menu",
                "quota.floor",
                "quota.passes",
                "schedule.first_ms",
                "schedule.hold_window_ms",
            ]
        );
    }
}
