//! Documents that must match the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::rust_files;

/// Compares a document with the generated text; `UPDATE_DOCS=1 cargo test docs` writes it.
#[track_caller]
fn is_up_to_date(path: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, made).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == made, "{path} is out of date; run UPDATE_DOCS=1 cargo test docs");
}

#[test]
fn findings_document_equals_the_catalogue() {
    is_up_to_date("docs/findings.md", &stvc::findings::findings_page());
}

/// Every code of the catalogue is used. (Findings are built from the catalogue, so it has all
/// codes. Test builds assert the level of each finding.)
#[test]
fn every_finding_code_is_used() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = String::new();
    for file in rust_files(&src).iter().filter(|file| !file.ends_with("rules/catalogue.rs")) {
        let text = fs::read_to_string(file).unwrap();
        sources.push_str(text.split("#[cfg(test)]\nmod tests").next().unwrap());
    }
    let mut known = BTreeSet::new();
    for rule in stvc::findings::rules() {
        let code = rule.code;
        assert!(known.insert(code.as_str()), "{code} occurs twice in the catalogue");
        for text in [rule.from, rule.meaning, rule.remedy] {
            assert!(!text.is_empty() && !text.contains(['|', '\n']), "{code}: {text}");
        }
        let name = format!("Code::{code:?}");
        let mut used = sources.split(&name).skip(1);
        let is_used = used.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
        assert!(is_used, "only in src/rules/catalogue.rs: {code}");
    }
}

/// docs/architecture.md names existing files.
#[test]
fn architecture_document_names_existing_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let rooms = [
        "api",
        "archive",
        "auto_recap",
        "cli",
        "engine",
        "history",
        "json_output",
        "rules",
        "st",
        "store",
        "verbs",
        "watch",
    ];
    let mut named = 0;
    for path in text.split('`').skip(1).step_by(2) {
        let Some((room, _)) = path.split_once('/') else { continue };
        if rooms.contains(&room) {
            let file = root.join("src").join(path);
            let is_there = file.exists() || file.with_extension("rs").exists();
            assert!(is_there, "docs/architecture.md names {path}");
            named += 1;
        }
    }
    assert!(named > 50, "the test finds no names any more");
}

#[test]
fn contributing_names_existing_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let mut named = 0;
    for path in text.split(|c: char| c.is_whitespace() || "`()[],;:#".contains(c)) {
        let is_path =
            ["src/", "tests/", "docs/", "fixtures/"].iter().any(|it| path.starts_with(it));
        if is_path && path.len() > "fixtures/".len() {
            let path = path.trim_end_matches('.');
            assert!(root.join(path).exists(), "CONTRIBUTING.md names {path}");
            named += 1;
        }
    }
    assert!(named > 30, "the test finds no paths");
}

/// One line per change, short enough for a screen.
#[test]
fn changelog_has_short_lines() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md");
    let text = fs::read_to_string(file).unwrap();
    let version = format!("## [{}]", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "CHANGELOG.md has no section {version}");
    let (head, releases) = text.split_once("\n## ").unwrap();
    assert!(!head.contains("\n- "));
    for line in releases.lines().filter(|line| !line.is_empty()) {
        let is_continued = line.starts_with(' ');
        assert!(!is_continued && line.chars().count() <= 160, "CHANGELOG.md: {line}");
    }
}

