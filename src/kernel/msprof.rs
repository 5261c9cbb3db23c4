//! Kernel tables from times that msprof measured: `op_summary_*.csv` or `task_time_*.csv`.
//!
//! Cells of times end with a tab, missing ones are `N/A`. The unit of the times stands in the name of their column. Every
//! kind of operation becomes a rule with its mean time.

use crate::config::ConfigError;
use crate::id::TaskType;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns by what they are called in the two files.
const NAMES: [&str; 3] = ["OP Type", "kernel_name", "Op Name"];
const TYPES: [&str; 2] = ["Task Type", "kernel_type"];
const TIMES: [&str; 3] = ["Task Duration", "task_time", "Duration"];
/// Units of times, and their microseconds.
const UNITS: [(&str, f64); 4] = [("us", 1.0), ("ns", 1e-3), ("ms", 1e3), ("s", 1e6)];

/// What was measured of one kind of operation.
#[derive(Default)]
struct Measured {
    micros: f64,
    count: u64,
    worker: Option<TaskType>,
}

/// Reads measured times and writes a kernel table; a microsecond has `cycles_per_us` cycles.
///
/// # Errors
/// When the file cannot be read, lacks a column, or holds no times.
pub fn from_msprof(path: &str, cycles_per_us: f64) -> Result<String, ConfigError> {
    let wrong = |message: String| ConfigError::Setting(format!("{path}: {message}"));
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_path(path).map_err(|error| {
            match error.into_kind() {
                csv::ErrorKind::Io(source) => ConfigError::Io { path: path.into(), source },
                other => wrong(format!("{other:?}")),
            }
        })?;
    let header = reader.byte_headers().map_err(|error| wrong(error.to_string()))?.clone();
    let titles: Vec<String> = header.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect();
    let find = |names: &[&str]| {
        let is = |name: &str, title: &String| divided(title).0.eq_ignore_ascii_case(name);
        names.iter().find_map(|name| titles.iter().position(|title| is(name, title)))
    };
    let column = |names: &[&str]| {
        let missing = || wrong(format!("no column {}; is it an op_summary of msprof?", names.join(" or ")));
        find(names).ok_or_else(missing)
    };
    let (name, kind, time) = (column(&NAMES)?, find(&TYPES), column(&TIMES)?);
    let unit = unit(&titles[time]).map_err(wrong)?;
    let mut found: BTreeMap<String, Measured> = BTreeMap::new();
    for (row, record) in reader.byte_records().enumerate() {
        let record = record.map_err(|error| wrong(format!("row {}: {error}", row + 2)))?;
        let cell = |column: usize| String::from_utf8_lossy(record.get(column).unwrap_or_default()).trim().to_owned();
        let (name, time) = (cell(name).to_ascii_lowercase(), cell(time));
        if name.is_empty() || name == "n/a" || time.is_empty() || time.eq_ignore_ascii_case("n/a") {
            continue;
        }
        let micros: Option<f64> = time.parse().ok().filter(|micros: &f64| micros.is_finite() && *micros >= 0.0);
        let micros = micros
            .ok_or_else(|| wrong(format!("row {}: \"{time}\" is not a time; give a number from 0, or N/A", row + 2)))?;
        let measured = found.entry(name).or_default();
        measured.micros += micros * unit;
        measured.count += 1;
        measured.worker = measured.worker.or_else(|| worker(&cell(kind?)));
    }
    if found.is_empty() {
        return Err(wrong("no times; every row is N/A".into()));
    }
    Ok(table(path, &found, cycles_per_us))
}

/// The title of a column and the unit in parentheses behind it.
fn divided(title: &str) -> (&str, Option<&str>) {
    let inside = title.strip_suffix(')').and_then(|title| title.rsplit_once('('));
    inside.map_or((title, None), |(name, unit)| (name.trim_end(), Some(unit.trim())))
}

/// Microseconds of the unit of a column.
fn unit(title: &str) -> Result<f64, String> {
    let Some(unit) = divided(title).1 else { return Ok(1.0) };
    let known = UNITS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(unit));
    let known = known.map(|(_, micros)| micros);
    known.ok_or_else(|| format!("column \"{title}\": unknown unit \"{unit}\"; known are us, ns, ms, s"))
}

