//! CPU sets and what a processor's thread would be given: CPUs and scheduling class.

use serde::Serialize;

/// CPUs are numbered below this.
const MAX_CPUS: u32 = 1024;

/// The CPUs of a list of numbers and ranges, such as `0-7,16-23`, in that order. An empty text is an empty set.
///
/// # Errors
/// When a piece is not a number below 1024, or a range runs backwards.
pub fn parse_cpuset(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    if text.trim().is_empty() {
        return Ok(cpus);
    }
    for piece in text.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last) = (cpu(first, text)?, cpu(last, text)?);
        if first > last {
            return Err(format!("cpuset \"{text}\": `{piece}` runs backwards; write {last}-{first}"));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

fn cpu(word: &str, text: &str) -> Result<u32, String> {
    let word = word.trim();
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let cpu = if digits { word.parse().ok() } else { None };
    match cpu {
        Some(cpu) if cpu < MAX_CPUS => Ok(cpu),
        Some(cpu) => Err(format!("cpuset \"{text}\": cpu {cpu} must be below {MAX_CPUS}")),
        None => Err(format!("cpuset \"{text}\": `{word}` is not a cpu; write numbers and ranges such as 0-7,16-23")),
    }
}

/// The CPUs of processor `index` of its group: all of them with `range`, its own with `1to1`; `None` leaves it alone.
#[must_use]
pub fn affinity(kind: &str, cpus: &[u32], index: usize) -> Option<Vec<u32>> {
    match kind {
        "range" if !cpus.is_empty() => Some(cpus.to_vec()),
        "1to1" => cpus.get(index).map(|&cpu| vec![cpu]),
        _ => None,
    }
}

/// How the operating system would schedule a processor's thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "class")]
pub enum Class {
    /// Nothing is changed.
    Unset,
    /// `SCHED_OTHER` with this nice value.
    Other {
        /// The value.
        nice: i32,
    },
    /// `SCHED_FIFO` with this priority.
    Fifo {
        /// The priority.
        prio: i32,
    },
    /// `SCHED_RR` with this priority.
    RoundRobin {
        /// The priority.
        prio: i32,
    },
}

impl Class {
    /// The class of a `processor_policy` and a `processor_prio`.
    #[must_use]
    pub fn new(policy: &str, prio: i32) -> Class {
        match policy {
            "SCHED_FIFO" => Class::Fifo { prio },
            "SCHED_RR" => Class::RoundRobin { prio },
            "SCHED_OTHER" => Class::Other { nice: prio },
            _ => Class::Unset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_numbers_and_ranges_in_order() {
        let sixteen: Vec<u32> = (0..8).chain(16..24).collect();
        assert_eq!(parse_cpuset("0-7,16-23"), Ok(sixteen));
        assert_eq!(parse_cpuset("0-1,2-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(parse_cpuset("0-1"), Ok(vec![0, 1]));
        assert_eq!(parse_cpuset("0"), Ok(vec![0]));
        assert_eq!(parse_cpuset("9, 2 - 3"), Ok(vec![9, 2, 3]));
        assert_eq!(parse_cpuset(""), Ok(vec![]));
    }

    #[test]
    fn a_wrong_set_is_an_error_with_a_remedy() {
        let fails = |text| parse_cpuset(text).expect_err("the set is wrong");
        assert_eq!(fails("5-3"), "cpuset \"5-3\": `5-3` runs backwards; write 3-5");
        assert_eq!(fails("1,,2"), "cpuset \"1,,2\": `` is not a cpu; write numbers and ranges such as 0-7,16-23");
        assert_eq!(fails("-1"), "cpuset \"-1\": `` is not a cpu; write numbers and ranges such as 0-7,16-23");
        assert_eq!(fails("0-99999"), "cpuset \"0-99999\": cpu 99999 must be below 1024");
        assert!(fails("a-b").contains("`a` is not a cpu"));
        assert!(fails("1-2-3").contains("`2-3` is not a cpu"));
    }

    #[test]
    fn range_gives_all_cpus_and_1to1_its_own() {
        let cpus = parse_cpuset("8-15,24-31").expect("a right set");
        for index in 0..16 {
            assert_eq!(affinity("range", &cpus, index), Some(cpus.clone()));
            assert_eq!(affinity("1to1", &cpus, index), Some(vec![cpus[index]]));
        }
        assert_eq!(affinity("1to1", &cpus, 16), None);
        assert_eq!(affinity("1to1", &cpus, usize::MAX), None);
        assert_eq!(affinity("range", &[], 0), None);
        assert_eq!(affinity("scatter", &cpus, 0), None);
    }

    #[test]
    fn classes_follow_the_policy_name() {
        assert_eq!(Class::new("SCHED_FIFO", 10), Class::Fifo { prio: 10 });
        assert_eq!(Class::new("SCHED_RR", 1), Class::RoundRobin { prio: 1 });
        assert_eq!(Class::new("SCHED_OTHER", -5), Class::Other { nice: -5 });
        assert_eq!(Class::new("SCHED_BATCH", 0), Class::Unset);
    }
}
