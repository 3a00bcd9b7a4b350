//! Merges registries of ST-Auto-Recap. A registry is a text that lists other entries by their UID,
//! one per line.
//!
//! Registries are merged line by line. A line is identified by the entry that it names, and gets
//! the UID that this entry has in the merged lorebook. A line without a UID belongs to the last
//! line before it that has one. The text is edited as it is in the file, including JSON escapes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::archive::merge::outcome::{FieldChange, Side};
use crate::auto_recap::written::{is_registry, registry_items, registry_line_uid};
use crate::st::Raw;

/// The entry that a line names: its number in the merge, or a UID that no entry has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    Entry(usize),
    Unknown(String),
}

/// Maps the UIDs of a lorebook's entries to the numbers of the entries in the merge.
pub(crate) type Uids = HashMap<String, usize>;

pub(crate) struct Registries {
    pub base: Uids,
    pub ours: Uids,
    pub theirs: Uids,
    /// The UID of each entry in the merged lorebook; `None` if the merged lorebook does not have
    /// the entry.
    pub now: Vec<Option<String>>,
}

/// A registry's text in the merged lorebook, as JSON, and the lines that both sides changed
/// differently.
pub(crate) struct Merged {
    pub content: String,
    pub conflicts: Vec<FieldChange>,
}

impl Registries {
    /// Returns the merged text of a registry, or `None` if the entry is not a registry in line
    /// format.
    pub(crate) fn merge(
        &self,
        base: Option<Raw<'_>>,
        ours: Option<Raw<'_>>,
        theirs: Option<Raw<'_>>,
        prefer: Side,
    ) -> Option<Merged> {
        if !is_registry(ours.or(theirs)?) || theirs.is_some_and(|entry| !is_registry(entry)) {
            return None;
        }
        let here = ours.map(|entry| self.read(entry, &self.ours));
        let there = theirs.map(|entry| self.read(entry, &self.theirs));
        match (here, there) {
            (Some(here), Some(there)) => {
                let before = base.and_then(|entry| self.read(entry, &self.base));
                Some(self.merge_lines(before.as_ref(), &here?, &there?, prefer))
            }
            (only, None) | (None, only) => {
                let content = format!("\"{}\"", only??.text);
                Some(Merged { content, conflicts: Vec::new() })
            }
        }
    }

    fn read<'r>(&self, entry: Raw<'r>, uids: &Uids) -> Option<Lines<'r>> {
        let text = line_notation(entry.get("content"))?;
        let starts = lines(text).into_iter().filter_map(|line| {
            let uid = registry_line_uid(&text[line.clone()])?;
            Some((line.start, uid))
        });
        let starts: Vec<(usize, Range<usize>)> = starts.collect();
        let head = &text[..starts.first().map_or(text.len(), |(start, _)| *start)];
        let mut read = Lines { text: head.to_owned(), head, items: Vec::new(), tail: "" };
        let mut seen: HashMap<Subject, usize> = HashMap::new();
        for (n, (start, uid)) in starts.iter().enumerate() {
            let whole = &text[*start..starts.get(n + 1).map_or(text.len(), |(start, _)| *start)];
            let item = without_line_ends(whole);
            let named = item.get(uid.clone())?;
            let entry = uids.get(named).copied();
            let subject = entry.map_or_else(|| Subject::Unknown(named.to_owned()), Subject::Entry);
            let now = entry.and_then(|entry| self.now.get(entry)?.as_deref()).unwrap_or(named);
            let line = format!("{}{now}{}", &item[..uid.start], &item[uid.end..]);
            read.tail = &whole[item.len()..];
            read.text.extend([line.as_str(), read.tail]);
            let times = seen.entry(subject.clone()).or_default();
            read.items.push(((subject, *times), line));
            *times += 1;
        }
        Some(read)
    }

    fn merge_lines(
        &self,
        base: Option<&Lines<'_>>,
        ours: &Lines<'_>,
        theirs: &Lines<'_>,
        prefer: Side,
    ) -> Merged {
        let before = base.map(Lines::by_name).unwrap_or_default();
        let (here, there) = (ours.by_name(), theirs.by_name());
        let mut conflicts = Vec::new();
        let mut merged: Vec<&String> = Vec::new();
        for (name, line) in &ours.items {
            let old = before.get(name).copied();
            match there.get(name).copied() {
                Some(other) if other == line || old == Some(other) => merged.push(line),
                Some(other) if old == Some(line) => merged.push(other),
                Some(other) => {
                    let chosen = if prefer == Side::Theirs { other } else { line };
                    conflicts.push(conflict(old, line, other, chosen));
                    merged.push(chosen);
                }
                None if self.stays(&name.0, line, old, &self.theirs) => merged.push(line),
                None => {}
            }
        }
        let added = theirs.items.iter().filter(|(name, line)| {
            let old = before.get(name).copied();
            !here.contains_key(name) && self.stays(&name.0, line, old, &self.ours)
        });
        merged.extend(added.map(|(_, line)| line));
        let head = match base {
            Some(base) if ours.head == base.head => theirs.head,
            _ => ours.head,
        };
        Merged { content: format!("\"{}\"", joined(ours, theirs, head, &merged)), conflicts }
    }

    /// Returns whether to keep a line that the other side does not have. A line that was added on
    /// this side is kept. A line that the other side removed is kept if this side edited the line,
    /// or if the other side removed the line together with its entry; in both cases only if the
    /// merged lorebook has the entry. A line with a UID that no entry has is kept only if it was
    /// added or edited.
    fn stays(&self, subject: &Subject, line: &String, old: Option<&String>, other: &Uids) -> bool {
        let Some(old) = old else { return true };
        let Subject::Entry(n) = subject else { return old != line };
        let is_there = self.now.get(*n).is_some_and(Option::is_some);
        is_there && (old != line || !other.values().any(|entry| entry == n))
    }
}

