//! Drawing: one picture in two sizes, its key, and the figures behind it.
//!
//! Colours are classes that the page's style resolves for light and dark. Nothing is told by colour alone: areas
//! carry letters, groups have shapes of their own, and every chart has its table.

use super::axis::Axis;
use super::text::{count, escaped, figure};

/// How many colours the page knows.
pub(super) const COLOURS: usize = 11;

/// One chart.
#[derive(Debug)]
pub(super) struct Chart {
    /// What it shows and what to read from it.
    pub title: String,
    /// What these figures come to, in a sentence or two.
    pub says: String,
    /// SVG, one or more.
    pub pictures: String,
    /// What its marks mean; empty where the marks are labelled in place.
    pub key: Vec<Key>,
    /// Its figures.
    pub table: Table,
}

/// One entry of a key.
#[derive(Debug)]
pub(super) struct Key {
    /// A small picture of the mark.
    pub swatch: String,
    /// What it stands for.
    pub label: String,
}

/// The figures behind a chart, as text.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Column headings.
    pub head: Vec<String>,
    /// Rows; the first cell of each names it.
    pub rows: Vec<Vec<String>>,
    /// What is left out of it, if anything.
    pub note: String,
}

impl Table {
    pub(super) fn new(head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { head: head.iter().map(|word| (*word).to_owned()).collect(), rows, note: String::new() }
    }
}

/// The size of a picture in pixels, and on which screens it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Its class: `wide`, `narrow` or `panel`.
    pub class: &'static str,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// For desks.
pub(super) const WIDE: Frame = Frame { class: "wide", width: 560.0, height: 290.0 };
/// For phones.
pub(super) const NARROW: Frame = Frame { class: "narrow", width: 326.0, height: 250.0 };
/// One of many side by side.
pub(super) const PANEL: Frame = Frame { class: "panel", width: 156.0, height: 132.0 };

impl Frame {
    /// The same, of another height.
    pub(super) fn tall(self, height: f64) -> Self {
        Self { height, ..self }
    }

    /// Whether it is a phone's.
    pub(super) fn is_narrow(self) -> bool {
        self.width < WIDE.width
    }

    /// About how many ticks its width has room for.
    pub(super) fn ticks(self) -> usize {
        if self.width < 200.0 {
            2
        } else if self.is_narrow() {
            4
        } else {
            7
        }
    }
}

/// A picture drawn for desks and for phones.
pub(super) fn twice(says: &str, draw: impl Fn(Frame) -> String) -> String {
    [WIDE, NARROW].map(|frame| svg(frame, says, &draw(frame))).concat()
}

/// One picture.
pub(super) fn svg(frame: Frame, says: &str, body: &str) -> String {
    let Frame { class, width, height } = frame;
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"{}\">{body}</svg>\n",
        figure(width, 0),
        figure(height, 0),
        figure(width, 0),
        figure(height, 0),
        escaped(says)
    )
}

/// A picture of nothing, which says so.
pub(super) fn nothing(why: &str) -> String {
    twice(why, |frame| {
        let frame = frame.tall(frame.height / 3.0);
        words(frame.width / 2.0, frame.height / 2.0, "m none", why)
    })
}

/// A point in pixels.
pub(super) fn px(value: f64) -> String {
    figure(value, 1)
}

/// A text; `class` may begin with `m` (centred) or `e` (ends here).
pub(super) fn words(x: f64, y: f64, class: &str, text: &str) -> String {
    format!("<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>", px(x), px(y), escaped(text))
}

/// A straight line.
pub(super) fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) -> String {
    format!("<path d=\"M{} {}L{} {}\" class=\"{class}\"/>", px(x1), px(y1), px(x2), px(y2))
}

/// A line through points.
pub(super) fn polyline(points: &[(f64, f64)], class: &str) -> String {
    if points.is_empty() {
        return String::new();
    }
    format!("<path d=\"M{}\" class=\"{class}\"/>", path(points))
}

/// The area between two lines over the same points of the x axis.
pub(super) fn area(upper: &[(f64, f64)], lower: &[(f64, f64)], class: &str) -> String {
    if upper.is_empty() {
        return String::new();
    }
    let back: Vec<(f64, f64)> = lower.iter().rev().copied().collect();
    format!("<path d=\"M{}L{}Z\" class=\"{class}\"/>", path(upper), path(&back))
}

