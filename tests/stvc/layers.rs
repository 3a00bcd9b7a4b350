//! The layers of docs/architecture.md, held against the `use` lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer and what it may import. Imports go downward only; `st` and `store` are strangers.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    (
        "cli",
        &["ops", "rules", "archive", "st", "store", "durable", "parallel", "progress", "regular"],
    ),
    ("ops", &["rules", "archive", "st", "store", "durable", "parallel", "progress", "regular"]),
    ("rules", &["archive", "st"]),
    ("archive", &["st", "store", "durable", "parallel", "progress", "regular"]),
    ("st", &["durable", "parallel", "progress", "regular"]),
    ("store", &["durable", "parallel", "progress", "regular"]),
    ("durable", &[]),
    ("parallel", &[]),
    ("progress", &[]),
    ("regular", &[]),
];

#[test]
fn imports_go_downward_only() {
    let table: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for file in rust_files(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let layer = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if matches!(layer, "lib" | "main") {
            continue;
        }
        let allowed = table.get(layer).unwrap_or_else(|| panic!("{layer} is in no layer"));
        let text = fs::read_to_string(&file).unwrap();
        for imported in crate_paths(&text) {
            seen += 1;
            assert!(
                imported == layer || allowed.contains(&imported.as_str()),
                "{} imports crate::{imported}",
                relative.display()
            );
        }
    }
    assert!(seen > 50, "the test reads no imports any more");
}

#[test]
fn git_stays_in_the_store() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&src) {
        let inside = file.starts_with(src.join("store"));
        let text = fs::read_to_string(&file).unwrap();
        assert!(inside || !text.contains("gix::"), "{} uses gix", file.display());
    }
}

/// The first component behind every `crate::`, also in grouped imports such as `use crate::{a, b::c}`.
fn crate_paths(text: &str) -> Vec<String> {
    let word = |text: &str| {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(word(rest)),
            Some(group) => {
                let mut depth = 0;
                let mut begin = true;
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => begin = true,
                        c if begin && c.is_alphanumeric() => {
                            found.push(word(&group[at..]));
                            begin = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

/// Every source file below a folder.
pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
