//! The pages about policies against the checklists: every row is there, and every test they name exists.

use ptosim::kernel::Table;
use ptosim::policy::Config;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The letter of each checklist, how many rows it has, and the page that lists them.
const PAGES: [(&str, u32, &str); 5] = [
    ("P", 82, "docs/policies.md"),
    ("C", 57, "docs/policies/cyber.md"),
    ("O", 53, "docs/policies/orleans.md"),
    ("B", 56, "docs/policies/bmf.md"),
    ("R", 65, "docs/policies/ray.md"),
];

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The numbers in a cell such as `P-01, P-03 to P-05`.
fn numbers(cell: &str, letter: &str) -> BTreeSet<u32> {
    let number = |word: &str| word.strip_prefix(letter)?.strip_prefix('-')?.parse::<u32>().ok();
    let mut found = BTreeSet::new();
    for piece in cell.split(',') {
        let (first, last) = piece.split_once(" to ").unwrap_or((piece, piece));
        if let (Some(first), Some(last)) = (number(first.trim()), number(last.trim())) {
            found.extend(first..=last);
        }
    }
    found
}

#[test]
fn every_row_of_the_checklists_is_listed() {
    let mut total = 0;
    for (letter, n_rows, page) in PAGES {
        let text = text(page);
        let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let listed: BTreeSet<u32> = cells.flat_map(|cell| numbers(cell, letter)).collect();
        let missing: Vec<_> = (1..=n_rows).filter(|row| !listed.contains(row)).collect();
        assert!(missing.is_empty(), "{page} does not list {letter}-{missing:?}");
        total += listed.len();
    }
    assert_eq!(total, 313);
}

/// The fields that may stand where `zzzzzzzz` stands, as the message about it lists them.
fn fields(told: &str) -> Vec<String> {
    let listed = told.split("the fields are ").nth(1).unwrap_or_else(|| panic!("{told}"));
    listed.split(", ").map(ToOwned::to_owned).collect()
}

#[test]
fn every_setting_of_a_policy_and_of_kernel_tables_is_listed() {
    let policy =
        |table: &str| Config::parse(&format!("{table}\nzzzzzzzz = 1\n"), "p.toml").expect_err("unknown").to_string();
    let kernel =
        Table::from_toml("name = \"t\"\n[[kernel]]\nzzzzzzzz = 1\n", "t.toml").expect_err("unknown").to_string();
    for (page, section, told) in [
        ("docs/policies/orleans.md", "## Settings", policy("[orleans]")),
        ("docs/policies/bmf.md", "## Settings", policy("[bmf]")),
        ("docs/policies/bmf.md", "## Settings", policy("[bmf.nodes.0]")),
        ("docs/policies/ray.md", "## Settings", policy("[ray]")),
        ("docs/policies/ray.md", "## Settings", policy("[ray.sources.a]")),
        ("docs/policies/ray.md", "## Settings", policy("[ray.retry]")),
        ("docs/policies/cyber.md", "## Settings", policy("[scheduler_conf]")),
        ("docs/policies/cyber.md", "## Settings", policy("[[scheduler_conf.threads]]")),
        ("docs/policies/cyber.md", "## Settings", policy("[[scheduler_conf.classic_conf.groups]]")),
        ("docs/policies/cyber.md", "## Settings", policy("[scheduler_conf.choreography_conf]")),
        ("docs/formats.md", "## Kernel tables", kernel),
    ] {
        let text = text(page);
        let section = text.split(section).nth(1).and_then(|rest| rest.split("\n## ").next());
        let section = section.unwrap_or_else(|| panic!("{page} lists no settings"));
        for field in fields(&told) {
            assert!(section.contains(&field), "{page} does not list {field}");
        }
    }
}

/// All Rust files below a folder, one after the other.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &fs::read_to_string(&path).expect("a text");
        }
    }
    all
}

#[test]
fn every_test_that_shows_a_unit_case_or_a_property_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = sources(&root.join("src")) + &sources(&root.join("tests"));
    let text = text("docs/policies.md");
    let (_, tables) = text.split_once("### Properties").expect("a chapter about properties");
    let mut n_cases = 0;
    for line in tables.lines().filter(|line| line.starts_with("| ")) {
        let Some(shown_by) = line.trim_end_matches(" |").rsplit(" | ").next() else { continue };
        for name in shown_by.split('`').skip(1).step_by(2).filter(|name| name.contains('_') && !name.contains('/')) {
            let name = name.trim_end_matches('…');
            assert!(sources.contains(&format!("fn {name}")), "{name} is not there: {line}");
            n_cases += 1;
        }
    }
    assert!(n_cases > 40, "only {n_cases} tests are named");
}
