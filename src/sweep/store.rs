//! The results on disk: one line of JSON a run, and the same as CSV.
//!
//! A result is appended in one write as soon as it is there. A process that is killed can only tear the last line, which
//! is dropped when the folder is opened again; the CSV is then written anew from the JSON. When nothing is missing, both
//! files are put into the order of the points, so that a finished sweep has the same bytes however it was run.

use super::SweepError;
use super::plan::Plan;
use super::row::{Row, cells, write_csv};
use crate::report::{Output, OutputError};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const JSON: &str = "results.jsonl";
const CSV: &str = "results.csv";
const SUMMARY: &str = "summary.txt";
const PAGE: &str = "report.html";

/// The files in the folder of a sweep.
pub const FILES: [&str; 4] = [JSON, CSV, SUMMARY, PAGE];

/// The results of a sweep in a folder.
pub struct Store {
    folder: PathBuf,
    json: File,
    /// Bytes of whole lines.
    json_bytes: u64,
    csv: File,
    keys: Vec<String>,
    /// By identity.
    rows: BTreeMap<String, Row>,
}

fn output(path: &Path, source: io::Error) -> OutputError {
    Output::error(&path.display().to_string(), source)
}

impl Store {
    /// Opens the folder of a sweep, making it if need be, and reads what is there.
    ///
    /// # Errors
    /// When the folder cannot be written, another process is at work in it, or it holds results of another sweep.
    pub fn open(folder: &str, plan: &Plan, identities: &[String]) -> Result<Store, SweepError> {
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).map_err(|error| output(&folder, error))?;
        let (json_path, csv_path) = (folder.join(JSON), folder.join(CSV));
        let open = || File::options().read(true).append(true).create(true).open(&json_path);
        let json = open().map_err(|error| output(&json_path, error))?;
        lock(&json, &folder)?;
        let (rows, json_bytes) = read(&json_path)?;
        json.set_len(json_bytes).map_err(|error| output(&json_path, error))?;
        let known: HashSet<&String> = identities.iter().collect();
        let foreign = rows.iter().filter(|row| !known.contains(&row.id)).count();
        if foreign > 0 {
            let (path, of) = (json_path.display(), rows.len());
            return Err(SweepError::Spec(format!(
                "{path}: {foreign} of {of} results are not part of this sweep; choose another folder with --out"
            )));
        }
        let keys = plan.keys();
        rewrite(&csv_path, |writer| write_csv(rows.iter(), &keys, writer))?;
        let csv = File::options().append(true).open(&csv_path).map_err(|error| output(&csv_path, error))?;
        let rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        Ok(Store { folder, json, json_bytes, csv, keys, rows })
    }

    /// Identities of the results there are.
    #[must_use]
    pub fn done(&self) -> HashSet<String> {
        self.rows.keys().cloned().collect()
    }

    /// Adds a result.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, row: Row) -> Result<(), OutputError> {
        let line = row.line();
        if let Err(error) = self.json.write_all(line.as_bytes()) {
            // Half a line must not stand before the next one. If even this fails, opening the folder again tells the line.
            let _ = self.json.set_len(self.json_bytes);
            return Err(output(&self.folder.join(JSON), error));
        }
        self.json_bytes += line.len() as u64;
        let mut line = csv::Writer::from_writer(Vec::new());
        let written = line.write_record(cells(&row, &self.keys)).map_err(io::Error::from);
        let line = written.and_then(|()| line.into_inner().map_err(csv::IntoInnerError::into_error));
        line.and_then(|line| self.csv.write_all(&line)).map_err(|error| output(&self.folder.join(CSV), error))?;
        self.rows.insert(row.id.clone(), row);
        Ok(())
    }

    /// The results in the order of the points.
    #[must_use]
    pub fn in_order(&self, identities: &[String]) -> Vec<Row> {
        in_order(&self.rows, identities)
    }

    /// Puts both files into the order of the points and writes `summary.txt` and `report.html` beside them.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(self, identities: &[String], summary: &str, page: &str) -> Result<(), SweepError> {
        let rows = self.in_order(identities);
        write_all(&self.folder, &rows, &self.keys, summary, page)
    }
}

