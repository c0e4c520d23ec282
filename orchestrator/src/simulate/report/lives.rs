//! How long agents live, by kind.

use policy::time::DAY_MS;

use super::chart::{Chart, Key, Labels, PANEL, Plot, Table, line, polyline, svg, swatch};
use super::group::{Group, is_promising};
use super::population::empty;
use super::survival::{Drop, Seen, median_ms, survival};
use super::text::{escaped, figure, percent, real, shortened};

/// One panel a kind: its curve, and that of all agents behind it.
pub(super) fn survivals(group: Group<'_>, kinds: &[String]) -> Chart {
    let title = "Survival by kind: the share that is still alive at each age";
    let all = group.seen(None);
    let longest = all.iter().map(|life| life.age_ms).max().unwrap_or(0);
    if longest == 0 {
        return empty(title, "No agent was seen alive for any time: there is no survival to draw.");
    }
    let everyone = survival(&all);
    let curves: Vec<(&String, Vec<Seen>, Vec<Drop>)> = kinds
        .iter()
        .map(|kind| (kind, group.seen(Some(kind))))
        .filter(|(_, lives)| !lives.is_empty())
        .map(|(kind, lives)| (kind, lives.clone(), survival(&lives)))
        .collect();
    let panels = curves.iter().map(|(kind, lives, drops)| panel(kind, lives, drops, (&everyone, longest)));
    let pictures = format!("<div class=\"panels\">\n{}</div>\n", panels.collect::<String>());
    let rows = curves.iter().map(|(kind, lives, drops)| row(kind, lives, drops, longest)).collect();
    let says = format!(
        "Of all {} lives, {} are estimated to reach {} days. Kaplan\u{2013}Meier: agents alive at the end count as far as they were seen.",
        all.len(),
        percent(end(&everyone)),
        figure(days(longest), 0)
    );
    Chart { title: title.to_owned(), says, pictures, key: key(), table: Table::new(&HEAD, rows) }
}

const HEAD: [&str; 6] =
    ["kind", "lives", "deaths", "half are dead by day", "share alive at the last age", "last age, days"];

fn row(kind: &str, lives: &[Seen], drops: &[Drop], longest: i64) -> Vec<String> {
    let last = lives.iter().map(|life| life.age_ms).max().unwrap_or(longest);
    vec![
        kind.to_owned(),
        lives.len().to_string(),
        lives.iter().filter(|life| life.died).count().to_string(),
        median_ms(drops).map_or_else(|| "not reached".to_owned(), |age| figure(days(age), 1)),
        percent(end(drops)),
        figure(days(last), 1),
    ]
}

fn panel(kind: &str, lives: &[Seen], drops: &[Drop], (everyone, longest): (&[Drop], i64)) -> String {
    let last = lives.iter().map(|life| life.age_ms).max().unwrap_or(longest);
    let says = format!(
        "{kind}: of {} lives, {} reach {} days.",
        lives.len(),
        percent(end(drops)),
        figure(days(last), 0)
    );
    let plot = Plot::new(PANEL, (0.0, days(longest)), (0.0, 1.0));
    let curve = |drops: &[Drop], last: i64, class: &str| polyline(&plot.all(steps(drops, last)), class);
    let grid =
        plot.grid(Labels { title: "", tick: |value| figure(value, 0) }, Labels { title: "", tick: percent });
    let body = grid + &curve(everyone, longest, "faint") + &curve(drops, last, "strong");
    let mark = if is_promising(kind) { " <small>income grows late</small>" } else { "" };
    let heading =
        format!("<b>{}</b> {} of {}{mark}", escaped(&shortened(kind, 24)), alive(lives), lives.len());
    format!("<div class=\"small\"><p>{heading}</p>{}</div>\n", svg(PANEL, &says, &body))
}

fn alive(lives: &[Seen]) -> usize {
    lives.iter().filter(|life| !life.died).count()
}

/// The corners of a falling stair.
fn steps(drops: &[Drop], last_ms: i64) -> Vec<(f64, f64)> {
    let mut corners = vec![(0.0, 1.0)];
    let mut share = 1.0;
    for drop in drops {
        corners.push((days(drop.age_ms), share));
        share = drop.share;
        corners.push((days(drop.age_ms), share));
    }
    corners.push((days(last_ms), share));
    corners
}

fn end(drops: &[Drop]) -> f64 {
    drops.last().map_or(1.0, |drop| drop.share)
}

fn days(ms: i64) -> f64 {
    real(ms) / real(DAY_MS)
}

fn key() -> Vec<Key> {
    vec![
        Key {
            swatch: swatch(&line((0.0, 7.0), (22.0, 7.0), "strong")),
            label: "this kind (solid); across: age in days; \u{201c}2 of 5\u{201d}: alive at the end, of all ever born".to_owned(),
        },
        Key { swatch: swatch(&line((0.0, 7.0), (22.0, 7.0), "faint")), label: "all agents (dashed)".to_owned() },
    ]
}
