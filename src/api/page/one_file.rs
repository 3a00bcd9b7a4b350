//! Writes the viewer and some timelines into one file. The file opens without a server, because it
//! contains the answers to all requests that the viewer sends. It contains no data of other
//! timelines, so that the file can be shared. `story` makes the answers of [`Extent::Story`].

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::stored_answers::{LANES, LONG_PAGE, PAGE, Rows, StoredAnswers};
use super::story::StoryLibrary;
use super::{Exported, Extent, PageStats, bundle};
use crate::api::request::Page;
use crate::api::{Answer, BackgroundJobs, Request, Rights, security_policy, serve};
use crate::archive::diff::Part;
use crate::archive::message_lives::MessageLists;
use crate::archive::{Blake3, Snapshot};
use crate::durable::{self, Existing, Temp};
use crate::engine::{Workspace, changed_timelines};
use crate::history::moment::Moment;
use crate::history::state_then::NeedBook;
use crate::history::{History, name_lookup};
use crate::progress::Monitor;
use crate::st::{Category, TimelineName};
use crate::store::{self, ObjectId, Reader, Store, unless_lost};
use crate::verbs::Result;
use crate::verbs::diff;
use crate::verbs::read::{self, SpokenMessage};

/// The timelines to write, and the destination.
pub struct Options {
    /// The names of the timelines. All chats if empty, but with [`Extent::Story`] no deleted ones.
    pub timelines: Vec<String>,
    /// The file to create. It must not exist.
    pub out: PathBuf,
    /// The parts of the timelines to write.
    pub extent: Extent,
}

/// Writes the viewer and the answers into one file.
pub fn write(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<PageStats> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let mut heads = Vec::new();
    for name in &options.timelines {
        heads.push(name_lookup::stored(name, &history, library.as_ref())?);
    }
    if options.timelines.is_empty() {
        heads.extend(history.heads().map(|(_, head)| head).filter(|it| it.timeline.is_chat()));
        if options.extent == Extent::Story {
            let deleted = changed_timelines::deleted(library.as_ref(), &history);
            heads.retain(|head| !deleted.contains(&head.id));
        }
    }
    heads.sort_unstable_by_key(|head| &head.timeline);
    heads.dedup_by_key(|head| head.id);
    let own = |head: &&'_ Snapshot| history.own(head).0.into_iter().cloned().collect::<Vec<_>>();
    let stories: Vec<_> = heads.iter().map(own).collect();
    // The nonce depends on the ids of all snapshots, so the author of a message cannot predict it.
    let ids = stories.iter().flatten().flat_map(|it| it.id.to_string().into_bytes());
    let nonce = &Blake3::of(&ids.collect::<Vec<_>>()).to_string()[..32];
    let failed = |source| store::Error::Io { path: options.out.clone(), source };
    durable::clear_left_behind(durable::parent(&options.out));
    let mut temp = Temp::beside(&options.out).map_err(failed)?;
    let mut out = BufWriter::new(temp.file());
    out.write_all(head(nonce).as_bytes()).map_err(failed)?;
    let mut kept = StoredAnswers::begin(out, options.extent).map_err(failed)?;
    let timelines = match options.extent {
        Extent::Story => {
            monitor.begin("writing the story", Some(heads.len() as u64));
            let mut library = StoryLibrary::new(workspace, &store, &options.out);
            for head in &heads {
                library.add(head, &mut kept)?;
                monitor.advance(1);
            }
            library.end(&mut kept).map_err(failed)?
        }
        Extent::AllHistory => {
            let snapshots = stories.iter().map(Vec::len).sum::<usize>();
            monitor.begin("writing the viewer", Some(snapshots as u64));
            let mut page = FilePage {
                workspace,
                store: &store,
                history: &history,
                timelines: heads.iter().map(|head| head.timeline.as_str()).collect(),
                snapshots: stories.iter().flatten().map(|it| it.id.to_string()).collect(),
                reader: store.reader(),
                lists: MessageLists::new(store.reader()),
                pages: HashMap::new(),
                kept: &mut kept,
            };
            page.library().map_err(failed)?;
            for (head, story) in heads.iter().zip(&stories) {
                page.story(head, story, monitor).map_err(failed)?;
            }
            let exported = |(head, story): (&&Snapshot, &Vec<Snapshot>)| Exported {
                timeline: head.timeline.clone(),
                snapshots: story.len(),
                story: None,
            };
            heads.iter().zip(&stories).map(exported).collect()
        }
    };
    let finish = || -> io::Result<u64> {
        let mut out = kept.end()?;
        out.write_all(tail(nonce).as_bytes())?;
        out.flush()?;
        out.get_ref().metadata().map(|metadata| metadata.len())
    };
    let bytes = finish().map_err(failed)?;
    temp.finish(&options.out, Existing::Keep).map_err(failed)?;
    Ok(PageStats { path: options.out.clone(), bytes, extent: options.extent, timelines })
}