/// Returns whether an entry is a registry in JSON that lists one of the UIDs `old`. The merge does
/// not update UIDs in such registries.
pub(crate) fn keeps_old_uids(entry: Raw<'_>, old: &HashSet<&str>) -> bool {
    let content = entry.get("content");
    is_registry(entry)
        && line_notation(content).is_none()
        && registry_items(content)
            .unwrap_or_default()
            .iter()
            .any(|item| old.contains(item.uid.as_str()))
}

/// Returns the content of a registry's entry without its quotes, if it is in line format.
fn line_notation<'r>(content: Option<Raw<'r>>) -> Option<&'r str> {
    let content = content.filter(Raw::is_string)?;
    let is_json = content.string()?.trim_start().starts_with('{');
    let text = content.as_str().strip_prefix('"')?.strip_suffix('"')?;
    (!is_json && registry_items(Some(content)).is_ok()).then_some(text)
}

/// A registry's text in one of the lorebooks, with the UIDs replaced by those of the merged
/// lorebook.
struct Lines<'a> {
    text: String,
    /// The text before the first line with a UID.
    head: &'a str,
    /// Each line with the entry that it names, and the number of earlier lines that name the same
    /// entry.
    items: Vec<((Subject, usize), String)>,
    /// The line breaks that follow the last line.
    tail: &'a str,
}

impl Lines<'_> {
    fn by_name(&self) -> HashMap<&(Subject, usize), &String> {
        self.items.iter().map(|(name, line)| (name, line)).collect()
    }
}

/// Joins the merged lines into one text. If one side has exactly these lines, returns the text of
/// that side.
fn joined(ours: &Lines<'_>, theirs: &Lines<'_>, head: &str, merged: &[&String]) -> String {
    fn all<'l>(lines: &'l Lines<'_>) -> impl Iterator<Item = &'l String> {
        lines.items.iter().map(|(_, line)| line)
    }
    if head == ours.head && merged.iter().copied().eq(all(ours)) {
        return ours.text.clone();
    }
    if head == theirs.head
        && merged.len() == theirs.items.len()
        && merged.iter().copied().collect::<HashSet<_>>() == all(theirs).collect()
    {
        return theirs.text.clone();
    }
    let mut out = head.to_owned();
    if !merged.is_empty() && !head.is_empty() && without_line_ends(head).len() == head.len() {
        out.push_str("\\n");
    }
    let lines: Vec<_> = merged.iter().map(|line| line.as_str()).collect();
    out.push_str(&lines.join("\\n"));
    out.push_str(if ours.items.is_empty() { theirs.tail } else { ours.tail });
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

/// Returns the ranges of the lines in a JSON string, without the line ends (`\n` or `\u000a`).
fn lines(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(slash) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let end = at + slash;
        at = match &text.as_bytes()[end + 1..] {
            [b'n', ..] => end + 2,
            [b'u', b'0', b'0', b'0', b'a' | b'A', ..] => end + 6,
            _ => {
                at = (end + 2).min(text.len());
                continue;
            }
        };
        found.push(start..end);
        start = at;
    }
    found.push(start..text.len());
    found
}

/// Removes the empty lines at the end of a text.
fn without_line_ends(text: &str) -> &str {
    let filled = lines(text).into_iter().rev().find(|line| !line.is_empty());
    &text[..filled.map_or(0, |line| line.end)]
}
