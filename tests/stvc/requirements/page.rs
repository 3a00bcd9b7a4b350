//! docs/requirements.md compared with the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::rust_files;

const PAGE: &str = "docs/requirements.md";

/// Returns number and cells of each row of the table.
fn rows() -> Vec<(u32, Vec<String>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let cells = |line: &str| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<_> = inner.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        Some((cells[0].parse().ok()?, cells))
    };
    page.lines().filter_map(cells).collect()
}

/// Returns the tests that a cell names.
fn named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

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

/// Returns the requirements in a test's name.
fn covered(test: &str) -> Vec<u32> {
    test.split("req_").skip(1).filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

#[test]
fn requirements_document_lists_each_requirement_once_with_existing_tests() {
    let rows = rows();
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    // Requirements that are not met yet have no row.
    assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
    let tests = tests();
    assert!(tests.len() > 200, "the test finds no tests any more");
    for (number, cells) in &rows {
        assert_eq!(cells.len(), 5, "{PAGE}, row {number}: a cell too many or too few");
        for name in named(&cells[4]) {
            assert!(tests.contains(name), "{PAGE}, row {number}: there is no test {name}");
        }
        // A row without a test gives the reason.
        assert!(
            !named(&cells[4]).is_empty() || cells[4].starts_with("none: "),
            "{PAGE}, row {number}: no test and no reason"
        );
    }
}

#[test]
fn requirements_document_names_every_req_test() {
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