fn path(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect::<Vec<_>>().join("L")
}

/// A rectangle from its upper left corner.
pub(super) fn rect((x, y): (f64, f64), (width, height): (f64, f64), class: &str) -> String {
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
        px(x),
        px(y),
        px(width.max(0.0)),
        px(height.max(0.0))
    )
}

/// One of four shapes, told apart without colour.
pub(super) fn shape(number: usize, (x, y): (f64, f64)) -> String {
    let class = format!("f{}", colour(number));
    match number % 4 {
        0 => format!("<circle cx=\"{}\" cy=\"{}\" r=\"5\" class=\"{class}\"/>", px(x), px(y)),
        1 => rect((x - 4.5, y - 4.5), (9.0, 9.0), &class),
        2 => {
            let points = [(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)];
            format!("<path d=\"M{}Z\" class=\"{class}\"/>", path(&points))
        }
        _ => {
            let points = [(x, y - 6.0), (x + 6.0, y + 5.0), (x - 6.0, y + 5.0)];
            format!("<path d=\"M{}Z\" class=\"{class}\"/>", path(&points))
        }
    }
}

/// The colour of the series of this number.
pub(super) const fn colour(number: usize) -> usize {
    number % COLOURS
}

/// The letter of the series of this number: `A` to `Z`, then `A` again.
pub(super) fn letter(number: usize) -> char {
    u8::try_from(number % 26).map_or('A', |place| char::from(b'A' + place))
}

/// A small picture for a key.
pub(super) fn swatch(body: &str) -> String {
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 22 14\" width=\"22\" height=\"14\" aria-hidden=\"true\">{body}</svg>"
    )
}

/// How an axis is labelled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labels<'a> {
    /// What it measures, and in what.
    pub title: &'a str,
    /// How a tick reads.
    pub tick: fn(f64) -> String,
}

/// Two axes in a frame.
#[derive(Debug)]
pub(super) struct Plot {
    frame: Frame,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
}

impl Plot {
    /// Axes for `x` exactly, and for `y` up to its next ticks.
    pub(super) fn new(frame: Frame, x: (f64, f64), y: (f64, f64)) -> Self {
        let (left, right, top, bottom) = margins(frame);
        let high = if y.1 > y.0 { y.1 } else { y.0 + 1.0 };
        Self {
            frame,
            x: Axis::exact(x.0, x.1, (left, frame.width - right), frame.ticks()),
            y: Axis::to_ticks(y.0, high, (frame.height - bottom, top), frame.ticks().min(5)),
        }
    }

    /// A value's place.
    pub(super) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// The places of a series.
    pub(super) fn all(&self, points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
        points.into_iter().map(|point| self.at(point)).collect()
    }

    /// Lines, ticks and titles.
    pub(super) fn grid(&self, x: Labels<'_>, y: Labels<'_>) -> String {
        let (left, right, top, bottom) = margins(self.frame);
        let (width, height) = (self.frame.width, self.frame.height);
        let rows = self.y.ticks.iter().map(|tick| {
            let at = self.y.at(*tick);
            let class = if *tick == 0.0 { "zero" } else { "grid" };
            let label = (y.tick)(*tick);
            if label.is_empty() {
                return label;
            }
            line((left, at), (width - right, at), class) + &words(left - 6.0, at + 4.0, "e tick", &label)
        });
        let columns = self.x.ticks.iter().map(|tick| {
            let at = self.x.at(*tick);
            let label = (x.tick)(*tick);
            if label.is_empty() {
                return label;
            }
            line((at, height - bottom), (at, height - bottom + 4.0), "zero")
                + &words(at, height - bottom + 16.0, "m tick", &label)
        });
        let titles = words(4.0, top - 12.0, "title", y.title)
            + &words(width - right, height - 4.0, "e title", x.title);
        rows.chain(columns).collect::<String>() + &titles
    }
}

/// Left, right, top, bottom.
fn margins(frame: Frame) -> (f64, f64, f64, f64) {
    if frame.width < 200.0 { (36.0, 10.0, 8.0, 30.0) } else { (52.0, 14.0, 28.0, 36.0) }
}

