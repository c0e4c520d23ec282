//! The page: one file that needs no script and nothing from elsewhere.

use super::chart::{COLOURS, Chart, Key, Table};
use super::group::{self, Group};
use super::text::{counted, date, dollars, escaped, figure, real_dollars};
use super::{compare, culls, lives, population, purses};
use crate::simulate::outcome::Outcome;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn page(title: &str, groups: &[Group<'_>]) -> String {
    let kinds = group::kinds(groups);
    let compared = if groups.len() > 1 { comparison(groups, &kinds) } else { String::new() };
    let sections: String =
        groups.iter().enumerate().map(|(number, group)| section(number, *group, &kinds)).collect();
    let safe = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{safe}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>{safe}</h1>\n{}{}\
         {compared}{sections}</main>\n</body>\n</html>\n",
        colours(),
        broken(groups),
        contents(groups)
    )
}

/// The classes of the series' colours.
fn colours() -> String {
    let class = |number: usize| {
        format!(
            ".a{number}{{fill:var(--c{number});fill-opacity:.72;stroke:var(--card);stroke-width:1px}}.f{number}{{fill:var(--c{number})}}\n"
        )
    };
    (0..COLOURS).map(class).collect()
}

/// What did not hold, before anything else: figures of a broken run are not to be trusted.
fn broken(groups: &[Group<'_>]) -> String {
    let line = |name: &str, run: &Outcome| {
        let failed = run.checks.iter().filter(|check| !check.held);
        let said = failed.map(|check| {
            let when = check.first_broken_ms.map_or_else(String::new, |at| format!(", first at {at}"));
            format!(
                "<p class=\"bad\">Broken: {}, seed {}: {}{}</p>\n",
                escaped(name),
                run.seed,
                escaped(&check.name),
                when
            )
        });
        said.collect::<String>()
    };
    let lines = groups.iter().flat_map(|group| group.runs.iter().map(|run| line(group.name, run)));
    let lines: String = lines.collect();
    let runs: usize = groups.iter().map(|group| group.runs.len()).sum();
    if runs == 0 {
        "<p>No run: there is nothing to report.</p>\n".to_owned()
    } else if lines.is_empty() {
        format!("<p class=\"good\">Every hard check held in {}.</p>\n", counted(runs, "run", "runs"))
    } else {
        lines
    }
}

fn contents(groups: &[Group<'_>]) -> String {
    if groups.len() < 2 {
        return String::new();
    }
    let link = |(number, group): (usize, &Group<'_>)| {
        format!("<li><a href=\"#rules-{number}\">{}</a></li>\n", escaped(group.name))
    };
    let links: String = groups.iter().enumerate().map(link).collect();
    format!(
        "<nav aria-label=\"contents\"><ul>\n<li><a href=\"#compared\">What the change did</a></li>\n{links}</ul></nav>\n"
    )
}

fn comparison(groups: &[Group<'_>], kinds: &[String]) -> String {
    let verdicts = compare::verdicts(groups, kinds);
    let lines: String = each(&verdicts, ("<p>", "</p>\n"));
    let verdict = if lines.is_empty() {
        String::new()
    } else {
        format!(
            "<div class=\"verdict\"><p><b>Did the change keep promising agents alive?</b></p>\n{lines}</div>\n"
        )
    };
    let first = [compare::lives_kept(groups, kinds, true), Some(compare::deaths(groups))];
    let first: String = first.iter().flatten().map(figure_of).collect();
    let rest: String = compare::lives_kept(groups, kinds, false).iter().map(figure_of).collect();
    let charts = format!("<div class=\"stack\">\n{first}</div>\n{rest}");
    format!(
        "<section id=\"compared\">\n<h2>What the change did</h2>\n{verdict}<div class=\"charts\">\n{charts}</div>\n</section>\n"
    )
}

fn section(number: usize, group: Group<'_>, kinds: &[String]) -> String {
    let charts = [
        population::by_kind(group, kinds),
        population::by_age(group),
        purses::balances(group),
        purses::treasury(group),
        culls::promises(group),
        culls::quota(group),
    ];
    let charts: String = charts.iter().map(figure_of).collect();
    let survival =
        figure_of(&lives::survivals(group, kinds)).replacen("<figure>", "<figure class=\"broad\">", 1);
    format!(
        "<section id=\"rules-{number}\">\n<h2>{}</h2>\n{}<div class=\"charts\">\n{charts}{survival}</div>\n</section>\n",
        escaped(group.name),
        facts(group)
    )
}

/// The runs in one table.
fn facts(group: Group<'_>) -> String {
    let row = |run: &Outcome| {
        let deaths = run.deaths;
        vec![
            run.seed.to_string(),
            run.agents.to_string(),
            run.days.to_string(),
            run.births.to_string(),
            deaths.idle.to_string(),
            deaths.performance.to_string(),
            deaths.starved.to_string(),
            run.starvation_dockets.len().to_string(),
            dollars(real_dollars(run.treasury_nano)),
            run.events.to_string(),
            run.journal_hash.chars().take(12).collect(),
        ]
    };
    let head = [
        "seed",
        "agents",
        "days",
        "births",
        "idle deaths",
        "on performance",
        "starved",
        "starvation dockets",
        "treasury",
        "events",
        "journal",
    ];
    let table = Table::new(&head, group.runs.iter().map(row).collect());
    let from = date(group.start());
    let days = group.runs.iter().map(|run| run.days).max().unwrap_or(0);
    let said =
        format!("{}, {} days from {from}.", counted(group.runs.len(), "run", "runs"), figure(days.into(), 0));
    format!("<p>{said}</p>\n{}", details(&table, "The runs in figures"))
}

fn figure_of(chart: &Chart) -> String {
    let Chart { title, says, pictures, key, table } = chart;
    let says = if says.is_empty() { String::new() } else { format!("<p>{}</p>\n", escaped(says)) };
    format!(
        "<figure>\n<figcaption><h3>{}</h3>\n{says}</figcaption>\n{pictures}{}{}</figure>\n",
        escaped(title),
        legend(key),
        details(table, "The figures")
    )
}

fn legend(key: &[Key]) -> String {
    if key.is_empty() {
        return String::new();
    }
    let entry = |entry: &Key| format!("<li>{}<span>{}</span></li>\n", entry.swatch, escaped(&entry.label));
    format!("<ul class=\"key\">\n{}</ul>\n", key.iter().map(entry).collect::<String>())
}

fn details(table: &Table, title: &str) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let head = each(&table.head, ("<th scope=\"col\">", "</th>"));
    let rows: Vec<String> = table.rows.iter().map(|row| each(row, ("<td>", "</td>"))).collect();
    let rows = format!(
        "<tr>{}</tr>
",
        rows.join(
            "</tr>
<tr>"
        )
    );
    let note =
        if table.note.is_empty() { String::new() } else { format!("<p>{}</p>\n", escaped(&table.note)) };
    format!(
        "<details><summary>{}</summary>\n{note}<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div></details>\n",
        escaped(title),
        escaped(title)
    )
}

/// Texts, escaped, each between two tags.
fn each(texts: &[String], (open, close): (&str, &str)) -> String {
    let mut all = String::new();
    for text in texts {
        all += open;
        all += &escaped(text);
        all += close;
    }
    all
}
