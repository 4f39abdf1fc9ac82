//! Charts as inline SVG.
//!
//! Written here and not by a charting library, because the figures must follow the reader's light
//! or dark theme, print in black, and be readable on a phone without a script: every colour is a
//! class that the page's style sheet defines, and a chart is as wide as a phone. What libraries add
//! (scales of many kinds, interaction) is of no use in a report.

use std::fmt::Write;

use super::figure;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;
/// How many classes for lines and bars the style sheet has.
pub const COLOURS: usize = 8;

/// Text in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// x, y, and the spread of y if there is one.
pub type Point = (f64, f64, Option<(f64, f64)>);

/// A line of a chart.
pub struct Line {
    /// For the legend.
    pub label: String,
    /// Which colour.
    pub colour: usize,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A bar with its spread.
pub struct Bar {
    /// Beside it.
    pub label: String,
    /// Which colour.
    pub colour: usize,
    /// Median, lowest, highest.
    pub value: (f64, f64, f64),
}

/// What the x axis shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// The values that there are, at equal distances: numbers of threads.
    Steps,
    /// A number line from the smallest to the largest.
    Linear,
}

/// Lines over an axis. `None` if there is nothing to draw.
pub fn lines(
    title: &str,
    x_label: &str,
    y_label: &str,
    axis: Axis,
    lines: &[Line],
) -> Option<String> {
    let mut xs: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.0))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (first, last) = (*xs.first()?, *xs.last()?);
    let highest = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|(_, y, spread)| spread.map_or(*y, |(_, high)| high.max(*y)))
        .fold(0.0, f64::max);
    let ticks = ticks_of(highest);
    let top = *ticks.last()?;
    let width = WIDTH - LEFT - RIGHT;
    let x_of = |x: f64| match axis {
        Axis::Steps => {
            let place = xs.iter().position(|found| *found == x).unwrap_or(0);
            LEFT + width * (place as f64 + 0.5) / xs.len() as f64
        }
        Axis::Linear => LEFT + width * (x - first) / (last - first).max(1e-9),
    };
    let y_of = |y: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top;
    let mut svg = open(title, HEIGHT);
    grid(&mut svg, &ticks, y_of);
    match axis {
        Axis::Steps => {
            for x in &xs {
                label(
                    &mut svg,
                    x_of(*x),
                    HEIGHT - BOTTOM + 15.0,
                    "middle",
                    &figure_short(*x),
                );
            }
        }
        Axis::Linear => {
            // Time begins at 0.
            for x in ticks_of(last)
                .into_iter()
                .filter(|x| (first..=last).contains(x))
            {
                let anchor = match x_of(x) {
                    at if at < LEFT + 8.0 => "start",
                    at if at > WIDTH - RIGHT - 16.0 => "end",
                    _ => "middle",
                };
                label(
                    &mut svg,
                    x_of(x),
                    HEIGHT - BOTTOM + 15.0,
                    anchor,
                    &figure_short(x),
                );
            }
        }
    }
    label(
        &mut svg,
        LEFT + width / 2.0,
        HEIGHT - 4.0,
        "middle",
        x_label,
    );
    for (number, line) in lines.iter().enumerate() {
        // Beside each other, so that no spread hides another.
        let aside = match axis {
            Axis::Steps => (number as f64 - (lines.len() - 1) as f64 / 2.0) * 4.0,
            Axis::Linear => 0.0,
        };
        let class = line.colour % COLOURS;
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(x, y, _)| format!("{:.1},{:.1}", x_of(*x) + aside, y_of(*y)))
            .collect();
        let _ = write!(
            svg,
            "<polyline class='l c{class}' points='{}'/>",
            path.join(" ")
        );
        if axis == Axis::Steps {
            for (x, y, spread) in &line.points {
                let x = x_of(*x) + aside;
                if let Some((low, high)) = spread {
                    let _ = write!(
                        svg,
                        "<line class='w c{class}' x1='{x:.1}' x2='{x:.1}' y1='{:.1}' y2='{:.1}'/>",
                        y_of(*low),
                        y_of(*high)
                    );
                }
                let _ = write!(
                    svg,
                    "<circle class='p c{class}' cx='{x:.1}' cy='{:.1}' r='3'><title>{}: {}</title></circle>",
                    y_of(*y),
                    escape(&line.label),
                    figure(*y)
                );
            }
        }
    }
    svg += "</svg>";
    Some(figure_of(title, y_label, &svg, &legend(lines)))
}

