//! The growth curve as SVG: two panels, both axes logarithmic.

use std::fmt::Write;

use crate::growth::Point;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;
/// Distance between panels, with room for the labels at the ends of the lines.
const STEP: f64 = WIDTH + 190.0;

/// Colours that colour-blind readers can distinguish (Okabe and Ito), on white and on black.
const COLOURS: [(&str, &str); 7] = [
    ("stvc", "#d55e00"),
    ("stvc, gc", "#e69f00"),
    ("git", "#0072b2"),
    ("restic", "#009e73"),
    ("borg", "#cc79a7"),
    ("bup", "#56b4e9"),
    ("cp", "#999999"),
];

type Line = Vec<(f64, f64)>;

pub fn svg(points: &[Point]) -> String {
    let (width, height) = (LEFT + 2.0 * STEP - 60.0, TOP + HEIGHT + 60.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let of = |name: &str, value: &dyn Fn(&Point) -> Option<f64>| -> Line {
        let points = points.iter().filter(|point| point.tool == name.trim_end_matches(", gc"));
        points.filter_map(|point| Some((point.snapshots as f64, value(point)?))).collect()
    };
    let sizes = COLOURS.map(|(name, _)| match name {
        "stvc, gc" => of(name, &|point| Some(point.packed? as f64 / 1e6)),
        _ => of(name, &|point| Some(point.size as f64 / 1e6)),
    });
    let times = COLOURS.map(|(name, _)| match name {
        "stvc, gc" => Line::new(),
        _ => of(name, &|point| Some(point.further?.number() * 1e3)),
    });
    panel(&mut svg, 0.0, "Store size, MB", &sizes);
    panel(&mut svg, STEP, "Time of a further snapshot, ms", &times);
    svg + "</svg>\n"
}

fn panel(svg: &mut String, x: f64, title: &str, lines: &[Line]) {
    let all = || lines.iter().flatten();
    let right = all().map(|point| point.0).fold(100.0, f64::max);
    let low = all().map(|point| point.1).fold(f64::MAX, f64::min).log10().floor();
    let high = all().map(|point| point.1).fold(f64::MIN, f64::max).log10().ceil();
    let across = |n: f64| x + LEFT + (n.log10() - 1.0) / (right.log10() - 1.0) * WIDTH;
    let down = |value: f64| TOP + HEIGHT - (value.log10() - low) / (high - low) * HEIGHT;
    let mut text = |x: f64, y: f64, anchor: &str, text: &str| {
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    };
    let (left, bottom) = (x + LEFT, TOP + HEIGHT);
    text(left, TOP - 20.0, "start", title);
    text(left + WIDTH / 2.0, bottom + 42.0, "middle", "snapshots in the store");
    let mut grid = String::new();
    for power in 1..=right.log10().floor() as i32 {
        let x = across(10f64.powi(power));
        text(x, bottom + 20.0, "middle", &10u64.pow(power as u32).to_string());
        let _ = write!(grid, "M{x:.1} {TOP}V{bottom}");
    }
    for power in low as i32..=high as i32 {
        let y = down(10f64.powi(power));
        text(left - 8.0, y + 4.0, "end", &10f64.powi(power).to_string());
        let _ = write!(grid, "M{left} {y:.1}h{WIDTH}");
    }
    // Labels at the ends of the lines, moved down where they would overlap.
    let mut ends: Vec<_> = lines
        .iter()
        .zip(COLOURS)
        .filter_map(|(line, colour)| {
            line.last().map(|end| (across(end.0) + 6.0, down(end.1) + 4.0, colour))
        })
        .collect();
    ends.sort_by(|one, two| one.1.total_cmp(&two.1));
    let (mut last, mut column) = (0.0, 0.0);
    ends.sort_by(|one, two| one.0.total_cmp(&two.0));
    for (x, y, (name, colour)) in ends {
        last = if x == column { f64::max(y, last + 14.0) } else { y };
        column = x;
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{last:.1}\" fill=\"{colour}\">{name}</text>");
    }
    let _ = writeln!(svg, "<path d=\"{grid}\" stroke=\"#ddd\" fill=\"none\"/>");
    for (line, (_, colour)) in lines.iter().zip(COLOURS).filter(|(line, _)| !line.is_empty()) {
        let points = line.iter().map(|(n, value)| format!("{:.1},{:.1}", across(*n), down(*value)));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"/>"
        );
    }
}
