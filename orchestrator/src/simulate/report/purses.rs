//! What agents and treasury have.

use super::chart::{Chart, Key, Labels, Plot, Table, area, line, mean, polyline, swatch, twice};
use super::group::{Group, Midnights};
use super::population::{empty, left_out, span};
use super::text::{dollars, figure, real_dollars, whole};

/// Balances of the living: median, the middle half, and from the tenth to the ninetieth percentile.
pub(super) fn balances(group: Group<'_>) -> Chart {
    let title = "Balances: how far apart rich and poor agents are";
    let midnights = group.midnights();
    let bands: Vec<Vec<Option<f64>>> = (0..5)
        .map(|place| {
            let of_day = |day: &crate::simulate::outcome::Day| {
                day.balances_nano.as_ref()?.get(place).map(|money| real_dollars(*money))
            };
            group.values(&midnights, of_day).iter().map(|values| mean(values)).collect()
        })
        .collect();
    let known = known(&midnights, &bands);
    let Some((_, last)) = known.last() else {
        return empty(title, "Nobody lived at a midnight: there is no balance to draw.");
    };
    let [low, _, median, _, high] = *last;
    let says = format!(
        "At the last midnight with living agents, half have less than {}; the poorest tenth under {}, the richest tenth over {}.{}",
        dollars(median),
        dollars(low),
        dollars(high),
        group.over_seeds()
    );
    let pictures = twice(&format!("{title}. {says}"), |frame| fan(frame, span(&midnights), &known));
    let head = ["day", "10th percentile", "25th", "median", "75th", "90th percentile"];
    let row = |(day, money): &(f64, [f64; 5])| {
        [figure(*day, 1)].into_iter().chain(money.iter().map(|value| dollars(*value))).collect()
    };
    let table = Table { note: left_out(&midnights), ..Table::new(&head, known.iter().map(row).collect()) };
    Chart { title: title.to_owned(), says, pictures, key: fan_key(), table }
}

/// The days on which somebody lived, with the five figures.
fn known(midnights: &Midnights, bands: &[Vec<Option<f64>>]) -> Vec<(f64, [f64; 5])> {
    let at = |(place, day): (usize, &f64)| {
        let mut five = [0.0; 5];
        for (value, band) in five.iter_mut().zip(bands) {
            *value = band.get(place).copied().flatten()?;
        }
        Some((*day, five))
    };
    midnights.days.iter().enumerate().filter_map(at).collect()
}

fn fan(frame: super::chart::Frame, days: (f64, f64), known: &[(f64, [f64; 5])]) -> String {
    let all = known.iter().flat_map(|(_, five)| five.iter().copied());
    let (low, high) =
        all.fold((0.0, 0.0), |(low, high), value| (f64::min(low, value), f64::max(high, value)));
    let plot = Plot::new(frame, days, (low, high));
    let edge = |pick: fn(&[f64; 5]) -> f64| plot.all(known.iter().map(|(day, five)| (*day, pick(five))));
    area(&edge(|five| five[4]), &edge(|five| five[0]), "outer")
        + &area(&edge(|five| five[3]), &edge(|five| five[1]), "inner")
        + &polyline(&edge(|five| five[2]), "strong")
        + &plot.grid(
            Labels { title: "day of the run", tick: whole },
            Labels { title: "available balance, dollars", tick: dollars },
        )
}

fn fan_key() -> Vec<Key> {
    let band = |class: &str| swatch(&super::chart::rect((0.0, 0.0), (22.0, 14.0), class));
    vec![
        Key { swatch: swatch(&line((0.0, 7.0), (22.0, 7.0), "strong")), label: "median (line)".to_owned() },
        Key { swatch: band("inner"), label: "middle half (inner band)".to_owned() },
        Key { swatch: band("outer"), label: "10th to 90th percentile (outer band)".to_owned() },
    ]
}

/// The treasury's available balance.
pub(super) fn treasury(group: Group<'_>) -> Chart {
    let title = "Treasury: how long the platform can pay for births, appeals and reprieves";
    let midnights = group.midnights();
    let values = group.values(&midnights, |day| Some(real_dollars(day.treasury_nano)));
    let rows: Vec<(f64, [f64; 3])> = midnights
        .days
        .iter()
        .zip(&values)
        .filter_map(|(day, values)| {
            let least = values.iter().copied().reduce(f64::min)?;
            Some((*day, [least, mean(values)?, values.iter().copied().reduce(f64::max)?]))
        })
        .collect();
    let Some(((_, [_, first, _]), (_, [lowest, end, highest]))) = rows.first().zip(rows.last()) else {
        return empty(title, "No midnight passed: there is no treasury to draw.");
    };
    let several = group.runs.len() > 1;
    let spread = if several {
        format!(" Between seeds it ends at {} to {}.", dollars(*lowest), dollars(*highest))
    } else {
        String::new()
    };
    let says = format!(
        "From {} at the first midnight to {} at the last.{spread}{}",
        dollars(*first),
        dollars(*end),
        group.over_seeds()
    );
    let pictures = twice(&format!("{title}. {says}"), |frame| drawn_treasury(frame, span(&midnights), &rows));
    let head = ["day", "lowest seed", "mean", "highest seed"];
    let row = |(day, money): &(f64, [f64; 3])| {
        [figure(*day, 1)].into_iter().chain(money.iter().map(|value| dollars(*value))).collect()
    };
    let table = Table { note: left_out(&midnights), ..Table::new(&head, rows.iter().map(row).collect()) };
    Chart { title: title.to_owned(), says, pictures, key: treasury_key(several), table }
}

fn treasury_key(several: bool) -> Vec<Key> {
    if !several {
        return Vec::new();
    }
    vec![
        Key { swatch: swatch(&line((0.0, 7.0), (22.0, 7.0), "strong")), label: "mean (line)".to_owned() },
        Key {
            swatch: swatch(&super::chart::rect((0.0, 0.0), (22.0, 14.0), "outer")),
            label: "lowest to highest seed (band)".to_owned(),
        },
    ]
}

fn drawn_treasury(frame: super::chart::Frame, days: (f64, f64), rows: &[(f64, [f64; 3])]) -> String {
    let low = rows.iter().map(|(_, [low, _, _])| *low).fold(0.0, f64::min);
    let high = rows.iter().map(|(_, [_, _, high])| *high).fold(0.0, f64::max);
    let plot = Plot::new(frame, days, (low, high));
    let edge = |pick: fn(&[f64; 3]) -> f64| plot.all(rows.iter().map(|(day, three)| (*day, pick(three))));
    area(&edge(|three| three[2]), &edge(|three| three[0]), "outer")
        + &polyline(&edge(|three| three[1]), "strong")
        + &plot.grid(
            Labels { title: "day of the run", tick: whole },
            Labels { title: "available, dollars", tick: dollars },
        )
}
