//! The report for people: what counts first and whole, the rest a line each, then what was read.

use policy::image::{Severity, Verdict};

use super::{Report, Reported};

/// The report as text, without colour.
pub(super) fn render(report: &Report) -> String {
    let mut out = vec![format!("image-audit  {}", report.source), String::new()];
    let (counting, rest): (Vec<_>, Vec<_>) =
        report.findings.iter().partition(|r| report.policy.counts(&r.finding));
    for reported in &counting {
        whole(report, reported, &mut out);
    }
    if !rest.is_empty() {
        out.push("Under the threshold, or allowed:".into());
        out.extend(rest.iter().map(|reported| line(reported)));
        out.push(String::new());
    }
    let idle: Vec<_> = report.idle_allowances().collect();
    if !idle.is_empty() {
        out.push("Allowances that did nothing:".into());
        out.extend(idle.iter().map(|(allow, why)| {
            format!(
                "  {}  {}  {why} ({}, until {})",
                allow.rule.name(),
                allow.path,
                safe(&allow.owner),
                allow.expires
            )
        }));
        out.push(String::new());
    }
    if !report.is_complete() {
        out.push("Not read, so that nothing can be promised:".into());
        out.extend(report.incomplete.iter().map(|m| format!("  {}: {}", m.where_, m.why)));
        out.push(String::new());
    }
    let read = report.read;
    out.push(format!(
        "Read     {}, {}, {}, {} not analysed",
        count(read.layers, "layer"),
        count(read.entries_seen, "entry"),
        count(read.bytes_seen, "byte"),
        read.entries_unanalysed
    ));
    out.push(format!("Found    {}", tally(report)));
    out.push(format!("Verdict  {}", verdict(report, counting.len())));
    out.push(String::new());
    out.join("\n")
}

/// A finding that counts: everything that is known of it.
fn whole(report: &Report, reported: &Reported, out: &mut Vec<String>) {
    let finding = &reported.finding;
    let class = finding.class.map(|class| format!(" ({})", class.name())).unwrap_or_default();
    let place = if finding.path.is_root() { "/".to_owned() } else { finding.path.to_string() };
    out.push(format!(
        "{:<7} {}{class}  {place}",
        finding.severity.name().to_uppercase(),
        finding.rule.name()
    ));
    let mut row = |what: &str, text: &str| wrap(what, text, out);
    if report.images.len() > 1
        && let Some(image) = report.images.get(reported.image)
    {
        row("image", image.platform.as_deref().unwrap_or("of no named platform"));
    }
    for name in finding.names.iter().filter(|name| **name != finding.path) {
        row("also", &name.to_string());
    }
    row("view", finding.visibility.name());
    if let Some(layer) = &reported.layer {
        let of = report.images.get(reported.image).map_or(0, |image| image.layers.len());
        // Twelve digits tell layers apart; the whole digest is in the JSON report.
        let digest: String = layer.diff_id.to_string().chars().take("sha256:".len() + 12).collect();
        row("layer", &format!("{} of {of}  {digest}", layer.index + 1));
        row("made by", &layer.created_by.as_deref().map_or("unmapped".into(), safe));
    }
    for evidence in &finding.evidence {
        row("because", &format!("{} [{}]", evidence.what, evidence.rung.name()));
    }
    if let Some(cis) = finding.rule.cis() {
        row("cis", cis);
    }
    row("remedy", &finding.remedy);
    out.push(String::new());
}

/// A label and its text, wrapped between words to 80 columns.
fn wrap(label: &str, text: &str, out: &mut Vec<String>) {
    let mut line = format!("        {label:<9}");
    for word in text.split(' ') {
        let fits = line.chars().count() + 1 + word.chars().count() <= 80;
        if !fits && !line.trim_start().is_empty() {
            out.push(std::mem::replace(&mut line, " ".repeat(17)));
        }
        line = format!("{line} {word}");
    }
    out.push(line);
}

/// A finding that does not count, on one line.
fn line(reported: &Reported) -> String {
    let finding = &reported.finding;
    let class = finding.class.map(|class| format!(" ({})", class.name())).unwrap_or_default();
    let view = format!("  {}", finding.visibility.name());
    let allowed = reported.allowed_by.as_ref().map(|by| format!("  allowed: {by}")).unwrap_or_default();
    format!(
        "  {:<7} {}{class}  {}{view}{allowed}",
        finding.severity.name(),
        finding.rule.name(),
        finding.path
    )
}

fn tally(report: &Report) -> String {
    let of = |severity: Severity| report.findings.iter().filter(|r| r.finding.severity == severity).count();
    let counts = Severity::ALL.iter().rev().map(|&severity| (of(severity), severity.name()));
    let counts: Vec<_> = counts.filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    if counts.is_empty() { "nothing".into() } else { counts.join(", ") }
}

fn verdict(report: &Report, counting: usize) -> String {
    match report.verdict() {
        Verdict::Clean => "clean".into(),
        Verdict::Refused => {
            format!("refused: {} at or over the threshold", count(counting as u64, "finding"))
        }
        Verdict::CouldNotTell if report.is_complete() => {
            format!("could not tell: engines disagree about {}", count(counting as u64, "finding"))
        }
        Verdict::CouldNotTell => "could not tell: not everything was read".into(),
    }
}

fn count(number: u64, noun: &str) -> String {
    match (number, noun) {
        (1, noun) => format!("1 {noun}"),
        (number, "entry") => format!("{number} entries"),
        (number, noun) => format!("{number} {noun}s"),
    }
}

/// Text of the image, on one line and unable to redraw the terminal.
fn safe(text: &str) -> String {
    policy::image::escape(text.as_bytes())
}