/// The table as text. Longer names come first, because a rule also matches names that contain its word.
fn table(path: &str, found: &BTreeMap<String, Measured>, cycles_per_us: f64) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut text = String::new();
    let origin = std::path::Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let description = format!("mean times of {origin} at {cycles_per_us} cycles a microsecond");
    let _ = writeln!(text, "name = \"measured\"\ndescription = {}", quoted(&description));
    let mut rules: Vec<(&String, &Measured)> = found.iter().collect();
    rules.sort_by_key(|(name, _)| (std::cmp::Reverse(name.len()), *name));
    let cycles = |micros: f64, count: u64| (micros / count.max(1) as f64 * cycles_per_us).round() as u64;
    let (mut micros, mut count) = (0.0, 0);
    for (name, measured) in rules {
        let _ = writeln!(text, "\n[[kernel]]  # {} runs\nmatch = [{}]", measured.count, quoted(name));
        if let Some(worker) = measured.worker {
            let _ = writeln!(text, "worker = \"{worker}\"");
        }
        let _ = writeln!(text, "cycles = {}", cycles(measured.micros, measured.count));
        micros += measured.micros;
        count += measured.count;
    }
    let _ = writeln!(
        text,
        "\n[[kernel]]  # what was not measured: the mean of all\nmatch = [\"*\"]\ncycles = {}",
        cycles(micros, count)
    );
    text
}

fn worker(kind: &str) -> Option<TaskType> {
    let kind = kind.to_ascii_uppercase();
    let words = [
        ("MIX", TaskType::Mix),
        ("AI_CPU", TaskType::AiCpu),
        ("AICPU", TaskType::AiCpu),
        ("AI_VECTOR", TaskType::Vector),
        ("AIVEC", TaskType::Vector),
        ("AIV", TaskType::Vector),
        ("AI_CORE", TaskType::Cube),
        ("AICORE", TaskType::Cube),
        ("HCCL", TaskType::Accelerator),
        ("COMMUNICATION", TaskType::Accelerator),
    ];
    words.into_iter().find(|(word, _)| kind.contains(word)).map(|(_, worker)| worker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Table;

    fn import(text: &str) -> Result<String, ConfigError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("op_summary.csv");
        std::fs::write(&path, text).expect("a file");
        from_msprof(&path.display().to_string(), 100.0)
    }

    #[test]
    fn rows_become_rules_with_mean_times() {
        let text = "Op Name,OP Type,Task Type,Task Duration(us)\n\
                    a,MatMul,AI_CORE,10.0\t\nb,MatMul,AI_CORE,20.0\t\nc,MatMulV2,KERNEL_MIX_AIC,3\nd,Add,AI_VECTOR_CORE,1.5\ne,Wait,EVENT_WAIT,N/A\n";
        let table = import(text).expect("valid");
        let table = Table::from_toml(&table, "t").expect("our own table");
        let rule = |kernel: &str| &table.rules()[table.find(kernel).expect("a rule")];
        let shown = |kernel: &str| (rule(kernel).worker, rule(kernel).model.to_string());
        assert_eq!(shown("MatMul"), (Some(TaskType::Cube), "1500".into()));
        assert_eq!(shown("MatMulV2"), (Some(TaskType::Mix), "300".into()));
        assert_eq!(shown("add_1"), (Some(TaskType::Vector), "150".into()));
        assert_eq!(shown("other"), (None, "863".into()));
    }

    #[test]
    fn columns_may_stand_anywhere_and_say_their_unit() {
        let cycles = |text: &str| {
            let table = Table::from_toml(&import(text).expect("valid"), "t").expect("our own table");
            let rule = &table.rules()[table.find("add").expect("a rule")];
            (rule.worker, rule.model.to_string())
        };
        let milliseconds = "\u{feff}\"Task Duration (ms)\",\"Op, Name\",\"OP Type\"\r\n\"0.5\t\",\"a,b\",\"Add\"\r\n";
        assert_eq!(cycles(milliseconds), (None, "50000".into()));
        assert_eq!(
            cycles("kernel_name,kernel_type,task_time(us)\nAdd,KERNEL_AIVEC,2\n"),
            (Some(TaskType::Vector), "200".into())
        );
        assert_eq!(
            cycles("OP Type,Duration(ns),Task Type\nAdd,2000,AI_CPU\n,5,\nAdd\n"),
            (Some(TaskType::AiCpu), "200".into())
        );
        let unknown = import("OP Type,Duration(ticks)\nAdd,1\n").expect_err("a unit").to_string();
        assert!(unknown.contains("unknown unit \"ticks\"; known are us"), "{unknown}");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(import("a,b\n1,2\n").expect_err("no columns").to_string().contains("no column OP Type or kernel_name"));
        let head = "OP Type,Task Type,Task Duration(us)\n";
        assert!(
            import(&format!("{head}x,y,NaN\n")).expect_err("NaN").to_string().contains("row 2: \"NaN\" is not a time")
        );
        assert!(import(&format!("{head}x,y,N/A\n")).expect_err("empty").to_string().contains("no times"));
    }
}