/// Puts the results of several folders into one.
///
/// # Errors
/// When a folder cannot be read or holds other results, or the files cannot be written.
pub fn merge(plan: &Plan, identities: &[String], folders: &[String]) -> Result<Vec<Row>, SweepError> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let known: HashSet<&String> = identities.iter().collect();
    for folder in folders {
        let path = Path::new(folder).join(JSON);
        if !path.is_file() {
            return Err(SweepError::Spec(format!(
                "{}: no such results; run the sweep with --out {folder}",
                path.display()
            )));
        }
        for row in read(&path)?.0 {
            if !known.contains(&row.id) {
                let message = format!("{}: run {} is not part of {}", path.display(), row.id, plan.spec.name);
                return Err(SweepError::Spec(message));
            }
            rows.insert(row.id.clone(), row);
        }
    }
    Ok(in_order(&rows, identities))
}

/// Writes all files of a folder from rows in order.
pub(super) fn write_all(
    folder: &Path,
    rows: &[Row],
    keys: &[String],
    summary: &str,
    page: &str,
) -> Result<(), SweepError> {
    fs::create_dir_all(folder).map_err(|error| output(folder, error))?;
    rewrite(&folder.join(JSON), |writer| rows.iter().try_for_each(|row| writer.write_all(row.line().as_bytes())))?;
    rewrite(&folder.join(CSV), |writer| write_csv(rows.iter(), keys, writer))?;
    rewrite(&folder.join(SUMMARY), |writer| writer.write_all(summary.as_bytes()))?;
    rewrite(&folder.join(PAGE), |writer| writer.write_all(page.as_bytes()))?;
    Ok(())
}

fn in_order(rows: &BTreeMap<String, Row>, identities: &[String]) -> Vec<Row> {
    let mut seen = HashSet::new();
    identities.iter().filter(|id| seen.insert(*id)).filter_map(|id| rows.get(id)).cloned().collect()
}

/// Replaces a file in one step.
fn rewrite(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
) -> Result<(), OutputError> {
    let mut file = Output::open(&path.display().to_string())?;
    file.fill(content)?;
    file.commit()
}

/// The whole lines of a file, and how many bytes they have. What stands behind the last line end was torn.
fn read(path: &Path) -> Result<(Vec<Row>, u64), SweepError> {
    let bytes = fs::read(path).map_err(|error| output(path, error))?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let mut rows: HashMap<String, Row> = HashMap::new();
    let mut order = Vec::new();
    for (nth, line) in bytes[..whole].split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let row: Row = serde_json::from_slice(line).map_err(|error| {
            let remedy = "remove the line to run it again";
            SweepError::Spec(format!("{}:{}: not a result of a sweep ({error}); {remedy}", path.display(), nth + 1))
        })?;
        order.push(row.id.clone());
        rows.insert(row.id.clone(), row);
    }
    let rows = order.into_iter().filter_map(|id| rows.remove(&id)).collect();
    Ok((rows, whole as u64))
}

/// Keeps a second process out of a folder as long as the file is open.
#[cfg(target_os = "linux")]
fn lock(file: &File, folder: &Path) -> Result<(), SweepError> {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        SweepError::Spec(format!(
            "{}: another sweep is at work here; wait for it or choose another --out",
            folder.display()
        ))
    })
}

#[cfg(not(target_os = "linux"))]
fn lock(_file: &File, _folder: &Path) -> Result<(), SweepError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::row::header;

    #[test]
    fn a_header_has_as_many_cells_as_a_row() {
        let row: Row = serde_json::from_str(
            r#"{"id":"a","workload":"chain","machine":"ideal","policy":"pto","settings":{"x":"1"},"outcome":"completed",
                "makespan":1,"finish":1,"tasks":1,"edges":0,"workers":2,"memory":3,"efficiency":1.0}"#,
        )
        .expect("a row");
        let keys = ["x".to_owned(), "y".to_owned()];
        assert_eq!(header(&keys).len(), cells(&row, &keys).len());
        assert_eq!(cells(&row, &keys)[4..6], ["1", ""]);
    }

    #[test]
    fn a_torn_line_is_dropped_and_a_damaged_one_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(JSON);
        fs::write(&path, "{\"id\":").expect("room");
        assert_eq!(read(&path).expect("a torn line is no mistake").1, 0);
        fs::write(&path, "nonsense\n{\"id\":").expect("room");
        let error = read(&path).expect_err("a damaged line is").to_string();
        assert!(error.contains("results.jsonl:1: not a result of a sweep"), "{error}");
    }
}
