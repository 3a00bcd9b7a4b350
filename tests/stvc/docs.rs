//! Documents that could drift.

use std::fs;
use std::path::Path;

/// `UPDATE_DOCS=1 cargo test docs` writes it anew.
#[test]
fn the_command_reference_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    let reference = stvc::cli::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &reference).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == reference, "docs/cli.md is out of date; run UPDATE_DOCS=1 cargo test docs");
}
