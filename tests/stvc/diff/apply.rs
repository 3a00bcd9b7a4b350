//! `diff --json` is complete: applied to the values before, it yields the values after.
//!
//! `apply` follows `docs/json.md` alone and does not know how the changes were found.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use stvc::json_output::ChangeLine;
use stvc::verbs::diff;

use crate::common::Sandbox;

#[derive(Clone, Debug)]
struct Files {
    header: String,
    messages: Vec<String>,
    book: Option<String>,
}

/// The parsed contents of both files.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    header: Value,
    messages: Vec<Value>,
    book: Option<Value>,
}

/// Parses JSON; other text becomes a string.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()))
}

impl Files {
    /// Writes chat and lorebook number `number`.
    fn write(&self, sandbox: &Sandbox, number: usize) {
        let header = self.header.replace("\"Lore\"", &format!("\"Lore {number}\""));
        let lines: Vec<_> = std::iter::once(&header).chain(&self.messages).cloned().collect();
        sandbox.write(&format!("chats/Mira/{number}.jsonl"), lines.join("\n"));
        let path = format!("worlds/Lore {number}.json");
        match &self.book {
            Some(book) => sandbox.write(&path, book),
            None => drop(std::fs::remove_file(sandbox.path(&path))),
        }
    }

    fn values(&self, number: usize) -> Values {
        let mut header = value(&self.header);
        // A lorebook that the chat does not name does not belong to it.
        let name = header.pointer_mut("/chat_metadata/world_info").filter(|name| **name == "Lore");
        let bound = name.map(|name| *name = format!("Lore {number}").into()).is_some();
        let book = self.book.as_deref().filter(|_| bound).map(value);
        Values { header, messages: self.messages.iter().map(|line| value(line)).collect(), book }
    }
}

/// Applies the changes and asserts that each `before` matches.
fn apply(mut values: Values, changes: &[Value]) -> Values {
    let part = |part: &str| changes.iter().filter(|change| change["part"] == part).collect();
    values.messages = apply_messages(&values.messages, part("message"));
    apply_book(&mut values.book, part("lorebook"));
    for change in part("metadata") as Vec<&Value> {
        let root = match change["of"].as_str().unwrap() {
            "header" => &mut values.header,
            "metadata" => &mut values.header["chat_metadata"],
            other => panic!("{other}"),
        };
        set(root, change);
    }
    values
}

/// Removes messages with a `from`, inserts those with an `after` at their `index`, and fills the
/// gaps with the others in order.
fn apply_messages(before: &[Value], changes: Vec<&Value>) -> Vec<Value> {
    let mut rest: BTreeMap<usize, &Value> = before.iter().enumerate().collect();
    let mut placed: BTreeMap<usize, &Value> = BTreeMap::new();
    for change in &changes {
        let number = |name: &str| change[name].as_u64().map(|n| n as usize);
        assert_eq!(number("from").is_none(), change["kind"] == "added", "{change}");
        if let Some(from) = number("from") {
            assert_eq!(rest.remove(&from), Some(&change["before"]), "{change}");
        }
        if change["kind"] != "removed" {
            assert!(
                placed.insert(number("index").unwrap(), &change["after"]).is_none(),
                "{change}"
            );
        }
    }
    let mut rest = rest.into_values();
    let length = rest.len() + placed.len();
    (0..length)
        .map(|n| {
            placed.remove(&n).or_else(|| rest.next()).expect("there is one for each place").clone()
        })
        .collect()
}

/// Removes every `from`, then inserts every `after` under its `uid`; sets other values by their
/// keys.
fn apply_book(book: &mut Option<Value>, changes: Vec<&Value>) {
    for change in changes.iter().filter(|change| change["uid"].is_string()) {
        if let Some(from) = change["from"].as_str() {
            let entries = book.as_mut().unwrap()["entries"].as_object_mut().unwrap();
            assert_eq!(entries.remove(from).as_ref(), Some(&change["before"]), "{change}");
        }
    }
    for change in changes {
        match change["uid"].as_str() {
            Some(_) if change["kind"] == "removed" => {}
            Some(uid) => {
                let entries = book.as_mut().unwrap()["entries"].as_object_mut().unwrap();
                assert!(entries.insert(uid.into(), change["after"].clone()).is_none(), "{change}");
            }
            None if change["keys"] == json!([]) => {
                assert_eq!(book.is_none(), change["kind"] == "added");
                *book = (change["kind"] != "removed").then(|| change["after"].clone());
            }
            None => set(book.as_mut().unwrap(), change),
        }
    }
}

