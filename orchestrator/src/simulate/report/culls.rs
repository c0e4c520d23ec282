//! What culls did: scores, quota, and the table.

use super::chart::{
    Chart, Frame, Key, Labels, NARROW, Plot, Table, WIDE, line, px, rect, svg, swatch, words,
};
use super::group::Group;
use super::population::empty;
use super::text::{count, counted, date, figure, whole};
use crate::simulate::outcome::CullOutcome;

/// Scores in one column of the histogram.
const BUCKET: u32 = 10;

/// How many appellants got which score, cull by cull.
pub(super) fn promises(group: Group<'_>) -> Chart {
    let title = "Promise by cull: how the judge scored the appellants";
    let culls = group.culls();
    let columns: Vec<Vec<usize>> = culls.iter().map(|runs| histogram(runs)).collect();
    let buckets = columns.iter().map(Vec::len).max().unwrap_or(0);
    let scored: usize = columns.iter().flatten().sum();
    if scored == 0 {
        return empty(title, "No appellant was judged at a cull: there is no score to draw.");
    }
    let sizes = columns.iter().flatten().copied().max().unwrap_or(1);
    let sum: u64 =
        culls.iter().flatten().flat_map(|cull| &cull.promises).map(|score| u64::from(*score)).sum();
    let says = format!(
        "{} judged at {}; the mean score is {}. Each circle is one band of ten points, its area the number of appellants in it.",
        counted(scored, "appellant", "appellants"),
        counted(columns.len(), "cull", "culls"),
        sum / scored as u64
    );
    let shown = format!("{title}. {says}");
    let pictures =
        [WIDE, NARROW].map(|frame| svg(frame, &shown, &bubbles(frame, &columns, (buckets, sizes))));
    let mut head = vec!["cull".to_owned()];
    head.extend((0..buckets).map(band));
    let row = |(number, column): (usize, &Vec<usize>)| {
        let cell = |bucket| column.get(bucket).copied().unwrap_or(0).to_string();
        [(number + 1).to_string()].into_iter().chain((0..buckets).map(cell)).collect()
    };
    let table = Table { head, rows: columns.iter().enumerate().map(row).collect(), note: String::new() };
    let key = vec![Key {
        swatch: swatch("<circle cx=\"11\" cy=\"7\" r=\"6\" class=\"f0\"/>"),
        label: format!("the largest circle: {}", counted(sizes, "appellant", "appellants")),
    }];
    Chart { title: title.to_owned(), says, pictures: pictures.concat(), key, table }
}

/// `20–29`; the last band of a hundred takes the hundred in.
fn band(bucket: usize) -> String {
    let low = bucket * BUCKET as usize;
    format!("{low}\u{2013}{}", low + BUCKET as usize - 1)
}

fn histogram(culls: &[&CullOutcome]) -> Vec<usize> {
    let mut buckets: Vec<usize> = Vec::new();
    for score in culls.iter().flat_map(|cull| &cull.promises) {
        let bucket = (score / BUCKET) as usize;
        buckets.resize(buckets.len().max(bucket + 1), 0);
        if let Some(number) = buckets.get_mut(bucket) {
            *number += 1;
        }
    }
    buckets
}

fn bubbles(frame: Frame, columns: &[Vec<usize>], (buckets, most): (usize, usize)) -> String {
    let high = count(buckets * BUCKET as usize).max(100.0);
    let plot = Plot::new(frame, (0.5, count(columns.len()) + 0.5), (0.0, high));
    let room = (plot.x.at(2.0) - plot.x.at(1.0)).min(plot.y.at(0.0) - plot.y.at(f64::from(BUCKET)));
    let largest = (room * 0.48).clamp(2.5, 11.0);
    let circle = |number: usize, bucket: usize, many: usize| {
        let radius = (largest * (count(many) / count(most)).sqrt()).max(1.5);
        let middle = (count(bucket) + 0.5) * f64::from(BUCKET);
        let (x, y) = plot.at((count(number + 1), middle));
        let label =
            if radius >= 8.0 { words(x, y + 4.0, "m inside", &many.to_string()) } else { String::new() };
        format!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"f0\"/>{label}", px(x), px(y), px(radius))
    };
    let drawn = columns.iter().enumerate().flat_map(|(number, column)| {
        let some = column.iter().enumerate().filter(|(_, many)| **many > 0);
        some.map(move |(bucket, many)| (number, bucket, *many))
    });
    let grid = plot.grid(
        Labels { title: "number of the cull", tick: whole },
        Labels { title: "promise, points", tick: |value| figure(value, 0) },
    );
    grid + &drawn.map(|(number, bucket, many)| circle(number, bucket, many)).collect::<String>()
}

