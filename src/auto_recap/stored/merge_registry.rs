//! Registries of ST-Auto-Recap: texts that list other entries by their UID, one a line. They are merged line by line, each line known by the entry that
//! it names, and with the UIDs that the entries have in the merged book.
//!
//! The text is worked on as it stands in the file, escapes and all. A line may run over several; what follows it up to the next one that names a UID
//! belongs to it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::archive::merge::outcome::{FieldChange, Side};
use crate::auto_recap::written::{is_registry, registry_items, registry_line_uid};
use crate::st::Raw;

/// The entry that a line names: one of the merge, or nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Group(usize),
    Unknown(String),
}

/// What is known of the entries that lines name.
pub(crate) struct Directory {
    /// Their UIDs in the merged book; none: it is not in there.
    pub now: Vec<Option<String>>,
    /// Which of them are in ours, and which in theirs.
    pub in_ours: Vec<bool>,
    pub in_theirs: Vec<bool>,
}

pub(crate) type Uids = HashMap<String, usize>;

/// What the lines of registries name, book by book.
pub(crate) struct Registries {
    pub base: Uids,
    pub ours: Uids,
    pub theirs: Uids,
    pub directory: Directory,
}

impl Registries {
    /// The text of a registry, if the entry is one in the notation of lines.
    pub(crate) fn merge(
        &self,
        base: Option<Raw<'_>>,
        ours: Option<Raw<'_>>,
        theirs: Option<Raw<'_>>,
        prefer: Side,
    ) -> Option<Merged> {
        let of = |entry: Option<Raw<'_>>| entry.is_some_and(is_registry);
        if !of(ours.or(theirs)) || (theirs.is_some() && !of(theirs)) {
            return None;
        }
        fn read<'r>(entry: Option<Raw<'r>>, uids: &Uids) -> Option<Lines<'r>> {
            Lines::read(entry?.get("content"), uids)
        }
        let (here, there) = (read(ours, &self.ours), read(theirs, &self.theirs));
        let only = |lines: &Lines<'_>| Merged {
            content: renamed(lines, &self.directory),
            conflicts: Vec::new(),
        };
        match (ours, here, theirs, there) {
            (Some(_), Some(here), Some(_), Some(there)) => {
                let before = read(base, &self.base);
                Some(merge(before.as_ref(), &here, &there, &self.directory, prefer))
            }
            (Some(_), Some(here), None, _) => Some(only(&here)),
            (None, _, Some(_), Some(there)) => Some(only(&there)),
            _ => None,
        }
    }
}

/// Whether an entry is a registry in JSON, whose UIDs are not changed, and names one of these.
pub(crate) fn keeps_old_uids(entry: Raw<'_>, old: &HashSet<&str>) -> bool {
    let content = entry.get("content");
    is_registry(entry)
        && Lines::read(content, &Uids::new()).is_none()
        && registry_items(content)
            .unwrap_or_default()
            .iter()
            .any(|item| old.contains(item.uid.as_str()))
}

/// A registry's text in one of the books.
struct Lines<'a> {
    text: &'a str,
    /// Up to the first line that names a UID.
    head: &'a str,
    items: Vec<Item<'a>>,
    /// Line ends behind the last one.
    tail: &'a str,
}

struct Item<'a> {
    /// Of several lines that name one, which.
    who: (Who, usize),
    text: &'a str,
    /// Where in `text` the UID stands.
    uid: Range<usize>,
}

impl<'a> Lines<'a> {
    /// The content of a registry's entry, if it is in this notation.
    fn read(content: Option<Raw<'a>>, uids: &Uids) -> Option<Self> {
        let content = content.filter(Raw::is_string)?;
        if content.string()?.trim_start().starts_with('{') || registry_items(Some(content)).is_err()
        {
            return None;
        }
        let text = content.as_str().strip_prefix('"')?.strip_suffix('"')?;
        let mut starts: Vec<(usize, Range<usize>)> = Vec::new();
        for line in lines(text) {
            if let Some(uid) = registry_line_uid(&text[line.clone()]) {
                starts.push((line.start, uid));
            }
        }
        let end = |n: usize| starts.get(n + 1).map_or(text.len(), |(start, _)| *start);
        let mut seen: HashMap<Who, usize> = HashMap::new();
        let mut items = Vec::new();
        let mut tail = "";
        for (n, (start, uid)) in starts.iter().enumerate() {
            let whole = &text[*start..end(n)];
            let item = without_line_ends(whole);
            tail = &whole[item.len()..];
            let named = item.get(uid.clone())?;
            let who = match uids.get(named) {
                Some(group) => Who::Group(*group),
                None => Who::Unknown(named.to_owned()),
            };
            let times = seen.entry(who.clone()).or_default();
            items.push(Item { who: (who, *times), text: item, uid: uid.clone() });
            *times += 1;
        }
        let head = &text[..starts.first().map_or(text.len(), |(start, _)| *start)];
        Some(Self { text, head, items, tail })
    }

    /// The whole text with the UIDs of the merged book.
    fn written(&self, directory: &Directory) -> String {
        let mut out = String::new();
        let mut copied = 0;
        for item in &self.items {
            let at = item.text.as_ptr().addr() - self.text.as_ptr().addr();
            out.push_str(&self.text[copied..at + item.uid.start]);
            out.push_str(item.uid(directory));
            copied = at + item.uid.end;
        }
        out.push_str(&self.text[copied..]);
        out
    }