/// The parts of a comparison, each with the argument that selects it (`PARTS` in compare.js).
const PARTS: [(Part, &str); 4] = [
    (Part::Message, "chat"),
    (Part::Lorebook, "lorebook"),
    (Part::Card, "card"),
    (Part::Metadata, "metadata"),
];

fn head(nonce: &str) -> String {
    let policy = security_policy::of_one_file(nonce);
    let page = bundle::text("/index.html");
    let (begin, _) = page.split_once("<link rel=\"icon\"").unwrap_or((page, ""));
    format!(
        "{begin}<meta http-equiv=\"content-security-policy\" content=\"{policy}\">\n<link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{nonce}\">\n{}</style>\n<script type=\"application/json\" id=\"answers\">",
        bundle::text("/style.css")
    )
}

fn tail(nonce: &str) -> String {
    let page = bundle::text("/index.html");
    let (_, end) = page.split_once("</head>").unwrap_or(("", page));
    format!(
        "</script>\n<script type=\"module\" nonce=\"{nonce}\">\n{}</script>\n</head>{end}",
        bundle::script()
    )
}

struct FilePage<'a, 'k> {
    workspace: &'a Workspace,
    store: &'a Store,
    history: &'a History,
    timelines: HashSet<&'a str>,
    snapshots: HashSet<String>,
    reader: Reader,
    lists: MessageLists,
    /// Stored pages of messages, by the number of the first one and by their object ids. Most
    /// snapshots share pages with the previous snapshot.
    pages: HashMap<(usize, Vec<ObjectId>), Rows>,
    kept: &'a mut StoredAnswers<'k>,
}

impl FilePage<'_, '_> {
    /// Answers a request. Lines about timelines that are not in this file are removed.
    fn ask(&self, verb: &str, arguments: &Value) -> io::Result<Answer> {
        let request = Request::of(verb, Some(arguments.clone())).map_err(io::Error::other)?;
        let mut answer = serve(self.workspace, &request, Rights::Read, &BackgroundJobs::default());
        let lines = std::mem::take(&mut answer.lines);
        answer.lines = lines.into_iter().filter_map(|line| self.own(verb, line)).collect();
        Ok(answer)
    }

    /// Returns the line without references to timelines that are not in this file, or `None` if the
    /// entire line is about such a timeline.
    fn own(&self, verb: &str, line: Box<RawValue>) -> Option<Box<RawValue>> {
        match verb {
            "library" | "graph" | "log" => {
                let mut value: Value = serde_json::from_str(line.get()).ok()?;
                let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
                let is_here = match text("type").as_str() {
                    "timeline" | "lane" => self.timelines.contains(text("timeline").as_str()),
                    "snapshot" => self.snapshots.contains(chat_of(&moment_of(&value))),
                    "graph" | "summary" => true,
                    _ => false,
                };
                if !self.timelines.contains(text("parent").as_str()) && value["parent"].is_string()
                {
                    (value["parent"], value["fork_at"]) = (Value::Null, Value::Null);
                }
                to_raw_value(&value).ok().filter(|_| is_here)
            }
            "lore" => Some(timeless(line)),
            _ => Some(line),
        }
    }

    fn keep(&mut self, verb: &str, arguments: Value) -> io::Result<()> {
        let answer = self.ask(verb, &arguments)?;
        self.kept.keep(verb, &arguments, &answer)
    }

    /// Stores all pages of an answer, and returns their lines.
    fn all(&mut self, verb: &str, of: &Value, size: usize) -> io::Result<Vec<Box<RawValue>>> {
        let (mut lines, mut next) = (Vec::new(), Some(0));
        while let Some(first) = next {
            let mut arguments = of.clone();
            (arguments["first"], arguments["count"]) = (json!(first), json!(size));
            let answer = self.ask(verb, &arguments)?;
            self.kept.keep(verb, &arguments, &answer)?;
            lines.extend(answer.lines);
            next = answer.next;
        }
        Ok(lines)
    }

    fn library(&mut self) -> io::Result<()> {
        self.keep("library", json!({}))?;
        self.all("graph", &json!({ "lanes_only": true }), LONG_PAGE)?;
        self.all("graph", &json!({}), LANES).map(drop)
    }