/// Sets or removes the value at `keys`; in a list of versions, the one with that number.
fn set(root: &mut Value, change: &Value) {
    let keys: Vec<_> =
        change["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    let removed = change["kind"] == "removed";
    if let Some(version) = change["version"].as_i64() {
        let list = keys.iter().fold(root, |value, key| &mut value[*key]).as_array_mut().unwrap();
        list.retain(|item| item["version"] != version);
        if !removed {
            list.push(change["after"].clone());
            list.sort_by_key(|item| item["version"].as_i64());
        }
        return;
    }
    let Some((last, path)) = keys.split_last() else {
        *root = change["after"].clone();
        return;
    };
    let object = path.iter().fold(root, |value, key| &mut value[*key]).as_object_mut().unwrap();
    let before = if removed {
        object.remove(*last)
    } else {
        object.insert((*last).into(), change["after"].clone())
    };
    assert_eq!(before.is_none(), change["kind"] == "added", "{change}");
    assert_eq!(before.unwrap_or_default(), change["before"], "{change}");
}

const WORDS: [&str; 10] =
    ["the", "bell", "rings", "twice", "雨", "over", "bay", "…", "\n", "don't"];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS), 0..8).prop_map(|words| words.join(" "))
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let key = prop::sample::select(&["a", "b", "a.b", "versions", "", "header"]);
    prop::collection::vec((key, inner), 0..4).prop_map(|members| {
        Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

/// Builds an object of some of these members.
fn some_of(
    members: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> impl Strategy<Value = Map<String, Value>> {
    let one = |(key, value): (&'static str, BoxedStrategy<Value>)| {
        prop::option::weighted(0.8, value)
            .prop_map(move |value| value.map(|value| (key.to_owned(), value)))
    };
    let members: Vec<_> = members.into_iter().map(one).collect();
    members.prop_map(|members| members.into_iter().flatten().collect())
}

fn message() -> impl Strategy<Value = Value> {
    let texts = || prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed();
    let extra = some_of(vec![
        ("bookmark_link", text().prop_map(Value::from).boxed()),
        ("auto_recap_memory", tree().boxed()),
        ("branches", texts()),
        ("other", tree().boxed()),
    ]);
    some_of(vec![
        ("name", prop::sample::select(&["Mira", "Wren"]).prop_map(Value::from).boxed()),
        ("send_date", (0..4).prop_map(Value::from).boxed()),
        ("mes", text().prop_map(Value::from).boxed()),
        ("is_system", any::<bool>().prop_map(Value::from).boxed()),
        ("swipe_id", (0..3).prop_map(Value::from).boxed()),
        ("swipes", texts()),
        ("extra", extra.prop_map(Value::from).boxed()),
        ("swipe_info", prop::collection::vec(tree(), 0..2).prop_map(Value::from).boxed()),
    ])
    .prop_map(Value::Object)
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => message().prop_map(|message| message.to_string()),
        1 => message().prop_map(|message| message.to_string().replace("\":", "\" : ")),
        1 => prop::sample::select(&["", " ", "torn {\"mes\":", "null", "[1]", "\"text\"", "{}", "{\"mes\":\"x\"}\r"]).prop_map(str::to_owned),
    ]
}

fn header() -> impl Strategy<Value = String> {
    let version = |(number, text): (i64, String)| json!({"version": number, "content": text});
    let versions =
        prop::collection::vec((0..5i64, text()).prop_map(version), 0..4).prop_map(|mut list| {
            if list.len() > 2 {
                list.sort_by_key(|item| item["version"].as_i64());
                list.dedup_by_key(|item| item["version"].as_i64());
            }
            Value::from(list)
        });
    let recap = some_of(vec![
        ("current_version", (0..3).prop_map(Value::from).boxed()),
        ("versions", versions.boxed()),
    ]);
    let metadata = some_of(vec![
        ("variables", tree().boxed()),
        ("a.b", tree().boxed()),
        ("header", tree().boxed()),
        ("auto_recap_running_scene_recaps", recap.prop_map(Value::from).boxed()),
    ]);
    let metadata = metadata.prop_map(|mut metadata| {
        metadata.insert("world_info".into(), "Lore".into());
        Value::Object(metadata)
    });
    let header = some_of(vec![
        ("user_name", text().prop_map(Value::from).boxed()),
        ("chat_metadata", prop_oneof![8 => metadata, 1 => tree()].boxed()),
    ]);
    prop_oneof![
        12 => header.prop_map(|header| Value::Object(header).to_string()),
        1 => prop::sample::select(&["", "torn {", "[]", "{}"]).prop_map(str::to_owned),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let entry = some_of(vec![
        ("uid", (0..6).prop_map(Value::from).boxed()),
        ("comment", text().prop_map(Value::from).boxed()),
        ("content", text().prop_map(Value::from).boxed()),
        ("key", prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed()),
        ("order", (0..3).prop_map(Value::from).boxed()),
    ]);
    prop_oneof![9 => entry.prop_map(Value::Object), 1 => tree()]
}

const KEYS: [&str; 6] = ["0", "1", "2", "3", "10", "x.y"];

fn book() -> impl Strategy<Value = Option<String>> {
    let entries = prop::collection::vec((prop::sample::select(&KEYS), entry()), 0..6);
    let entries = entries.prop_map(|entries| {
        Value::Object(entries.into_iter().map(|(key, entry)| (key.to_owned(), entry)).collect())
    });
    let book = some_of(vec![
        ("entries", prop_oneof![9 => entries, 1 => tree()].boxed()),
        ("name", tree().boxed()),
    ])
    .boxed();
    prop_oneof![
        9 => book.clone().prop_map(|book| Some(Value::Object(book).to_string())),
        2 => book.prop_map(|book| Some(format!("{:#}\n", Value::Object(book)))),
        1 => Just(Some("{ torn".to_owned())),
        1 => Just(None),
    ]
}

/// An edit of a lorebook between two saves: moves an entry to another key, adds one, or changes its
/// value.
type BookEdit = (&'static str, &'static str, Option<Value>, Option<(&'static str, Value)>);

fn book_edit() -> impl Strategy<Value = BookEdit> {
    let key = || prop::sample::select(&KEYS);
    let field = prop_oneof![
        (Just("order"), (0..3).prop_map(Value::from)),
        (Just("comment"), text().prop_map(Value::from)),
        (Just("content"), text().prop_map(Value::from)),
    ];
    (key(), key(), prop::option::weighted(0.2, entry()), prop::option::weighted(0.7, field))
}

fn edit_book(book: Option<String>, deeds: &[BookEdit]) -> Option<String> {
    let mut value: Value = serde_json::from_str(book.as_deref()?).ok()?;
    let entries = value.get_mut("entries")?.as_object_mut()?;
    for (from, to, new, field) in deeds {
        match (new, field) {
            (Some(new), _) => drop(entries.insert((*to).into(), new.clone())),
            (None, Some((name, value))) => {
                if let Some(entry) = entries.get_mut(*from).and_then(Value::as_object_mut) {
                    entry.insert((*name).into(), value.clone());
                }
            }
            (None, None) => {
                if let Some(entry) = entries.remove(*from) {
                    entries.insert((*to).into(), entry);
                }
            }
        }
    }
    Some(value.to_string())
}

/// An edit of a chat between two saves.
#[derive(Clone, Debug)]
enum ChatEdit {
    Insert(prop::sample::Index, String),
    Remove(prop::sample::Index),
    Move(prop::sample::Index, prop::sample::Index),
    Set(prop::sample::Index, &'static str, Value),
}

impl ChatEdit {
    fn any() -> impl Strategy<Value = ChatEdit> {
        let at = any::<prop::sample::Index>;
        let field = prop_oneof![
            (Just("is_system"), any::<bool>().prop_map(Value::from)),
            (Just("mes"), text().prop_map(Value::from)),
            (Just("swipe_id"), (0..3).prop_map(Value::from)),
            (Just("swipes"), prop::collection::vec(text(), 0..3).prop_map(Value::from)),
            (Just("extra"), text().prop_map(|text| json!({"bookmark_link": text}))),
            (Just("extra"), tree().prop_map(|tree| json!({"auto_recap_memory": tree}))),
        ];
        prop_oneof![
            1 => (at(), line()).prop_map(|(at, line)| ChatEdit::Insert(at, line)),
            1 => at().prop_map(ChatEdit::Remove),
            1 => (at(), at()).prop_map(|(from, to)| ChatEdit::Move(from, to)),
            2 => (at(), field).prop_map(|(at, (key, value))| ChatEdit::Set(at, key, value)),
        ]
    }

    fn to(&self, lines: &mut Vec<String>) {
        match self {
            ChatEdit::Insert(at, line) => lines.insert(at.index(lines.len() + 1), line.clone()),
            _ if lines.is_empty() => {}
            ChatEdit::Remove(at) => drop(lines.remove(at.index(lines.len()))),
            ChatEdit::Move(from, to) => {
                let line = lines.remove(from.index(lines.len()));
                lines.insert(to.index(lines.len() + 1), line);
            }
            ChatEdit::Set(at, key, value) => {
                let at = at.index(lines.len());
                if let Ok(Value::Object(mut message)) = serde_json::from_str(&lines[at]) {
                    message.insert((*key).into(), value.clone());
                    lines[at] = Value::Object(message).to_string();
                }
            }
        }
    }
}

/// Two states: the second is an edit of the first, or unrelated.
fn states() -> impl Strategy<Value = (Files, Files)> {
    let before = (header(), prop::collection::vec(line(), 0..12), book())
        .prop_map(|(header, messages, book)| Files { header, messages, book });
    let deeds = prop::collection::vec(ChatEdit::any(), 0..6);
    let book_deeds = prop::collection::vec(book_edit(), 0..5);
    let by_chance = (header(), prop::option::weighted(0.2, book()));
    (before, deeds, book_deeds, by_chance).prop_map(
        |(before, deeds, book_deeds, (header, book))| {
            let mut messages = before.messages.clone();
            deeds.iter().for_each(|deed| deed.to(&mut messages));
            let book = book.unwrap_or_else(|| edit_book(before.book.clone(), &book_deeds));
            (before, Files { header, messages, book })
        },
    )
}

/// Returns the changes of a chat since its latest snapshot, without a process.
fn changes(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let options = diff::Options { before: name.to_owned(), ..Default::default() };
    let comparison = diff::diff(&sandbox.workspace(), &options).unwrap();
    let changes = comparison.changes(None);
    changes.iter().map(|change| serde_json::to_value(ChangeLine::from(change)).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn applying_a_diff_yields_the_other_side(pairs in prop::collection::vec(states(), 12)) {
        let sandbox = Sandbox::empty();
        pairs.iter().enumerate().for_each(|(n, (before, _))| before.write(&sandbox, n));
        sandbox.take(&[]);
        pairs.iter().enumerate().for_each(|(n, (_, after))| after.write(&sandbox, n));
        for (n, (before, after)) in pairs.iter().enumerate() {
            let name = format!("chats/Mira/{n}");
            let changes = changes(&sandbox, &name);
            if n == 0 {
                // The program prints the same.
                let mut printed = sandbox.json(&["diff", &name]).exits(0).of_type("change");
                printed.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("type")));
                prop_assert_eq!(&changes, &printed);
            }
            let applied = apply(before.values(n), &changes);
            prop_assert_eq!(applied, after.values(n), "{:#?}", changes);
        }
    }
}