    fn by_name(&self, directory: &Directory) -> HashMap<(Who, usize), String> {
        self.items.iter().map(|item| (item.who.clone(), item.written(directory))).collect()
    }
}

impl Item<'_> {
    fn uid<'s>(&'s self, directory: &'s Directory) -> &'s str {
        let now = match &self.who.0 {
            Who::Group(n) => directory.now.get(*n).and_then(Option::as_deref),
            Who::Unknown(_) => None,
        };
        now.unwrap_or(&self.text[self.uid.clone()])
    }

    fn written(&self, directory: &Directory) -> String {
        let Range { start, end } = self.uid;
        format!("{}{}{}", &self.text[..start], self.uid(directory), &self.text[end..])
    }
}

/// A registry's text in the merged book, as JSON, and the lines that both changed differently.
pub(crate) struct Merged {
    pub content: String,
    pub conflicts: Vec<FieldChange>,
}

/// The text of a registry that only one side has.
fn renamed(lines: &Lines<'_>, directory: &Directory) -> String {
    format!("\"{}\"", lines.written(directory))
}

fn merge(
    base: Option<&Lines<'_>>,
    ours: &Lines<'_>,
    theirs: &Lines<'_>,
    directory: &Directory,
    prefer: Side,
) -> Merged {
    let before = base.map(|base| base.by_name(directory)).unwrap_or_default();
    let (here, there) = (ours.by_name(directory), theirs.by_name(directory));
    let mut conflicts = Vec::new();
    let mut merged: Vec<String> = Vec::new();
    for item in &ours.items {
        let (line, old) = (item.written(directory), before.get(&item.who));
        match there.get(&item.who) {
            Some(other) if *other == line || old == Some(other) => merged.push(line),
            Some(other) if old == Some(&line) => merged.push(other.clone()),
            Some(other) => {
                let chosen = if prefer == Side::Theirs { other } else { &line };
                conflicts.push(conflict(old, &line, other, chosen));
                merged.push(chosen.clone());
            }
            None if old.is_none()
                || stays(&item.who.0, directory, &directory.in_theirs, old == Some(&line)) =>
            {
                merged.push(line);
            }
            None => {}
        }
    }
    for item in theirs.items.iter().filter(|item| !here.contains_key(&item.who)) {
        let (line, old) = (item.written(directory), before.get(&item.who));
        if old.is_none() || stays(&item.who.0, directory, &directory.in_ours, old == Some(&line)) {
            merged.push(line);
        }
    }
    let head = match base {
        Some(base) if ours.head == base.head => theirs.head,
        _ => ours.head,
    };
    Merged { content: format!("\"{}\"", joined(ours, theirs, head, &merged, directory)), conflicts }
}

/// Whether a line stays that the other side took away: only with its entry, and if that is one which the other side removed (and which was kept
/// nevertheless), or the line was edited.
fn stays(who: &Who, directory: &Directory, in_other: &[bool], unchanged: bool) -> bool {
    let Who::Group(n) = who else { return !unchanged };
    let is_in = |list: &[bool]| list.get(*n).copied().unwrap_or(false);
    let is_there = directory.now.get(*n).is_some_and(Option::is_some);
    is_there && (!is_in(in_other) || !unchanged)
}

/// The lines as one text: as one side has it where that is the same.
fn joined(
    ours: &Lines<'_>,
    theirs: &Lines<'_>,
    head: &str,
    merged: &[String],
    directory: &Directory,
) -> String {
    let names = |lines: &Lines<'_>| -> Vec<String> {
        lines.items.iter().map(|item| item.written(directory)).collect()
    };
    let (here, there) = (names(ours), names(theirs));
    if head == ours.head && merged == here {
        return ours.written(directory);
    }
    let set = |list: &[String]| list.iter().cloned().collect::<HashSet<_>>();
    if head == theirs.head && merged.len() == there.len() && set(merged) == set(&there) {
        return theirs.written(directory);
    }
    let mut out = head.to_owned();
    let tail = if ours.items.is_empty() { theirs.tail } else { ours.tail };
    if !merged.is_empty() && !head.is_empty() && without_line_ends(head).len() == head.len() {
        out.push_str("\\n");
    }
    out.push_str(&merged.join("\\n"));
    out.push_str(tail);
    out
}

fn conflict(base: Option<&String>, ours: &str, theirs: &str, merged: &str) -> FieldChange {
    let json = |line: &str| format!("\"{line}\"").into_bytes();
    FieldChange {
        field: "content".into(),
        base: base.map(|line| json(line)),
        ours: Some(json(ours)),
        theirs: Some(json(theirs)),
        merged: Some(json(merged)),
    }
}

/// The lines of a JSON string's inside, without their ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match line_end(&bytes[at..]) {
            Some(length) => {
                found.push(start..at);
                at += length;
                start = at;
            }
            None => at += 2,
        }
    }
    found.push(start..bytes.len());
    found
}

/// How long the escaped line end is with which the text begins.
fn line_end(text: &[u8]) -> Option<usize> {
    match text {
        [b'\\', b'n', ..] => Some(2),
        [b'\\', b'u', b'0', b'0', b'0', b'a' | b'A', ..] => Some(6),
        _ => None,
    }
}

/// The text without the empty lines at its end.
fn without_line_ends(text: &str) -> &str {
    let filled = lines(text).into_iter().rev().find(|line| !line.is_empty());
    &text[..filled.map_or(0, |line| line.end)]
}
