//! A chart of lines as SVG, both axes logarithmic, readable on a light and on a
//! dark background.

use std::fmt::Write as _;

use crate::table::line;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// The least distance between the names of two lines.
const NAME_HEIGHT: f64 = 15.0;
/// Distinct for readers who see few colours, on either background.
const COLOURS: [&str; 4] = ["#2f81c9", "#d9772b", "#2f9e6e", "#b565b8"];

pub struct ChartLine {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

pub struct Chart<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    pub lines: &'a [ChartLine],
}

/// The powers of ten around all values.
struct LogScale {
    least: i32,
    most: i32,
}

impl LogScale {
    fn of(values: impl Iterator<Item = f64> + Clone) -> LogScale {
        let least = values.clone().fold(f64::INFINITY, f64::min).log10();
        let most = values.fold(f64::NEG_INFINITY, f64::max).log10();
        let least = least.floor() as i32;
        LogScale {
            least,
            most: (most.ceil() as i32).max(least + 1),
        }
    }

    /// The share of the axis below a value.
    fn share(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.least)) / f64::from(self.most - self.least)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.least..=self.most).map(|power| 10f64.powi(power))
    }
}

impl Chart<'_> {
    pub fn svg(&self) -> String {
        let positive = || {
            let points = self.lines.iter().flat_map(|line| line.points.iter());
            points.filter(|(x, y)| *x > 0.0 && *y > 0.0)
        };
        let mut out = String::new();
        line!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        );
        line!(
            out,
            "<style>text{{fill:#1f2328}}.grid{{stroke:#d0d7de}}@media (prefers-color-scheme:dark)\
             {{text{{fill:#e6edf3}}.grid{{stroke:#3d444d}}}}</style>"
        );
        line!(
            out,
            r#"<text x="{LEFT}" y="22" font-size="15">{}</text>"#,
            self.title
        );
        if positive().next().is_some() {
            let x = LogScale::of(positive().map(|(x, _)| *x));
            let y = LogScale::of(positive().map(|(_, y)| *y));
            self.axes(&mut out, &x, &y);
            self.curves(&mut out, &x, &y);
        }
        line!(out, "</svg>");
        out
    }

    fn axes(&self, out: &mut String, x: &LogScale, y: &LogScale) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in x.ticks() {
            let at = across(x, tick);
            let below = bottom + 18.0;
            line!(
                out,
                r#"<line class="grid" x1="{at:.1}" y1="{TOP}" x2="{at:.1}" y2="{bottom}"/><text x="{at:.1}" y="{below}" text-anchor="middle">{}</text>"#,
                number(tick)
            );
        }
        for tick in y.ticks() {
            let at = down(y, tick);
            let (beside, middle) = (LEFT - 8.0, at + 4.0);
            line!(
                out,
                r#"<line class="grid" x1="{LEFT}" y1="{at:.1}" x2="{right}" y2="{at:.1}"/><text x="{beside}" y="{middle:.1}" text-anchor="end">{}</text>"#,
                number(tick)
            );
        }
        let (centre, under, middle) = (
            f64::midpoint(LEFT, right),
            HEIGHT - 12.0,
            f64::midpoint(TOP, bottom),
        );
        line!(
            out,
            r#"<text x="{centre}" y="{under}" text-anchor="middle">{}</text>"#,
            self.x
        );
        line!(
            out,
            r#"<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{}</text>"#,
            self.y
        );
    }

    fn curves(&self, out: &mut String, x: &LogScale, y: &LogScale) {
        let mut names: Vec<(f64, &str, &str)> = Vec::new();
        for (line, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let place = |(x_value, y_value): &(f64, f64)| (across(x, *x_value), down(y, *y_value));
            let points: Vec<(f64, f64)> = line.points.iter().map(place).collect();
            let path: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            line!(
                out,
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
                path.join(" ")
            );
            for (x, y) in &points {
                line!(
                    out,
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#
                );
            }
            names.extend(points.last().map(|(_, y)| (*y, line.name, colour)));
        }
        // Each name stands beside the end of its line, below the one before.
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free = TOP;
        for (y, name, colour) in names {
            let at = (y + 4.0).max(free);
            free = at + NAME_HEIGHT;
            let beside = WIDTH - RIGHT + 10.0;
            line!(
                out,
                r#"<text x="{beside}" y="{at:.1}" style="fill:{colour}">{name}</text>"#
            );
        }
    }
}

fn across(scale: &LogScale, value: f64) -> f64 {
    LEFT + scale.share(value) * (WIDTH - LEFT - RIGHT)
}

fn down(scale: &LogScale, value: f64) -> f64 {
    let bottom = HEIGHT - BOTTOM;
    bottom - scale.share(value) * (bottom - TOP)
}

/// A power of ten, in groups of three digits.
fn number(value: f64) -> String {
    if value < 1.0 {
        return value.to_string();
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
