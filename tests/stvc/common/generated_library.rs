//! Generated libraries with unusual names and contents.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A library and the files that a restore must recreate.
#[derive(Debug)]
pub struct Library {
    pub files: BTreeMap<String, Vec<u8>>,
    pub timelines: Vec<String>,
    /// Files to delete: every file of a snapshot, in some cases except the group's file.
    pub to_delete: Vec<String>,
}

/// Characters that are special in file names, refs and shells, and some that are not ASCII. Callers
/// append a digit, so that names are distinct and legal.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z雪雨値🦊é ._#@%~^{}()'-]{0,12}"
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        any::<String>().prop_map(|text| text.chars().take(60).collect()),
        select(vec!["", "雨の夜 🦊", "tab\tand\nbreak", "\u{2028}\u{2029}\u{7f}\u{9b}", "\\ud83e"])
            .prop_map(String::from),
    ]
}

/// A JSON value; some of them change in a parser's round trip.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => text().prop_map(|text| serde_json::to_string(&text).unwrap()),
        2 => select(vec![
            "1e21", "-0", "0.1e-400", "9007199254740993", "123456789012345678901234567890", "null", "true", "[ ]", "{ }",
            r#""\ud83e""#, r#""\udc00\ud800""#, r#"{"a":1,"a":2}"#, r#"{"__proto__":{"x":null}}"#, "[null,null]", r#""\u0041\/""#,
        ]).prop_map(String::from),
    ]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let key = select(vec![
        "mes",
        "name",
        "is_system",
        "extra",
        "swipes",
        "__proto__",
        "mes",
        r"m\u0065s",
        r"\ud83e",
    ]);
    let members = vec((key, value()), 0..6);
    members.prop_map(|members| {
        let members: Vec<_> =
            members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    })
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => message(),
        2 => select(vec!["", " ", "\t\t", "\r", "null", "{", "\u{feff}{}"]).prop_map(|line| line.as_bytes().to_vec()),
        2 => (message(), any::<prop::sample::Index>()).prop_map(|(line, at)| line[..at.index(line.len())].to_vec()),
        2 => vec(any::<u8>(), 0..40),
        1 => "[a-f 雪]{1,9}".prop_map(|word| format!("{{\"mes\":\"{}\"}}", word.repeat(200_000 / word.len())).into_bytes()),
    ]
}

/// The byte order mark and the lines after the header.
fn lines() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let lines = prop_oneof![9 => vec(line(), 0..12), 1 => vec(message(), 95..210)];
    let end = select(vec!["", "", "", "\n", "\r\n", "\n\n"]);
    (lines, any::<bool>(), any::<bool>(), end).prop_map(|(lines, bom, crlf, end)| {
        let begin = if bom { &b"\xef\xbb\xbf"[..] } else { b"" };
        let breaks = if crlf { &b"\r\n"[..] } else { b"\n" };
        (begin.to_vec(), [lines.join(breaks).as_slice(), end.as_bytes()].concat())
    })
}

fn header(book: Option<&String>) -> String {
    let book = book.map_or("null".into(), |book| serde_json::to_string(book).unwrap());
    format!(
        r#"{{"chat_metadata":{{"integrity":"x","n":1e21,"world_info":{book}}},"user_name":"unused"}}"#
    )
}

/// A lorebook file: minified or not, complete or truncated, or not a lorebook.
fn book() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![
        "[0-9]{1,3}",
        select(vec!["__proto__", "", "..", "CON", "a/b", r"\ud83e", r"\u0030", "雪"])
            .prop_map(String::from),
        name()
    ];
    let entry = prop_oneof![
        value(),
        (value(), value())
            .prop_map(|(a, b)| format!("{{\n \"uid\": 1, \"content\": {a},\t\"key\": [{b}]}}"))
    ];
    let spacing = select(vec!["", " ", "\n    ", "\r\n"]);
    let written = (vec((key, entry), 0..8), spacing, any::<bool>(), value(), 0..12usize).prop_map(
        |(entries, space, bom, rest, torn)| {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| format!("{space}\"{key}\":{space}{value}"))
                .collect();
            let bom = if bom { "\u{feff}" } else { "" };
            let text = format!(
                "{bom}{{\"name\":{rest},{space}\"entries\":{space}{{{}}}{space}}}{space}",
                entries.join(",")
            );
            let keep = if torn == 0 { text.len() / 2 } else { text.len() };
            text.as_bytes()[..keep].to_vec()
        },
    );
    prop_oneof![6 => written, 1 => vec(any::<u8>(), 0..60)]
}

/// Up to three chats and two group chats, some bound to one of two lorebooks.
pub fn library() -> impl Strategy<Value = Library> {
    let chat = || (name(), lines(), prop::option::of(0..2usize));
    let books = (name(), book(), name(), book());
    (vec(chat(), 1..4), vec((chat(), any::<bool>()), 0..3), books, any::<bool>()).prop_map(
        |(solo, groups, (first, one, second, other), group_too)| {
            let mut library =
                Library { files: BTreeMap::new(), timelines: Vec::new(), to_delete: Vec::new() };
            let names = [format!("a{first}1"), format!("b{second}2")];
            let bytes = [one, other];
            let bind = |library: &mut Library, book: Option<usize>| {
                let path = format!("worlds/{}.json", names[book?]);
                if library.files.insert(path.clone(), bytes[book?].clone()).is_none() {
                    library.to_delete.push(path);
                }
                Some(names[book?].clone())
            };
            for (n, (name, (bom, lines), book)) in solo.into_iter().enumerate() {
                // A header after a byte order mark binds no lorebook.
                let book = if bom.is_empty() { bind(&mut library, book) } else { None };
                let bytes =
                    [bom.as_slice(), header(book.as_ref()).as_bytes(), b"\n", &lines].concat();
                library.chat(format!("chats/{name}{n}/{name}{n}"), bytes);
            }
            let mut listed = Vec::new();
            let mut past = serde_json::Map::new();
            for (n, ((name, (bom, lines), book), headless)) in groups.into_iter().enumerate() {
                let name = format!("{name}{n}");
                let book = if headless || bom.is_empty() { bind(&mut library, book) } else { None };
                let bytes = if headless {
                    past.insert(name.clone(), serde_json::json!({ "world_info": book }));
                    [b"{\"mes\":\"first\"}\n", lines.as_slice()].concat()
                } else {
                    [bom.as_slice(), header(book.as_ref()).as_bytes(), b"\n", &lines].concat()
                };
                library.chat(format!("group chats/{name}"), bytes);
                listed.push(name);
            }
            if !listed.is_empty() {
                let group =
                    serde_json::json!({ "id": "1", "chats": listed, "past_metadata": past });
                library
                    .files
                    .insert("groups/1.json".into(), serde_json::to_vec_pretty(&group).unwrap());
                library.to_delete.extend(group_too.then(|| "groups/1.json".to_owned()));
            }
            library
        },
    )
}

impl Library {
    fn chat(&mut self, name: String, bytes: Vec<u8>) {
        let path = format!("{name}.jsonl");
        self.files.insert(path.clone(), bytes);
        self.to_delete.push(path);
        self.timelines.push(name);
    }
}
