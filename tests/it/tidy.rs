//! House rules that a compiler does not check.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file before its tests.
const LONGEST: usize = 500;

/// Which modules a module may use; the order is the walk of a task.
const MAY_USE: &[(&str, &[&str])] = &[
    ("id", &[]),
    ("nearest", &[]),
    ("sync", &[]),
    ("kernel", &["id", "nearest", "config", "workload"]),
    ("config", &["id", "nearest", "workload"]),
    ("workload", &["id", "nearest", "config", "kernel"]),
    ("window", &["id", "sync", "config", "workload"]),
    ("worker_set", &[]),
    ("machine", &["id", "config", "window", "workload", "worker_set"]),
    ("ledger", &["fifo", "id", "window", "workload", "report"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn project() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).expect("below the root").display().to_string();
        (name, fs::read_to_string(&path).expect("a text"))
    };
    paths.into_iter().map(read).collect()
}

fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn every_file_opens_with_its_purpose_and_stays_short() {
    for (name, text) in project() {
        assert!(text.starts_with("//!"), "{name} does not open with //!");
        let lines = before_tests(&text).lines().count();
        assert!(lines <= LONGEST, "{name} has {lines} lines before its tests; {LONGEST} is the limit: is it one noun?");
    }
}

#[test]
fn nothing_is_left_open() {
    let marks = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "#[allow("];
    for (name, text) in project() {
        for mark in marks {
            assert!(!text.contains(mark), "{name} contains {mark}");
        }
    }
}

#[test]
fn the_library_neither_prints_nor_exits() {
    for (name, text) in project() {
        if name.starts_with("src/cli") || name == "src/main.rs" || name.ends_with("/tests.rs") {
            continue;
        }
        for mark in ["println!(", "eprintln!(", "process::exit"] {
            let found =
                before_tests(&text).lines().any(|line| !line.trim_start().starts_with("//") && line.contains(mark));
            assert!(!found, "{name} contains {mark}");
        }
    }
}

#[test]
fn imports_follow_the_walk_of_a_task() {
    for (name, text) in project() {
        let module = name.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default();
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == module) else { continue };
        for line in before_tests(&text).lines().filter(|line| line.starts_with("use crate::")) {
            let used = line["use crate::".len()..].split([':', ';', '{']).next().unwrap_or_default();
            assert!(used == module || allowed.contains(&used), "{name} uses {used}: {line}");
        }
    }
}

/// Words between backquotes that look like names of tests or settings.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_name = |word: &&str| {
        word.matches('_').count() > 1 && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    quoted.map(|word| word.trim_end_matches('…')).filter(is_name)
}

#[test]
fn what_the_pages_about_policies_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    sources(&root.join("tests"), &mut paths);
    let code: String = paths.iter().map(|path| fs::read_to_string(path).expect("a text")).collect();
    let pages = ["policies", "policies/bmf", "policies/cyber", "policies/orleans", "policies/ray"];
    for page in pages.map(|page| format!("docs/{page}.md")) {
        let text = fs::read_to_string(root.join(&page)).expect("a page");
        for name in names(&text) {
            assert!(code.contains(name), "{page} names `{name}`, which is nowhere in src and tests");
        }
    }
}
