//! An outcome for people: cull tables, population, births and deaths, treasury, quota, promises (E35).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::START;
use super::outcome::{CullOutcome, Outcome};
use super::sweep::{Interval, Point, figures};

/// Width of a bar that stands for the largest count.
const BAR: usize = 40;

/// One outcome, or several of one sweep's value with their means.
pub fn outcome_text(outcomes: &[Outcome]) -> String {
    match outcomes {
        [one] => single(one),
        several => {
            let mut text = String::new();
            line(&mut text, format_args!("{} seeds; means with 95% intervals", several.len()));
            for figure in figures(several) {
                line(&mut text, format_args!("  {:<32} {}", figure.name, interval(&figure)));
            }
            let broken = several.iter().filter(|one| one.checks.iter().any(|check| !check.held)).count();
            line(
                &mut text,
                format_args!(
                    "{}",
                    if broken == 0 {
                        "every check held in every run".to_owned()
                    } else {
                        format!("checks broke in {broken} runs")
                    }
                ),
            );
            text.trim_end().to_owned()
        }
    }
}

/// A sweep's table: a line a figure, a column a value.
pub fn points_text(points: &[&Point]) -> String {
    let mut text = String::new();
    let Some(first) = points.first() else { return text };
    line(&mut text, format_args!("{} seeds a value; means with 95% intervals", first.seeds));
    let mut head = format!("{:<32}", first.key);
    for point in points {
        let _written = write!(head, " {:>26}", point.value);
    }
    line(&mut text, format_args!("{head}"));
    for (row, figure) in first.figures.iter().enumerate() {
        let mut told = format!("{:<32}", figure.name);
        for point in points {
            let cell = point.figures.get(row).map(interval).unwrap_or_default();
            let _written = write!(told, " {cell:>26}");
        }
        line(&mut text, format_args!("{told}"));
    }
    let broken: usize = points.iter().map(|point| point.broken.len()).sum();
    line(
        &mut text,
        format_args!(
            "{}",
            if broken == 0 {
                "every check held in every run".to_owned()
            } else {
                format!("{broken} checks broke")
            }
        ),
    );
    text.trim_end().to_owned()
}

fn single(outcome: &Outcome) -> String {
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "seed {}, {} agents, {} days from {}: {} events in {} ms",
            outcome.seed, outcome.agents, outcome.days, START, outcome.events, outcome.wall_ms
        ),
    );
    line(&mut text, format_args!("journal {}", outcome.journal_hash));
    culls(&mut text, outcome);
    population(&mut text, outcome);
    money(&mut text, outcome);
    promises(&mut text, outcome);
    line(&mut text, format_args!("\nChecks"));
    for check in &outcome.checks {
        let state = match (check.held, check.first_broken_ms) {
            (true, _) => "held".to_owned(),
            (false, Some(at)) => format!("BROKEN, first at {at}"),
            (false, None) => "BROKEN".to_owned(),
        };
        line(&mut text, format_args!("  {:<48} {state}", check.name));
    }
    text.trim_end().to_owned()
}

fn culls(text: &mut String, outcome: &Outcome) {
    line(text, format_args!("\nCulls"));
    line(
        text,
        format_args!(
            "  {:<11} {:>8} {:>5} {:>11} {:>10} {:>6} {:>9} {:>5}",
            "day", "eligible", "idle", "performance", "appellants", "quota", "reprieved", "died"
        ),
    );
    for cull in &outcome.culls {
        let CullOutcome { at_ms, eligible, idle, performance, appellants, reprieved, died, quota, .. } = cull;
        let day = day_of(*at_ms);
        line(
            text,
            format_args!(
                "  {day:<11} {eligible:>8} {idle:>5} {performance:>11} {appellants:>10} {quota:>6} {reprieved:>9} {died:>5}"
            ),
        );
    }
    if outcome.culls.is_empty() {
        line(text, format_args!("  none"));
    }
    let appellants: u32 = outcome.starvation_dockets.iter().map(|docket| docket.appellants).sum();
    let reprieved: u32 = outcome.starvation_dockets.iter().map(|docket| docket.reprieved).sum();
    line(
        text,
        format_args!(
            "  starvation dockets: {}, with {appellants} appellants, of whom {reprieved} were reprieved",
            outcome.starvation_dockets.len()
        ),
    );
    for docket in &outcome.starvation_dockets {
        line(
            text,
            format_args!(
                "    {}: {} appellants, {} reprieved",
                docket.at_ms, docket.appellants, docket.reprieved
            ),
        );
    }
}

fn population(text: &mut String, outcome: &Outcome) {
    let deaths = &outcome.deaths;
    let died = outcome.series.lives.iter().filter(|life| life.died_ms.is_some()).count();
    line(text, format_args!("\nPopulation"));
    line(
        text,
        format_args!(
            "  births {}; deaths {died}: idle {}, performance {}, starved {}, by an admin {}",
            outcome.births,
            deaths.idle,
            deaths.performance,
            deaths.starved,
            died.saturating_sub((deaths.idle + deaths.performance + deaths.starved) as usize)
        ),
    );
    let mut kinds: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for life in &outcome.series.lives {
        let (born, alive) = kinds.entry(&life.kind).or_default();
        *born += 1;
        *alive += u32::from(life.died_ms.is_none());
    }
    for (kind, (born, alive)) in kinds {
        line(text, format_args!("  {kind:<16} {alive:>4} of {born:>4} alive"));
    }
}

fn money(text: &mut String, outcome: &Outcome) {
    line(text, format_args!("\nMoney"));
    line(text, format_args!("  treasury {}", outcome.treasury_nano));
    let last = outcome.series.days.last().and_then(|day| day.balances_nano);
    if let Some([p10, p25, p50, p75, p90]) = last {
        line(
            text,
            format_args!("  balances of the living: p10 {p10}, p25 {p25}, p50 {p50}, p75 {p75}, p90 {p90}"),
        );
    }
}

fn promises(text: &mut String, outcome: &Outcome) {
    let mut bands = [0_usize; 10];
    let promises = outcome.culls.iter().flat_map(|cull| &cull.promises);
    for promise in promises {
        if let Some(band) = bands.get_mut((*promise as usize / 10).min(9)) {
            *band += 1;
        }
    }
    let most = bands.iter().max().copied().unwrap_or(0);
    if most == 0 {
        return;
    }
    line(text, format_args!("\nPromise of appellants at culls"));
    for (band, count) in bands.iter().enumerate() {
        let bar = "#".repeat((count * BAR).div_ceil(most));
        let label = format!("{}-{}", band * 10, if band == 9 { 100 } else { band * 10 + 9 });
        line(text, format_args!("  {label:>6} {count:>5} {bar}"));
    }
}

fn interval(figure: &Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", figure.mean, figure.low, figure.high)
}

fn day_of(at: policy::Instant) -> String {
    at.to_string().chars().take(10).collect()
}

fn line(text: &mut String, told: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{told}");
}
