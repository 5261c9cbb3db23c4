//! Makespan over size: what was tried, where it bends, where larger is slower.

use super::trial::Trial;
use serde::Serialize;

/// What was tried, by ascending size.
pub type Curve = Vec<Point>;

/// A run at a size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Point {
    /// The size.
    pub size: u64,
    /// The makespan; `None` when the run did not complete.
    pub makespan: Option<u64>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
}

pub(super) fn curve(known: Vec<(u64, Trial)>) -> Curve {
    let point = |(size, trial)| match trial {
        Trial::Completes(makespan) => Point { size, makespan: Some(makespan), stuck: None },
        Trial::Stuck(_, reason) => Point { size, makespan: None, stuck: Some(reason) },
    };
    known.into_iter().map(point).collect()
}

/// Sizes and makespans of the runs that completed.
fn completed(curve: &[Point]) -> Vec<(u64, u64)> {
    curve.iter().filter_map(|point| point.makespan.map(|makespan| (point.size, makespan))).collect()
}

/// The size at which the curve is farthest below the straight line between its ends, sizes taken as logarithms: before
/// it more room helps much, behind it little. `None` for a curve without a bend.
pub(super) fn knee(curve: &[Point]) -> Option<u64> {
    let points = completed(curve);
    let (&(first_size, first), &(last_size, last)) = (points.first()?, points.last()?);
    if first <= last || first_size == last_size {
        return None;
    }
    let x = |size: u64| (size.max(1) as f64).log2();
    let share = |size: u64| (x(size) - x(first_size)) / (x(last_size) - x(first_size));
    let below = |&(size, makespan): &(u64, u64)| {
        let line = first as f64 + (last as f64 - first as f64) * share(size);
        (line - makespan as f64) / (first - last) as f64
    };
    let best = points.iter().max_by(|a, b| below(a).total_cmp(&below(b)).then(b.0.cmp(&a.0)))?;
    (below(best) > 0.0).then_some(best.0)
}

/// Neighbours on the curve of which the larger size is slower.
pub(super) fn slower_when_larger(curve: &[Point]) -> Vec<(u64, u64)> {
    let points = completed(curve);
    points.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| (pair[0].0, pair[1].0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(list: &[(u64, u64)]) -> Curve {
        curve(list.iter().map(|&(size, makespan)| (size, Trial::Completes(makespan))).collect())
    }

    #[test]
    fn the_knee_is_where_more_begins_to_help_less() {
        assert_eq!(knee(&points(&[(2, 1000), (4, 500), (8, 110), (16, 105), (32, 100)])), Some(8));
        assert_eq!(knee(&points(&[(2, 100), (4, 100)])), None);
        assert_eq!(knee(&points(&[])), None);
    }

    #[test]
    fn a_larger_size_that_is_slower_is_noticed() {
        let bent = points(&[(2, 100), (4, 90), (8, 95), (16, 95), (32, 80)]);
        assert_eq!(slower_when_larger(&bent), [(4, 8)]);
    }
}