/// What one cull came to over all runs.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    eligible: u32,
    idle: u32,
    performance: u32,
    appellants: u32,
    quota: u32,
    reprieved: u32,
    died: u32,
}

fn sums(runs: &[&CullOutcome]) -> Sums {
    let sum = |pick: fn(&CullOutcome) -> u32| runs.iter().map(|cull| pick(cull)).fold(0, u32::saturating_add);
    Sums {
        eligible: sum(|cull| cull.eligible),
        idle: sum(|cull| cull.idle),
        performance: sum(|cull| cull.performance),
        appellants: sum(|cull| cull.appellants),
        quota: sum(|cull| cull.quota),
        reprieved: sum(|cull| cull.reprieved),
        died: sum(|cull| cull.died),
    }
}

/// Reprieved against quota, cull by cull.
pub(super) fn quota(group: Group<'_>) -> Chart {
    let title = "Quota use: how many of the places for reprieves were taken";
    let culls = group.culls();
    let all: Vec<Sums> = culls.iter().map(|runs| sums(runs)).collect();
    if all.is_empty() {
        return empty(title, "No cull ran: there is no quota to draw.");
    }
    let total = |pick: fn(&Sums) -> u32| all.iter().map(pick).fold(0_u32, u32::saturating_add);
    let several = if group.runs.len() > 1 { " Sums over all seeds." } else { "" };
    let says = format!(
        "{} of {} places were taken, by {} appellants; an empty place means that too few passed the floor.{several}",
        total(|cull| cull.reprieved),
        total(|cull| cull.quota),
        total(|cull| cull.appellants)
    );
    let shown = format!("{title}. {says}");
    let pictures = [WIDE, NARROW].map(|frame| svg(frame, &shown, &bars(frame, &all)));
    let key = vec![
        Key {
            swatch: swatch(&rect((1.0, 1.0), (20.0, 12.0), "hollow")),
            label: "places (outline)".to_owned(),
        },
        Key { swatch: swatch(&rect((5.0, 3.0), (12.0, 10.0), "f0")), label: "reprieved (filled)".to_owned() },
        Key {
            swatch: swatch(&line((1.0, 7.0), (21.0, 7.0), "tickmark")),
            label: "appellants (line across)".to_owned(),
        },
    ];
    Chart { title: title.to_owned(), says, pictures: pictures.concat(), key, table: cull_table(&culls, &all) }
}

fn bars(frame: Frame, all: &[Sums]) -> String {
    let highest =
        all.iter().map(|cull| cull.quota.max(cull.reprieved).max(cull.appellants)).max().unwrap_or(1);
    let plot = Plot::new(frame, (0.5, count(all.len()) + 0.5), (0.0, f64::from(highest.max(1))));
    let room = (plot.x.at(2.0) - plot.x.at(1.0)).min(44.0);
    let bar = |(number, cull): (usize, &Sums)| {
        let middle = plot.x.at(count(number + 1));
        let column = |value: u32, width: f64, class: &str| {
            let top = plot.y.at(f64::from(value));
            rect((middle - width / 2.0, top), (width, plot.y.at(0.0) - top), class)
        };
        let appellants = plot.y.at(f64::from(cull.appellants));
        let half = room * 0.42;
        column(cull.reprieved, room * 0.46, "f0")
            + &column(cull.quota, room * 0.7, "hollow")
            + &line((middle - half, appellants), (middle + half, appellants), "tickmark")
    };
    let grid = plot
        .grid(Labels { title: "number of the cull", tick: whole }, Labels { title: "agents", tick: whole });
    grid + &all.iter().enumerate().map(bar).collect::<String>()
}

fn cull_table(culls: &[Vec<&CullOutcome>], all: &[Sums]) -> Table {
    let head =
        ["cull", "date", "eligible", "idle", "on performance", "appellants", "places", "reprieved", "died"];
    let row = |(number, (runs, sums)): (usize, (&Vec<&CullOutcome>, &Sums))| {
        let figures = [
            sums.eligible,
            sums.idle,
            sums.performance,
            sums.appellants,
            sums.quota,
            sums.reprieved,
            sums.died,
        ];
        let at = runs.first().map_or_else(String::new, |cull| date(cull.at_ms));
        [(number + 1).to_string(), at].into_iter().chain(figures.iter().map(u32::to_string)).collect()
    };
    Table::new(&head, culls.iter().zip(all).enumerate().map(row).collect())
}
