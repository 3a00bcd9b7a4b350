//! The page held against the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::rust_files;

const PAGE: &str = "docs/requirements.md";

/// The lines of the page's table of requirements: number, and the cells.
fn rows() -> Vec<(u32, Vec<String>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let cells = |line: &str| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<_> = inner.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        Some((cells[0].parse().ok()?, cells))
    };
    page.lines().filter_map(cells).collect()
}

/// The tests that a cell names.
fn named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names of all tests of the project.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for file in ["src", "tests"].iter().flat_map(|folder| rust_files(&root.join(folder))) {
        let text = fs::read_to_string(file).unwrap();
        for rest in text.split("#[test]").skip(1) {
            let (_, rest) = rest.split_once("fn ").unwrap();
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap();
            names.insert(rest[..end].to_owned());
        }
    }
    names
}

/// The requirements that a test's name says it covers.
fn covered(test: &str) -> Vec<u32> {
    test.split("req_").skip(1).filter_map(|rest| rest.get(..2)?.parse().ok()).collect()
}

#[test]
fn the_page_has_every_requirement_once_and_names_tests_that_exist() {
    let rows = rows();
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    // What is not true yet has no row.
    assert_eq!(numbers, (1..=83).chain(88..=92).chain(96..=98).collect::<Vec<_>>());
    let tests = tests();
    assert!(tests.len() > 200, "the test finds no tests any more");
    for (number, cells) in &rows {
        assert_eq!(cells.len(), 5, "{PAGE}, row {number}: a cell too many or too few");
        for name in named(&cells[4]) {
            assert!(tests.contains(name), "{PAGE}, row {number}: there is no test {name}");
        }
        // A row without a test says why.
        assert!(
            !named(&cells[4]).is_empty() || cells[4].starts_with("none: "),
            "{PAGE}, row {number}: no test and no reason"
        );
    }
}

#[test]
fn the_page_names_every_test_that_covers_a_requirement() {
    let rows: BTreeMap<_, _> = rows().into_iter().collect();
    let mut missing = Vec::new();
    for test in tests() {
        for number in covered(&test) {
            let row =
                rows.get(&number).unwrap_or_else(|| panic!("{test}: there is no row {number}"));
            if !named(&row[4]).contains(&test.as_str()) {
                missing.push(format!("row {number}: `{test}`"));
            }
        }
    }
    assert!(missing.is_empty(), "not in {PAGE}:\n{}", missing.join("\n"));
}
