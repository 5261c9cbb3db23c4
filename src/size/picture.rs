//! Curves as pictures: bars for a terminal, SVG for everything else.

use super::{Answer, Kind, Sizing};
use crate::config::format_bytes;
use crate::report::group;
use std::fmt::Write;

/// Characters of the longest bar.
const WIDTH: f64 = 30.0;
/// Size of one curve in the picture.
const BOX: (f64, f64) = (420.0, 220.0);
const MARGIN: f64 = 60.0;
/// Room for makespans and the words left of a curve.
const LEFT: f64 = 110.0;
/// Light or dark as the reader has it.
const STYLE: &str = "svg{background:#fff;color:#1b1f24}text{fill:currentColor}.axis{fill:none;stroke:#8a8f96}\
    .line{fill:none;stroke:#0072b2;stroke-width:1.5}.dot{fill:#0072b2}.mark{stroke:#d55e00;stroke-dasharray:3}\
    @media(prefers-color-scheme:dark){svg{background:#14171b;color:#e8ebee}.line{stroke:#56b4e9}.dot{fill:#56b4e9}}";

/// How much a makespan is above the best, drawn against the worst.
pub(super) fn bar(makespan: u64, best: u64, worst: u64) -> String {
    if worst <= best {
        return String::new();
    }
    let share = (makespan - best) as f64 / (worst - best) as f64;
    "█".repeat((share * WIDTH).round() as usize)
}

/// Makespan over size, one curve for each kind, sizes on a logarithmic scale on which 0 stands where a half would.
#[must_use]
pub fn svg(sizing: &Sizing) -> String {
    let drawn: Vec<&Answer> =
        sizing.answers.iter().filter(|answer| answer.curve.iter().any(|point| point.makespan.is_some())).collect();
    let (width, height) = (BOX.0 + LEFT + MARGIN, (BOX.1 + 1.5 * MARGIN) * drawn.len().max(1) as f64);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\">\n<style>{STYLE}</style>\n"
    );
    for (index, answer) in drawn.into_iter().enumerate() {
        let top = index as f64 * (BOX.1 + 1.5 * MARGIN) + MARGIN / 2.0;
        let _ = write!(text, "<g transform=\"translate({LEFT},{top})\">\n{}</g>\n", plot(answer));
    }
    text.push_str("</svg>\n");
    text
}

fn plot(answer: &Answer) -> String {
    let points: Vec<(u64, u64)> =
        answer.curve.iter().filter_map(|point| point.makespan.map(|makespan| (point.size, makespan))).collect();
    let log = |size: u64| if size == 0 { -1.0 } else { (size as f64).log2() };
    let (low, high) = (log(points[0].0), log(points[points.len() - 1].0));
    let worst = points.iter().map(|point| point.1).max().unwrap_or(1).max(1) as f64;
    let x = |size: u64| if high > low { (log(size) - low) / (high - low) * BOX.0 } else { BOX.0 / 2.0 };
    let y = |makespan: u64| BOX.1 - makespan as f64 / worst * BOX.1;
    let label = |size: u64| if answer.kind == Kind::Heap { format_bytes(size) } else { group(size) };
    let (width, height) = BOX;
    let mut text = format!(
        "<text y=\"-10\" font-weight=\"bold\">makespan over {}</text>\n<path d=\"M0,0V{height}H{width}\" class=\"axis\"/>\n\
         <text x=\"-4\" y=\"4\" text-anchor=\"end\">{}</text>\n<text x=\"-4\" y=\"{height}\" text-anchor=\"end\">0</text>\n",
        answer.kind.key(),
        group(worst as u64)
    );
    let path: Vec<String> =
        points.iter().map(|&(size, makespan)| format!("{:.1},{:.1}", x(size), y(makespan))).collect();
    let _ = writeln!(text, "<polyline points=\"{}\" class=\"line\"/>", path.join(" "));
    for &(size, makespan) in &points {
        let _ = writeln!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" class=\"dot\"><title>{}: {} cycles</title></circle>",
            x(size),
            y(makespan),
            label(size),
            group(makespan)
        );
    }
    if points[0].0 == 0 && answer.smallest.as_ref().is_none_or(|smallest| smallest.size > 0) {
        let _ = writeln!(text, "<text y=\"{}\" text-anchor=\"middle\">{}</text>", height + 14.0, label(0));
    }
    let last = points[points.len() - 1].0;
    let _ = writeln!(text, "<text x=\"{width}\" y=\"{}\" text-anchor=\"end\">{}</text>", height + 14.0, label(last));
    let marks = [
        ("completes", answer.smallest.as_ref().map(|smallest| smallest.size), 14.0),
        ("fast", answer.fast.as_ref().map(|fast| fast.size), 28.0),
        ("knee", answer.knee, 42.0),
    ];
    for (word, size, below) in marks {
        if let Some(size) = size {
            let (at, down) = (x(size), height + below);
            let _ = writeln!(
                text,
                "<path d=\"M{at:.1},0V{height}\" class=\"mark\"/>\
                 <text x=\"{at:.1}\" y=\"{down}\" text-anchor=\"middle\">{word} {}</text>",
                label(size)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::curve::Point;

    #[test]
    fn nothing_stands_left_of_one() {
        let point = |size| Point { size, makespan: Some(100 - size), stuck: None };
        let answer = Answer {
            kind: Kind::Tensors,
            smallest: None,
            fast: None,
            curve: vec![point(0), point(1), point(8)],
            knee: None,
            slower_when_larger: Vec::new(),
        };
        let text = plot(&answer);
        for (place, size) in [("0.0", 0), ("105.0", 1), ("420.0", 8)] {
            assert!(text.contains(&format!("<circle cx=\"{place}\"")), "{size} in {text}");
        }
        assert!(text.contains("<text y=\"234\" text-anchor=\"middle\">0</text>"), "{text}");
    }
}