    fn story(
        &mut self,
        head: &Snapshot,
        story: &[Snapshot],
        monitor: &mut dyn Monitor,
    ) -> io::Result<()> {
        let timeline = head.timeline.as_str();
        self.all("graph", &json!({ "timeline": timeline }), LONG_PAGE)?;
        let stops = self.log(timeline)?;
        self.keep("show", json!({ "snapshot": timeline, "brief": true }))?;
        let ids: HashSet<_> = story.iter().map(|snapshot| snapshot.id).collect();
        for (tag, id) in self.history.tags() {
            if ids.contains(&id) {
                self.keep("show", json!({ "snapshot": tag, "brief": true }))?;
            }
        }
        let snapshots: HashMap<_, _> = story.iter().map(|it| (it.id.to_string(), it)).collect();
        let names = self.workspace.names(self.store, None);
        let moments: Vec<_> = stops.iter().map(|stop| names.moment(stop).ok()).collect();
        for (n, moment) in stops.iter().enumerate() {
            let Some(snapshot) = snapshots.get(chat_of(moment)) else { continue };
            // The viewer derives the answers for chats and lorebooks from the log.
            if !has_text(&head.timeline) {
                self.keep("show", json!({ "snapshot": moment, "brief": true }))?;
            }
            self.messages(moment, snapshot)?;
            if snapshot.lorebook.is_some() || !snapshot.timeline.is_chat() {
                self.lore(moment)?;
            }
            let before = moments.get(n + 1).and_then(Option::as_ref);
            if let Some(pair) = before.zip(moments[n].as_ref()) {
                self.diff(pair)?;
            }
            monitor.advance(1);
        }
        Ok(())
    }

    /// Stores the counts of the changes between two moments, and the changes of each part.
    fn diff(&mut self, (before, after): (&Moment, &Moment)) -> io::Result<()> {
        let comparison = diff::moments(self.store, Some(before), after, NeedBook::IfKnown);
        // The file has no comparison with a damaged snapshot.
        let Ok(comparison) = comparison else { return Ok(()) };
        let (before, after) = (before.id(), after.id());
        let changes = comparison.changes(None);
        let stat = json!({ "before": before, "after": after, "stat": true });
        let counts = Answer::of_comparison(&comparison, changes.clone(), true, Page::of(0, PAGE));
        self.kept.keep("diff", &stat, &counts)?;
        for (part, only) in PARTS {
            let own = changes.iter().filter(|change| change.part == part);
            let own: Vec<_> = own.cloned().collect();
            let mut next = (!own.is_empty()).then_some(0);
            while let Some(first) = next {
                let page = Page::of(first, PAGE);
                let mut answer = Answer::of_comparison(&comparison, own.clone(), false, page);
                answer.lines = answer.lines.into_iter().map(without_whole_message).collect();
                let arguments = json!({
                    "before": before, "after": after, "only": only, "first": first, "count": PAGE
                });
                self.kept.keep("diff", &arguments, &answer)?;
                next = answer.next;
            }
        }
        Ok(())
    }

    /// Stores the log of a timeline. Returns its moments, newest first, in the form that the viewer
    /// requests (`momentOf` in standalone.js).
    fn log(&mut self, timeline: &str) -> io::Result<Vec<String>> {
        let lines = self.all("log", &json!({ "timeline": timeline }), LONG_PAGE)?;
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line.get()).ok());
        let moments = lines.filter(|line| line["type"] == "snapshot");
        Ok(moments.map(|line| moment_of(&line)).collect())
    }

    fn messages(&mut self, moment: &str, snapshot: &Snapshot) -> io::Result<()> {
        let list = unless_lost(self.lists.of(snapshot.tree)).map_err(io::Error::other)?;
        let list = list.unwrap_or_default();
        let mut all = Rows::default();
        for (n, ids) in list.chunks(PAGE).enumerate() {
            let first = n * PAGE;
            let key = (first, ids.to_vec());
            if !self.pages.contains_key(&key) {
                let numbers = first..first + ids.len();
                let page = read::read_listed(&self.reader, snapshot.clone(), &list, numbers);
                let page = page.map_err(io::Error::other)?;
                let lines: Vec<_> = page.messages.iter().filter_map(message_line).collect();
                let rows = self.kept.rows(&lines)?;
                self.pages.insert(key.clone(), rows);
            }
            if let Some(rows) = self.pages.get(&key) {
                all.append(rows);
            }
        }
        self.kept.keep_rows("messages", &json!({ "snapshot": moment }), all);
        Ok(())
    }

    fn lore(&mut self, moment: &str) -> io::Result<()> {
        let (mut lines, mut next) = (Vec::<Box<RawValue>>::new(), Some(0));
        while let Some(first) = next {
            let of = json!({ "snapshot": moment, "first": first, "count": LONG_PAGE });
            let answer = self.ask("lore", &of)?;
            // Each page ends with the summary of the whole answer.
            lines.retain(|line| line.get().starts_with("{\"type\":\"lore_entry\""));
            lines.extend(answer.lines);
            next = answer.next;
        }
        let rows = self.kept.rows(&lines)?;
        self.kept.keep_rows("lore", &json!({ "snapshot": moment }), rows);
        Ok(())
    }
}

