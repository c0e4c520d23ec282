//! Text for pages: escaped words, and figures as people read them. The same value gives the same bytes everywhere.

use policy::{Instant, Money};

/// Text of unknown origin as it may stand in HTML or SVG, in an element or a quoted attribute.
///
/// Control characters become spaces: XML has no way to write most of them.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            control if control.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

/// At most `characters` of a text, the last of them an ellipsis where it was longer.
pub(super) fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}

/// A figure with at most `decimals`, without trailing zeros.
pub(super) fn figure(value: f64, decimals: usize) -> String {
    let shown = format!("{value:.decimals$}");
    let short = if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.') } else { &shown };
    // What rounds to nothing has no sign.
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// A whole number; nothing for what lies between two, so that an axis of counts has no halves.
pub(super) fn whole(value: f64) -> String {
    if (value - value.round()).abs() < 1e-6 { figure(value, 0) } else { String::new() }
}

/// Dollars: `$3.2`, `−$12`, `$1.5k`.
pub(super) fn dollars(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = if size >= 1e6 {
        (size / 1e6, "M")
    } else if size >= 1e4 {
        (size / 1e3, "k")
    } else {
        (size, "")
    };
    let shown = figure(scaled, if scaled >= 100.0 { 0 } else { 2 });
    let sign = if value < 0.0 && shown != "0" { "\u{2212}" } else { "" };
    format!("{sign}${shown}{unit}")
}

/// A share of one in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", figure(share * 100.0, 0))
}

/// A day, without its time.
pub(super) fn date(at: Instant) -> String {
    at.to_string().chars().take(10).collect()
}

/// A sum of money as a real number of dollars: for charts, which round to a tenth of a pixel.
pub(super) fn real_dollars(money: Money) -> f64 {
    real(money.nano()) / 1e9
}

/// A whole number as a real one.
#[expect(clippy::cast_precision_loss, reason = "a chart shows no more than five digits")]
pub(super) const fn real(value: i64) -> f64 {
    value as f64
}

/// A count as a real number.
#[expect(clippy::cast_precision_loss, reason = "a chart shows no more than five digits")]
pub(super) const fn count(value: usize) -> f64 {
    value as f64
}

/// `3 agents`, `1 agent`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_in_a_text_is_inert() {
        assert_eq!(escaped("<b a='1'>\"&\u{0}"), "&lt;b a=&#39;1&#39;&gt;&quot;&amp; ");
        assert_eq!(escaped("late bloomer, 20% of $5"), "late bloomer, 20% of $5");
    }

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(figure(2.50, 2), "2.5");
        assert_eq!(figure(-0.001, 2), "0");
        assert_eq!(figure(100.0, 0), "100");
        assert_eq!(dollars(-12.0), "\u{2212}$12");
        assert_eq!(dollars(15_300.0), "$15.3k");
        assert_eq!(percent(0.256), "26%");
        assert_eq!(shortened("busy-worker", 6), "busy-\u{2026}");
        assert_eq!(shortened("worker", 6), "worker");
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_element(text: String) {
            let safe = escaped(&text);
            prop_assert!(!safe.contains(['<', '>', '"', '\'']));
        }
    }
}
