//! Who is alive, by kind and by age.

use super::chart::{Chart, Labels, Plot, Table, area_key, nothing, stack, stacked, twice};
use super::group::{Group, Midnights};
use super::text::{figure, whole};

/// The bands of [`crate::simulate::outcome::Day::by_age`].
const AGES: [&str; 5] =
    ["under 10 days", "10 to 19 days", "20 to 39 days", "40 to 79 days", "80 days and more"];

/// Stacked areas by kind.
pub(super) fn by_kind(group: Group<'_>, kinds: &[String]) -> Chart {
    let midnights = group.midnights();
    let layers: Vec<Vec<f64>> = kinds
        .iter()
        .map(|kind| group.means(&midnights, |day| day.by_kind.get(kind).copied().unwrap_or(0).into()))
        .collect();
    population(
        group,
        &midnights,
        "Population by kind: which kinds are left, and when the others went",
        kinds,
        &layers,
    )
}

/// Stacked areas by age.
pub(super) fn by_age(group: Group<'_>) -> Chart {
    let midnights = group.midnights();
    let bands: Vec<String> = AGES.iter().map(|band| (*band).to_owned()).collect();
    let layers: Vec<Vec<f64>> = (0..AGES.len())
        .map(|band| group.means(&midnights, |day| day.by_age.get(band).copied().unwrap_or(0).into()))
        .collect();
    population(
        group,
        &midnights,
        "Population by age: whether agents grow old or are replaced",
        &bands,
        &layers,
    )
}

fn population(
    group: Group<'_>,
    midnights: &Midnights,
    title: &str,
    names: &[String],
    layers: &[Vec<f64>],
) -> Chart {
    let days = &midnights.days;
    let totals = stack(layers).pop().unwrap_or_default();
    let Some((first, last)) = totals.first().zip(totals.last()).filter(|_| !days.is_empty()) else {
        return empty(title, "No midnight passed: there is no population to draw.");
    };
    let largest = names.iter().zip(layers).filter_map(|(name, layer)| Some((name, layer.last()?)));
    let largest = largest.max_by(|one, other| one.1.total_cmp(other.1)).filter(|(_, living)| **living > 0.0);
    let most = largest.map_or_else(String::new, |(name, living)| {
        format!(" The largest part at the end: {name}, {}.", figure(*living, 1))
    });
    let says = format!(
        "{} living agents at the first midnight, {} at the last.{most}{}",
        figure(*first, 1),
        figure(*last, 1),
        group.over_seeds()
    );
    let highest = totals.iter().copied().fold(0.0, f64::max);
    let span = span(midnights);
    let pictures = twice(&format!("{title}. {says}"), |frame| {
        let plot = Plot::new(frame, span, (0.0, highest));
        stacked(&plot, days, layers)
            + &plot.grid(
                Labels { title: "day of the run", tick: whole },
                Labels { title: "living agents", tick: whole },
            )
    });
    let table = table(midnights, names, layers, &totals);
    Chart { title: title.to_owned(), says, pictures, key: area_key(names), table }
}

fn table(midnights: &Midnights, names: &[String], layers: &[Vec<f64>], totals: &[f64]) -> Table {
    let mut head = vec!["day".to_owned()];
    head.extend(names.iter().cloned());
    head.push("all".to_owned());
    let row = |(place, day): (usize, &f64)| {
        let mut cells = vec![figure(*day, 1)];
        cells.extend(layers.iter().map(|layer| figure(layer.get(place).copied().unwrap_or(0.0), 1)));
        cells.push(figure(totals.get(place).copied().unwrap_or(0.0), 1));
        cells
    };
    let rows = midnights.days.iter().enumerate().map(row).collect();
    Table { head, rows, note: left_out(midnights) }
}

/// Says where a table has not every midnight.
pub(super) fn left_out(midnights: &Midnights) -> String {
    if midnights.thinned { "Some midnights are left out: the run is long.".to_owned() } else { String::new() }
}

/// A chart of nothing.
pub(super) fn empty(title: &str, why: &str) -> Chart {
    Chart {
        title: title.to_owned(),
        says: String::new(),
        pictures: nothing(why),
        key: Vec::new(),
        table: Table::default(),
    }
}

/// The span of a run's days, for a chart's x axis.
pub(super) fn span(midnights: &Midnights) -> (f64, f64) {
    (midnights.days.first().copied().unwrap_or(0.0), midnights.days.last().copied().unwrap_or(1.0))
}