/// Horizontal bars, each under its label. `None` without any.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> Option<String> {
    let highest = bars.iter().map(|bar| bar.value.2).fold(0.0, f64::max);
    if bars.is_empty() || highest <= 0.0 {
        return None;
    }
    let height = bars.len() as f64 * 34.0 + 6.0;
    let width = WIDTH - 70.0;
    let mut svg = open(title, height);
    for (n, bar) in bars.iter().enumerate() {
        let (y, class) = (n as f64 * 34.0, bar.colour % COLOURS);
        let (median, low, high) = bar.value;
        let x = |value: f64| 2.0 + width * value / highest;
        label(&mut svg, 2.0, y + 13.0, "start", &bar.label);
        let _ = write!(
            svg,
            "<rect class='b c{class}' x='2' y='{:.1}' width='{:.1}' height='12' rx='2'/>",
            y + 18.0,
            (width * median / highest).max(1.0)
        );
        if high > low {
            let _ = write!(
                svg,
                "<path class='e' d='M{0:.1} {3:.1}v8M{0:.1} {2:.1}H{1:.1}M{1:.1} {3:.1}v8'/>",
                x(low),
                x(high),
                y + 24.0,
                y + 20.0
            );
        }
        label(&mut svg, x(high) + 6.0, y + 28.0, "start", &figure(median));
    }
    svg += "</svg>";
    Some(figure_of(title, unit, &svg, ""))
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox='0 0 {WIDTH} {height}' role='img' aria-label='{}'>",
        escape(title)
    )
}

fn figure_of(title: &str, unit: &str, svg: &str, legend: &str) -> String {
    format!(
        "<figure><figcaption>{} <span class='unit'>{}</span></figcaption>{svg}{legend}</figure>",
        escape(title),
        escape(unit)
    )
}

fn legend(lines: &[Line]) -> String {
    let items: Vec<String> = lines
        .iter()
        .map(|line| {
            format!(
                "<li><svg viewBox='0 0 22 10' aria-hidden='true'><line class='l c{}' x1='1' y1='5' x2='21' y2='5'/></svg>{}</li>",
                line.colour % COLOURS,
                escape(&line.label)
            )
        })
        .collect();
    format!("<ul class='legend'>{}</ul>", items.join(""))
}

fn grid(svg: &mut String, ticks: &[f64], y_of: impl Fn(f64) -> f64) {
    for tick in ticks {
        let y = y_of(*tick);
        let _ = write!(
            svg,
            "<line class='g' x1='{LEFT}' x2='{:.1}' y1='{y:.1}' y2='{y:.1}'/>",
            WIDTH - RIGHT
        );
        label(svg, LEFT - 5.0, y + 4.0, "end", &figure_short(*tick));
    }
}

fn label(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = write!(
        svg,
        "<text x='{x:.1}' y='{y:.1}' text-anchor='{anchor}'>{}</text>",
        escape(text)
    );
}

/// As few characters as an axis needs.
fn figure_short(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        1e6.. => (value / 1e6, " M"),
        10_000.0.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = match scaled.abs() {
        100.0.. => format!("{scaled:.0}"),
        _ => text.to_owned(),
    };
    format!("{text}{suffix}")
}

/// Round numbers from 0 to at least `highest`: steps of 1, 2 or 5 times a power of ten.
fn ticks_of(highest: f64) -> Vec<f64> {
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let rough = highest / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let count = (highest / step - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks_of(100.0), [0.0, 50.0, 100.0]);
        assert_eq!(ticks_of(7.3), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks_of(0.0), [0.0, 0.5, 1.0]);
        for highest in [0.003, 1.0, 999.0, 1001.0, 123_456.0] {
            let ticks = ticks_of(highest);
            assert!(*ticks.last().expect("some") >= highest, "{highest}");
            assert!((2..=7).contains(&ticks.len()), "{highest}: {ticks:?}");
        }
    }

    #[test]
    fn charts_are_drawn_within_their_frame() {
        let line = |label: &str, factor: f64| Line {
            label: label.into(),
            colour: 9,
            points: [1.0, 8.0, 64.0]
                .map(|x| (x, x * factor, Some((x * factor * 0.9, x * factor * 1.1))))
                .into(),
        };
        for axis in [Axis::Steps, Axis::Linear] {
            let svg = lines("a < b", "threads", "1/s", axis, &[line("x & y", 3.0)]).expect("drawn");
            assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y") && svg.contains("c1"));
            for number in svg
                .split("points='")
                .nth(1)
                .and_then(|rest| rest.split('\'').next())
                .expect("a line")
                .split([' ', ','])
            {
                let number: f64 = number.parse().expect("a number");
                assert!((0.0..=WIDTH).contains(&number), "{svg}");
            }
        }
        assert!(lines("t", "x", "y", Axis::Linear, &[]).is_none());
        assert!(bars("t", "s", &[]).is_none());
        let bar = Bar {
            label: "on".into(),
            colour: 1,
            value: (5.0, 4.0, 6.0),
        };
        assert!(bars("t", "s", &[bar]).expect("drawn").contains("<rect"));
    }

    #[test]
    fn axes_are_short() {
        assert_eq!(figure_short(25_000.0), "25k");
        assert_eq!(figure_short(0.25), "0.25");
        assert_eq!(figure_short(2_500_000.0), "2.5 M");
        assert_eq!(figure_short(100.0), "100");
    }
}
