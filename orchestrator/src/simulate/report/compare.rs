//! What a change of the rules did: groups side by side, with intervals over seeds.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::chart::{Chart, Frame, Key, NARROW, Table, WIDE, line, shape, svg, swatch, words};
use super::group::{Group, is_promising, kept};
use super::interval::Estimate;
use super::population::empty;
use super::text::{count, figure, percent, shortened};
use crate::simulate::outcome::Outcome;

/// A figure of one run.
type Measure = fn(&Outcome) -> f64;

/// One subject, such as a kind, with what each group comes to in it.
#[derive(Debug)]
struct Subject {
    name: String,
    groups: Vec<Option<Estimate>>,
}

/// Whether the change kept promising agents alive, kind by kind and group by group; empty for fewer than two groups.
pub(super) fn verdicts(groups: &[Group<'_>], kinds: &[String]) -> Vec<String> {
    let Some((base, others)) = groups.split_first() else { return Vec::new() };
    let promising = kinds.iter().filter(|kind| is_promising(kind));
    promising.flat_map(|kind| others.iter().map(|other| verdict(*base, *other, kind))).collect()
}

/// The same seeds under two rules: what differs is the rule.
fn verdict(base: Group<'_>, other: Group<'_>, kind: &str) -> String {
    let before = by_seed(base, kind);
    let after = by_seed(other, kind);
    let pairs = after.iter().filter_map(|(seed, share)| Some(share - before.get(seed)?));
    let differences: Vec<f64> = pairs.collect();
    let (base, other) = (base.name, other.name);
    let Some(estimate) = Estimate::of(&differences) else {
        return format!("{other} against {base}: no seed had a {kind} under both rules.");
    };
    let points = |share: f64| figure(share * 100.0, 1).replace('-', "\u{2212}");
    let mean = points(estimate.mean);
    let Some((low, high)) = estimate.interval else {
        return format!(
            "{other} against {base}: {mean} points of the {kind} lives kept; one seed cannot say whether that is chance."
        );
    };
    let range = format!("{mean} points, 95% interval {} to {}", points(low), points(high));
    let what = if low > 0.0 {
        "kept more"
    } else if high < 0.0 {
        "kept fewer"
    } else {
        return format!(
            "{other} against {base}: no difference for the {kind} lives that {} seeds can tell from chance ({range}).",
            estimate.seeds
        );
    };
    format!("{other} {what} of the {kind} lives than {base} ({range}, {} seeds).", estimate.seeds)
}

/// The share of a kind's lives that each seed kept.
fn by_seed(group: Group<'_>, kind: &str) -> BTreeMap<u64, f64> {
    let share = |run: &Outcome| Some((run.seed, kept(run).get(kind).copied()?));
    group.runs.iter().filter_map(share).collect()
}

/// Deaths a run, all and by cause.
pub(super) fn deaths(groups: &[Group<'_>]) -> Chart {
    let title = "Deaths: how many agents each rule costs";
    let causes: [(&str, Measure); 4] = [
        ("all causes", |run| {
            let deaths = run.deaths;
            f64::from(deaths.idle) + f64::from(deaths.performance) + f64::from(deaths.starved)
        }),
        ("idle", |run| run.deaths.idle.into()),
        ("performance", |run| run.deaths.performance.into()),
        ("starved", |run| run.deaths.starved.into()),
    ];
    let of_group = |group: &Group<'_>, value: Measure| {
        let values: Vec<f64> = group.runs.iter().map(value).collect();
        Estimate::of(&values).map(|estimate| estimate.within(0.0, f64::MAX))
    };
    let subject = |(name, value): (&str, Measure)| Subject {
        name: name.to_owned(),
        groups: groups.iter().map(|group| of_group(group, value)).collect(),
    };
    dots(title, "deaths a run", &causes.map(subject), groups, |value| figure(value, 1))
}

/// The share of lives kept, of promising kinds alone or of the others.
pub(super) fn lives_kept(groups: &[Group<'_>], kinds: &[String], promising: bool) -> Option<Chart> {
    let title = if promising {
        "Promising agents kept alive: the kinds whose income grows late"
    } else {
        "Other kinds kept alive: whether a rule spares those that earn, or everyone"
    };
    let subject = |kind: &String| Subject {
        name: kind.clone(),
        groups: groups.iter().map(|group| share_kept(*group, kind)).collect(),
    };
    let chosen = kinds.iter().filter(|kind| is_promising(kind) == promising);
    let subjects: Vec<Subject> = chosen.map(subject).collect();
    (!subjects.is_empty()).then(|| dots(title, "share of lives kept to the end", &subjects, groups, percent))
}

fn share_kept(group: Group<'_>, kind: &str) -> Option<Estimate> {
    let shares: Vec<f64> = by_seed(group, kind).into_values().collect();
    Estimate::of(&shares).map(|estimate| estimate.within(0.0, 1.0))
}

fn dots(
    title: &str,
    unit: &str,
    subjects: &[Subject],
    groups: &[Group<'_>],
    shown: fn(f64) -> String,
) -> Chart {
    let estimates = || subjects.iter().flat_map(|subject| subject.groups.iter().flatten());
    if estimates().next().is_none() {
        return empty(title, "No run had such agents: there is nothing to compare.");
    }
    let ends = estimates().map(|estimate| estimate.interval.map_or(estimate.mean, |(_, high)| high));
    let highest = ends.fold(0.0, f64::max);
    let highest = if unit.starts_with("share") { 1.0 } else { highest.max(1.0) };
    let first = subjects.first().map_or_else(String::new, |subject| sentence(subject, groups, shown));
    let seeds = estimates().map(|estimate| estimate.seeds).max().unwrap_or(0);
    let intervals = if seeds > 1 {
        "Lines are 95% intervals over seeds; where two do not overlap, the rules differ."
    } else {
        "One seed: no interval can be given."
    };
    let says = format!("{first} {intervals}");
    let picture = |frame: Frame| {
        let height = 58.0 + 24.0 * count(subjects.len()) + 20.0 * count(subjects.len() * groups.len());
        let frame = frame.tall(height);
        svg(frame, &format!("{title}. {says}"), &rows(frame, (unit, highest, shown), subjects, groups))
    };
    let pictures = [WIDE, NARROW].map(picture).concat();
    let key = groups.iter().enumerate().map(|(number, group)| Key {
        swatch: swatch(&shape(number, (11.0, 7.0))),
        label: group.name.to_owned(),
    });
    Chart {
        title: title.to_owned(),
        says,
        pictures,
        key: key.collect(),
        table: table(subjects, groups, shown),
    }
}

fn sentence(subject: &Subject, groups: &[Group<'_>], shown: fn(f64) -> String) -> String {
    let part = |(group, estimate): (&Group<'_>, &Option<Estimate>)| {
        Some(format!("{} {}", group.name, shown(estimate.as_ref()?.mean)))
    };
    let parts: Vec<String> = groups.iter().zip(&subject.groups).filter_map(part).collect();
    format!("{}: {}.", subject.name, parts.join(", "))
}

/// One row a group, under a heading a subject.
fn rows(
    frame: Frame,
    (unit, highest, shown): (&str, f64, fn(f64) -> String),
    subjects: &[Subject],
    groups: &[Group<'_>],
) -> String {
    let (left, label) = if frame.is_narrow() { (112.0, 15) } else { (170.0, 24) };
    let bottom = frame.height - 40.0;
    let axis = Axis::to_ticks(0.0, highest, (left, frame.width - 24.0), frame.ticks().min(5));
    let mut drawn: String = axis
        .ticks
        .iter()
        .map(|tick| {
            let at = axis.at(*tick);
            line((at, 6.0), (at, bottom), "grid") + &words(at, bottom + 16.0, "m tick", &shown(*tick))
        })
        .collect();
    drawn += &words(frame.width - 24.0, frame.height - 6.0, "e title", unit);
    let mut y = 4.0;
    for subject in subjects {
        y += 18.0;
        drawn += &words(4.0, y, "heading", &shortened(&subject.name, 30));
        y += 6.0;
        for (number, (group, estimate)) in groups.iter().zip(&subject.groups).enumerate() {
            y += 20.0;
            drawn += &words(left - 14.0, y - 4.0, "e tick", &shortened(group.name, label));
            drawn += &dot(&axis, *estimate, number, y - 8.0);
        }
    }
    drawn
}

fn dot(axis: &Axis, estimate: Option<Estimate>, number: usize, y: f64) -> String {
    let Some(estimate) = estimate else {
        return words(axis.at(0.0) + 8.0, y + 4.0, "tick", "none lived");
    };
    let whisker = estimate.interval.map_or_else(String::new, |(low, high)| {
        let (from, to) = (axis.at(low), axis.at(high));
        let end = |x: f64| line((x, y - 4.0), (x, y + 4.0), "whisker");
        line((from, y), (to, y), "whisker") + &end(from) + &end(to)
    });
    whisker + &shape(number, (axis.at(estimate.mean), y))
}

fn table(subjects: &[Subject], groups: &[Group<'_>], shown: fn(f64) -> String) -> Table {
    let rows = subjects.iter().flat_map(|subject| {
        groups.iter().zip(&subject.groups).map(move |(group, estimate)| {
            let mut cells = vec![subject.name.clone(), group.name.to_owned()];
            let range = estimate.and_then(|estimate| estimate.interval);
            cells.push(estimate.map_or_else(|| "none".to_owned(), |estimate| shown(estimate.mean)));
            cells.push(range.map_or_else(|| "none".to_owned(), |(low, _)| shown(low)));
            cells.push(range.map_or_else(|| "none".to_owned(), |(_, high)| shown(high)));
            cells.push(estimate.map_or(0, |estimate| estimate.seeds).to_string());
            cells
        })
    });
    Table::new(&["of", "rules", "mean", "95% from", "95% to", "seeds"], rows.collect())
}