fn has_text(timeline: &TimelineName) -> bool {
    timeline.is_chat() || timeline.category() == Category::Lorebook
}

/// Removes the message from a change that adds or removes it, because the file contains all
/// messages of both moments (`withMessages` in standalone.js).
fn without_whole_message(line: Box<RawValue>) -> Box<RawValue> {
    let text = line.get();
    let is_whole = ["added", "removed"].iter().any(|kind| {
        text.starts_with(&format!("{{\"type\":\"change\",\"part\":\"message\",\"kind\":\"{kind}\""))
    });
    let Some(Ok(mut value)) = is_whole.then(|| serde_json::from_str::<Value>(text)) else {
        return line;
    };
    (value["before"], value["after"]) = (Value::Null, Value::Null);
    to_raw_value(&value).unwrap_or(line)
}

fn moment_of(line: &Value) -> String {
    let text = line["moment"].as_str().or(line["id"].as_str());
    text.unwrap_or_default().to_owned()
}

/// Returns the id of the chat's snapshot in a moment. A moment can also contain the id of the
/// lorebook's snapshot and a message number.
fn chat_of(moment: &str) -> &str {
    moment.split(['+', ':']).next().unwrap_or_default()
}

/// Returns the line of a message, without fields that are empty, and without the text if it is a
/// swipe. The viewer adds them again (`withEmptyFields` in standalone.js).
fn message_line(message: &SpokenMessage) -> Option<Box<RawValue>> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(message) else { return None };
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    fields.retain(|_, value| !is_empty(value));
    if message.shown.and_then(|shown| message.swipes.get(shown)) == Some(&message.text) {
        fields.remove("text");
    }
    fields.insert("type".into(), "message".into());
    to_raw_value(&fields).ok()
}

/// Removes the fields that name the snapshot from the line of a lorebook entry, so that snapshots
/// with an equal entry share the line.
fn timeless(line: Box<RawValue>) -> Box<RawValue> {
    let text = line.get();
    if !text.starts_with("{\"type\":\"lore_entry\"") {
        return line;
    }
    let without = ["snapshot", "time"].iter().fold(text.to_owned(), |text, it| without(text, it));
    RawValue::from_string(without).unwrap_or(line)
}

/// Sets the first field called `field` that has a string value to null.
fn without(text: String, field: &str) -> String {
    let begin = format!("\"{field}\":\"");
    let Some(at) = text.find(&begin) else { return text };
    let after = &text[at + begin.len()..];
    let mut is_escaped = false;
    let ends = |c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    let Some(end) = after.find(ends) else { return text };
    format!("{}\"{field}\":null{}", &text[..at], &after[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_and_time_of_an_entry_become_null_and_its_text_is_unchanged() {
        let line =
            r#"{"type":"lore_entry","snapshot":"abc","time":"a \"b\" \\","text":"\"time\":\"x\""}"#;
        let told = timeless(RawValue::from_string(line.to_owned()).unwrap());
        assert_eq!(
            told.get(),
            r#"{"type":"lore_entry","snapshot":null,"time":null,"text":"\"time\":\"x\""}"#
        );
    }

    #[test]
    fn message_line_omits_empty_fields_and_a_text_that_is_a_swipe() {
        let message = |swipes: &[&str], shown| SpokenMessage {
            text: "no".into(),
            swipes: swipes.iter().map(|&text| text.into()).collect(),
            shown,
            ..SpokenMessage::default()
        };
        let line = |message| message_line(&message).unwrap().get().to_owned();
        assert_eq!(
            line(message(&[], None)),
            r#"{"index":0,"name":"","text":"no","type":"message"}"#
        );
        assert_eq!(
            line(message(&["yes", "no"], Some(1))),
            r#"{"index":0,"name":"","swipe":1,"swipes":["yes","no"],"type":"message"}"#
        );
        assert!(line(message(&["yes", "no"], Some(0))).contains(r#""text":"no""#));
    }
}