/// Layers put on one another: the upper edge of each. The last is the total.
pub(super) fn stack(layers: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut below: Vec<f64> = Vec::new();
    layers
        .iter()
        .map(|layer| {
            below.resize(layer.len().max(below.len()), 0.0);
            for (sum, value) in below.iter_mut().zip(layer) {
                *sum += value;
            }
            below.clone()
        })
        .collect()
}

/// Stacked areas over the same points of the x axis, a letter in each where there is room.
pub(super) fn stacked(plot: &Plot, at: &[f64], layers: &[Vec<f64>]) -> String {
    let edges = stack(layers);
    let floor = vec![0.0; at.len()];
    let mut below = &floor;
    let (mut areas, mut letters) = (String::new(), String::new());
    for (number, upper) in edges.iter().enumerate() {
        let pixels = |edge: &Vec<f64>| plot.all(at.iter().copied().zip(edge.iter().copied()));
        let (high, low) = (pixels(upper), pixels(below));
        areas += &area(&high, &low, &format!("a{}", colour(number)));
        letters += &lettered(&high, &low, letter(number));
        below = upper;
    }
    areas + &letters
}

/// A letter in a layer, in the middle of where it is about as thick as anywhere; nothing where it is too thin for one.
fn lettered(high: &[(f64, f64)], low: &[(f64, f64)], letter: char) -> String {
    let inner = high.len() / 12;
    let places = || high.iter().zip(low).skip(inner).take(high.len().saturating_sub(2 * inner));
    let thickest = places().map(|(up, down)| down.1 - up.1).fold(0.0, f64::max);
    let thick: Vec<_> = places().filter(|(up, down)| down.1 - up.1 >= thickest * 0.9).collect();
    match thick.get(thick.len() / 2) {
        Some((up, down)) if thickest >= 12.0 => {
            words(up.0, f64::midpoint(up.1, down.1) + 4.0, "m letter", &letter.to_string())
        }
        Some(_) | None => String::new(),
    }
}

/// The key of stacked areas.
pub(super) fn area_key(names: &[String]) -> Vec<Key> {
    let entry = |(number, name): (usize, &String)| Key {
        swatch: swatch(
            &(rect((0.0, 0.0), (22.0, 14.0), &format!("a{}", colour(number)))
                + &words(11.0, 11.0, "m letter", &letter(number).to_string())),
        ),
        label: name.clone(),
    };
    names.iter().enumerate().map(entry).collect()
}

/// Keeps about `most` of many points, the first and the last among them.
pub(super) fn thinned(length: usize, most: usize) -> Vec<usize> {
    let every = length.div_ceil(most.max(1)).max(1);
    let mut kept: Vec<usize> = (0..length).step_by(every).collect();
    if let Some(last) = length.checked_sub(1)
        && kept.last() != Some(&last)
    {
        kept.push(last);
    }
    kept
}

/// The mean of what there is.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stacked_areas_end_at_the_total(layers in proptest::collection::vec(proptest::collection::vec(0.0_f64..1e6, 7), 1..12)) {
            let edges = stack(&layers);
            prop_assert_eq!(edges.len(), layers.len());
            for place in 0..7 {
                let total: f64 = layers.iter().map(|layer| layer[place]).sum();
                let top = edges[edges.len() - 1][place];
                prop_assert!((top - total).abs() <= total * 1e-12 + 1e-12, "{} {}", top, total);
                for pair in edges.windows(2) {
                    prop_assert!(pair[0][place] <= pair[1][place]);
                }
            }
        }

        #[test]
        fn thinning_keeps_both_ends(length in 1_usize..5000, most in 2_usize..400) {
            let kept = thinned(length, most);
            prop_assert_eq!(kept[0], 0);
            prop_assert_eq!(kept[kept.len() - 1], length - 1);
            prop_assert!(kept.len() <= most + 1);
        }
    }

    #[test]
    fn a_picture_names_itself_for_who_cannot_see_it() {
        let picture = svg(WIDE, "5 of <6> live", "");
        assert!(picture.contains("role=\"img\" aria-label=\"5 of &lt;6&gt; live\""), "{picture}");
    }

    #[test]
    fn an_empty_series_says_so() {
        let picture = nothing("no cull ran");
        assert!(picture.contains(">no cull ran</text>"), "{picture}");
        assert_eq!(polyline(&[], "l0"), "");
        assert_eq!(area(&[], &[], "a0"), "");
    }
}