/// Every type of JSON line is documented, with every count of a summary.
#[test]
fn json_document_has_every_line_and_count() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/json.md")).unwrap();
    let within = |file: &str, from: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        text.split_once(from).unwrap().1.to_owned()
    };
    let snake = |name: &str| {
        let words = name.chars().map(|c| match c.is_uppercase() {
            true => format!("_{}", c.to_lowercase()),
            false => c.to_string(),
        });
        words.collect::<String>().trim_start_matches('_').to_owned()
    };
    let lines = within("src/json_output/mod.rs", "\npub enum Line<'a> {");
    let lines = lines.split_once("\n}").unwrap().0.lines();
    let variant = |line: &str| {
        let name = line.strip_prefix("    ")?.split(['(', ' ']).next()?;
        name.starts_with(char::is_uppercase).then(|| snake(name))
    };
    let lines: BTreeSet<_> = lines.filter_map(variant).collect();
    let rows = page.lines().skip_while(|row| !row.starts_with("| type")).skip(2);
    let rows = rows.take_while(|row| row.starts_with('|'));
    let documented: BTreeSet<_> =
        rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect();
    assert_eq!(lines, documented);
    let mut seen = 0;
    for file in ["change", "copies", "keep", "look"] {
        let text =
            fs::read_to_string(root.join(format!("src/json_output/answers/{file}.rs"))).unwrap();
        for counts in text.split("counts! {").skip(1) {
            let counts = counts.split_once('}').unwrap().0;
            let is_name = |word: &&str| word.bytes().all(|c| c == b'_' || c.is_ascii_lowercase());
            let Some((fields, _)) = counts.rsplit_once(": ") else { continue };
            for part in fields.split(": ") {
                let field = part.rsplit([' ', '\n']).next().filter(is_name).unwrap();
                assert!(page.contains(&format!("`{field}`")), "docs/json.md lacks {field}");
                seen += 1;
            }
        }
    }
    assert!(seen > 80, "the test finds no counts any more");
}

/// Front ends show findings in Chinese by their codes.
#[test]
fn every_finding_has_a_chinese_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let page = read("docs/findings.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let script = read("src/page/codes.js");
    let table = script.split_once("const FINDINGS = {").unwrap().1.split_once("\n};").unwrap().0;
    let keys = table.lines().filter_map(|line| Some(line.split_once(": \"")?.0.trim()));
    let keys = keys.map(|key| key.trim_matches('"')).collect::<BTreeSet<_>>();
    assert_eq!(rows.collect::<BTreeSet<_>>(), keys);
}

/// A translation has the code blocks of its original, and headings of the same number and levels.
#[test]
fn translations_have_the_blocks_and_headings_of_their_originals() {
    let read = |path: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    for (page, translation) in [
        ("README.md", "docs/README.zh-CN.md"),
        ("docs/sillytavern.md", "docs/sillytavern.zh-CN.md"),
        ("docs/guide.md", "docs/guide.zh-CN.md"),
    ] {
        let (original, translated) = (read(page), read(translation));
        let version = format!("stvc {}", env!("CARGO_PKG_VERSION"));
        assert!(
            translated.contains(&version),
            "{translation} does not say which version it follows"
        );
        let (blocks, headings) = parts(&original);
        let (own_blocks, own_headings) = parts(&translated);
        for (n, (block, own)) in blocks.iter().zip(&own_blocks).enumerate() {
            assert_eq!(own, block, "block {n} of {translation} is not that of {page}");
        }
        assert_eq!(own_blocks.len(), blocks.len(), "blocks of {translation}");
        assert_eq!(own_headings, headings, "headings of {translation}");
    }
}

/// Returns the fenced blocks and the levels of the headings.
fn parts(page: &str) -> (Vec<String>, Vec<usize>) {
    let (mut blocks, mut headings) = (Vec::new(), Vec::new());
    let mut open: Option<String> = None;
    for line in page.lines() {
        match (&mut open, line.starts_with("```")) {
            (None, true) => open = Some(format!("{line}\n")),
            (Some(block), is_end) => {
                block.push_str(line);
                block.push('\n');
                if is_end {
                    blocks.extend(open.take());
                }
            }
            (None, false) if line.starts_with('#') => {
                headings.push(line.bytes().take_while(|byte| *byte == b'#').count());
            }
            _ => {}
        }
    }
    (blocks, headings)
}

/// The examples of encoded names are correct.
#[test]
fn format_document_encodes_names_as_the_program_does() {
    use stvc::internals::store::{name_encoding, trailer};
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    let page = fs::read_to_string(file).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `\""));
    let mut seen = 0;
    for row in rows {
        let cells: Vec<_> =
            row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).trim_matches('`')).collect();
        let [name, tree, reference, value] = cells[..] else { panic!("{row}") };
        let name: String = serde_json::from_str(name).unwrap();
        let shown = |text: String| text.replace('\u{2028}', "\\u2028");
        assert_eq!(shown(name_encoding::tree_segment(name.as_bytes())), tree, "{row}");
        assert_eq!(shown(name_encoding::ref_segment(&name)), reference, "{row}");
        assert_eq!(shown(trailer::encode(&name)), value, "{row}");
        seen += 1;
    }
    assert!(seen > 10, "the table is gone");
}
