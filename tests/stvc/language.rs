//! Refuses the most common patterns of hard-to-read English. CONTRIBUTING.md has the rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Texts that match a pattern and are right: the file, and a part of the text.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Quotes the pattern.
    ("CONTRIBUTING.md", "is no"),
    ("tests/stvc/language.rs", ""),
];

const COLUMNS: usize = 100;

/// First words of a comment that hide its subject.
const BEGINNINGS: &[&str] = &["What", "Who", "Whose", "Whoever", "Whatever", "The same", "Those"];

/// Words that say nothing about an item beyond its name.
const FILLERS: &[&str] = &[
    "a", "an", "and", "are", "for", "from", "get", "gets", "has", "in", "is", "it", "its", "new",
    "of", "return", "returns", "that", "the", "their", "this", "to", "whether", "with",
];

/// A run of comment lines, without their marks.
struct Comment {
    line: usize,
    text: String,
    /// It documents the item in this line of code.
    item: Option<String>,
}

/// Lists the files below some folders of the repository that have one of some endings.
fn files(folders: &[&str], endings: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<_> =
        folders.iter().map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        } else if path.extension().is_some_and(|end| endings.iter().any(|one| end == *one)) {
            files.push(path);
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no files in {folders:?}");
    files
}

fn comments(text: &str) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let marks = ["///", "//!", "//", "#"].into_iter().find(|marks| trimmed.starts_with(marks));
        let Some(marks) = marks.filter(|marks| *marks != "#") else {
            if is_open && !trimmed.starts_with("#[") {
                comments.last_mut().unwrap().item = Some(trimmed.to_owned());
                is_open = false;
            }
            continue;
        };
        let words = trimmed[marks.len()..].trim();
        match comments.last_mut().filter(|_| is_open) {
            Some(comment) => comment.text = format!("{} {words}", comment.text),
            None => comments.push(Comment { line: index + 1, text: words.to_owned(), item: None }),
        }
        is_open = true;
    }
    comments
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn words(text: &str) -> BTreeSet<String> {
    let words = Regex::new("[A-Z]?[a-z0-9]+|[A-Z]+").unwrap();
    let all = words.find_iter(text).map(|word| word.as_str().to_lowercase());
    all.map(|word| word.strip_suffix('s').map_or(word.clone(), str::to_owned)).collect()
}

/// Whether a one-line comment has no word beyond the names in the line that it documents.
fn only_repeats(comment: &Comment) -> bool {
    let Some(item) = &comment.item else { return false };
    let fillers: BTreeSet<_> = FILLERS.iter().map(|word| (*word).to_owned()).collect();
    let said = words(&comment.text);
    let mut said = said.difference(&fillers).peekable();
    let names = words(item);
    said.peek().is_some() && said.all(|word| names.contains(word))
}

/// Finds "is no lorebook" and "is none", but not "there is no" and "is no longer".
fn find_negations(text: &str) -> Vec<(usize, String)> {
    let negation = Regex::new(r"(\w+ )?\b(is|are|was|were) (no|none)\b( \w+)?").unwrap();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for hit in negation.captures_iter(line) {
            let part = |number: usize| hit.get(number).map_or("", |it| it.as_str().trim());
            if !part(1).eq_ignore_ascii_case("there") && !matches!(part(4), "longer" | "less") {
                found.push((index + 1, hit[0].to_owned()));
            }
        }
    }
    found
}

fn problems(path: &Path) -> Vec<String> {
    let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
    let name = name.replace('\\', "/");
    let text = fs::read_to_string(path).unwrap();
    let mut problems = Vec::new();
    let mut report = |line: usize, problem: &str, words: &str| {
        let is_excepted =
            EXCEPTIONS.iter().any(|(file, part)| *file == name && words.contains(part));
        if !is_excepted {
            problems.push(format!("{name}:{line}: {problem}: {words}"));
        }
    };
    // Tests also contain texts of stories and hostile input.
    let comments_only = name.starts_with("tests/");
    for (line, words) in find_negations(&text) {
        if !comments_only || text.lines().nth(line - 1).is_some_and(is_comment) {
            report(line, "write \"is not a\" or \"there is no\"", &words);
        }
    }
    if name.ends_with(".md") {
        return problems;
    }
    for comment in comments(&text) {
        let begins = |with: &&str| {
            comment
                .text
                .strip_prefix(*with)
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        if BEGINNINGS.iter().any(begins) {
            report(comment.line, "begin with a verb or a noun", &comment.text);
        }
        if only_repeats(&comment) {
            report(comment.line, "only repeats the name", &comment.text);
        }
    }
    for (index, line) in text.lines().enumerate() {
        if is_comment(line) && line.chars().count() > COLUMNS {
            report(index + 1, "longer than 100 columns", line.trim());
        }
    }
    problems
}

#[test]
fn texts_contain_no_forbidden_patterns() {
    let code =
        files(&["src", "tests", "benches", "fuzz", "examples", "build.rs"], &["rs", "js", "mjs"]);
    let documents = files(&["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs"], &["md"]);
    let problems: Vec<_> = code.iter().chain(&documents).flat_map(|path| problems(path)).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn forbidden_patterns_are_detected() {
    let text =
        "/// What is kept.\nlet a = 1;\n/// The snapshot of the chat.\nchat_snapshot: Snapshot,\n";
    let found = comments(text);
    assert_eq!(found.iter().map(|comment| comment.line).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(found.iter().map(only_repeats).collect::<Vec<_>>(), [false, true]);
    let text = "this is no lorebook\nthere is no lorebook\nit is no longer used\nthere are none\n";
    let lines: Vec<_> = find_negations(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1]);
}
