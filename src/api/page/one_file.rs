//! The page with timelines in one file that opens without any program: everything that it would ask is answered beforehand, by the same code.
//!
//! It has the snapshots of these timelines and nothing of others, so that it can be given away.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::bundle;
use super::kept::{Kept, Rows};
use crate::api::{Answer, Request, Rights, security_policy, serve};
use crate::archive::message_lives::MessageLists;
use crate::archive::{Blake3, Snapshot};
use crate::durable::{self, Existing, Temp};
use crate::engine::Workspace;
use crate::history::{History, name_lookup};
use crate::progress::Monitor;
use crate::store::{self, ObjectId, Store, unless_lost};
use crate::verbs::Result;

/// As many as the page asks for at a time (`PAGE` and `LANES` in file.js), and of what is short (`pages` in ask.js).
const PAGE: usize = 50;
const LANES: usize = 200;
const LONG_PAGE: usize = 1000;

/// What to write.
pub struct Options {
    /// These timelines; none: all chats.
    pub timelines: Vec<String>,
    /// The file; it must not be there yet.
    pub out: PathBuf,
}

/// What was written.
pub struct Written {
    pub timelines: usize,
    pub snapshots: usize,
    pub bytes: u64,
}

/// Write it.
pub fn write(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Written> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let mut heads = Vec::new();
    for name in &options.timelines {
        heads.push(name_lookup::stored(name, &history, library.as_ref())?);
    }
    if options.timelines.is_empty() {
        heads.extend(history.heads().map(|(_, head)| head).filter(|it| it.timeline.is_chat()));
    }
    heads.sort_unstable_by_key(|head| &head.timeline);
    heads.dedup_by_key(|head| head.id);
    let failed = |source| store::Error::Io { path: options.out.clone(), source };
    let own = |head: &&'_ Snapshot| history.own(head).0.into_iter().cloned().collect::<Vec<_>>();
    let stories: Vec<_> = heads.iter().map(own).collect();
    let snapshots = stories.iter().map(Vec::len).sum();
    monitor.begin("writing the page", Some(snapshots as u64));
    let told = Told {
        workspace,
        history: &history,
        timelines: heads.iter().map(|head| head.timeline.as_str()).collect(),
        snapshots: stories.iter().flatten().map(|it| it.id.to_string()).collect(),
        lists: MessageLists::new(Store::reader(&store)),
        pages: HashMap::new(),
    };
    let bytes = file(told, &heads, &stories, &options.out, monitor).map_err(failed)?;
    Ok(Written { timelines: heads.len(), snapshots, bytes })
}

fn file(
    mut told: Told<'_>,
    heads: &[&Snapshot],
    stories: &[Vec<Snapshot>],
    path: &Path,
    monitor: &mut dyn Monitor,
) -> io::Result<u64> {
    durable::clear_left_behind(durable::parent(path));
    let mut temp = Temp::beside(path)?;
    // Nobody who wrote in a chat could know it.
    let ids = stories.iter().flatten().flat_map(|it| it.id.to_string().into_bytes());
    let nonce = &Blake3::of(&ids.collect::<Vec<_>>()).to_string()[..32];
    let mut out = BufWriter::new(temp.file());
    out.write_all(head(nonce).as_bytes())?;
    let mut kept = Kept::begin(out)?;
    told.library(&mut kept)?;
    for (head, story) in heads.iter().zip(stories) {
        told.story(head, story, &mut kept, monitor)?;
    }
    let mut out = kept.end()?;
    out.write_all(tail(nonce).as_bytes())?;
    out.flush()?;
    drop(out);
    let bytes = temp.file().metadata()?.len();
    temp.finish(path, Existing::Keep)?;
    Ok(bytes)
}

fn head(nonce: &str) -> String {
    let policy = security_policy::of_one_file(nonce);
    let page = bundle::text("/index.html");
    let (begin, _) = page.split_once("<link rel=\"icon\"").unwrap_or((page, ""));
    format!(
        "{begin}<meta http-equiv=\"content-security-policy\" content=\"{policy}\">\n<link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{nonce}\">\n{}</style>\n<script type=\"application/json\" id=\"kept\">",
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

/// Who answers.
struct Told<'a> {
    workspace: &'a Workspace,
    history: &'a History,
    timelines: HashSet<&'a str>,
    snapshots: HashSet<String>,
    lists: MessageLists,
    /// Pages of messages that were told, by their ids: most snapshots have those of the one before.
    pages: HashMap<Vec<ObjectId>, Rows>,
}

impl Told<'_> {
    /// What is answered to a request, of these timelines alone.
    fn ask(&self, verb: &str, arguments: &Value) -> io::Result<Answer> {
        let request = Request::of(verb, Some(arguments.clone())).map_err(io::Error::other)?;
        let mut answer = serve(self.workspace, &request, Rights::Read);
        let lines = std::mem::take(&mut answer.lines);
        answer.lines = lines.into_iter().filter_map(|line| self.own(verb, line)).collect();
        Ok(answer)
    }

    /// A line without what is not in this file.
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
            "messages" | "lore" => Some(timeless(line)),
            _ => Some(line),
        }
    }

    fn tell<W: Write>(&self, verb: &str, arguments: Value, kept: &mut Kept<W>) -> io::Result<Rows> {
        kept.keep(verb, &arguments, &self.ask(verb, &arguments)?)
    }

    /// All pages of something.
    fn all<W: Write>(
        &self,
        verb: &str,
        of: &Value,
        size: usize,
        kept: &mut Kept<W>,
    ) -> io::Result<()> {
        let mut next = Some(0);
        while let Some(first) = next {
            let mut arguments = of.clone();
            (arguments["first"], arguments["count"]) = (json!(first), json!(size));
            let answer = self.ask(verb, &arguments)?;
            kept.keep(verb, &arguments, &answer)?;
            next = answer.next;
        }
        Ok(())
    }

    fn library<W: Write>(&self, kept: &mut Kept<W>) -> io::Result<()> {
        self.tell("library", json!({}), kept)?;
        self.all("graph", &json!({ "lanes_only": true }), LONG_PAGE, kept)?;
        self.all("graph", &json!({}), LANES, kept)
    }

    /// One timeline with its snapshots, newest first.
    fn story<W: Write>(
        &mut self,
        head: &Snapshot,
        story: &[Snapshot],
        kept: &mut Kept<W>,
        monitor: &mut dyn Monitor,
    ) -> io::Result<()> {
        let timeline = head.timeline.as_str();
        self.all("graph", &json!({ "timeline": timeline }), LONG_PAGE, kept)?;
        let stops = self.log(timeline, kept)?;
        self.tell("show", json!({ "snapshot": timeline }), kept)?;
        let ids: HashSet<_> = story.iter().map(|snapshot| snapshot.id).collect();
        for (tag, id) in self.history.tags() {
            if ids.contains(&id) {
                self.tell("show", json!({ "snapshot": tag }), kept)?;
            }
        }
        let snapshots: HashMap<_, _> = story.iter().map(|it| (it.id.to_string(), it)).collect();
        for (n, moment) in stops.iter().enumerate() {
            let Some(snapshot) = snapshots.get(chat_of(moment)) else { continue };
            self.tell("show", json!({ "snapshot": moment }), kept)?;
            self.messages(moment, snapshot, kept)?;
            if snapshot.lorebook.is_some() || !snapshot.timeline.is_chat() {
                self.all("lore", &json!({ "snapshot": moment }), PAGE, kept)?;
            }
            if let Some(before) = stops.get(n + 1) {
                self.tell("diff", json!({ "before": before, "after": moment }), kept)?;
            }
            monitor.advance(1);
        }
        Ok(())
    }

    /// Keeps the log of a timeline. Returns its moments, newest first, as the page asks for them (`momentOf` in file.js).
    fn log<W: Write>(&self, timeline: &str, kept: &mut Kept<W>) -> io::Result<Vec<String>> {
        let (mut moments, mut next) = (Vec::new(), Some(0));
        while let Some(first) = next {
            let arguments = json!({ "timeline": timeline, "first": first, "count": LONG_PAGE });
            let answer = self.ask("log", &arguments)?;
            kept.keep("log", &arguments, &answer)?;
            let lines = answer.lines.iter();
            let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line.get()).ok());
            let is_stop = |line: &Value| line["type"] == "snapshot";
            moments.extend(lines.filter(is_stop).map(|line| moment_of(&line)));
            next = answer.next;
        }
        Ok(moments)
    }

    fn messages<W: Write>(
        &mut self,
        moment: &str,
        snapshot: &Snapshot,
        kept: &mut Kept<W>,
    ) -> io::Result<()> {
        let list = unless_lost(self.lists.of(snapshot.tree)).map_err(io::Error::other)?;
        let list = list.unwrap_or_default();
        for (n, ids) in list.chunks(PAGE).enumerate() {
            let first = n * PAGE;
            let arguments = json!({ "snapshot": moment, "first": first, "count": PAGE });
            // What comes after it tells whether there is another page.
            let known =
                [ids, list.get(first + PAGE..first + PAGE + 1).unwrap_or_default()].concat();
            match self.pages.get(&known) {
                Some(rows) => kept.keep_again("messages", &arguments, rows.clone()),
                None => {
                    let rows = self.tell("messages", arguments, kept)?;
                    self.pages.insert(known, rows);
                }
            }
        }
        Ok(())
    }
}

/// Returns how the page asks for the state that a line showed.
fn moment_of(line: &Value) -> String {
    let text = line["moment"].as_str().or(line["id"].as_str());
    text.unwrap_or_default().to_owned()
}

/// Returns the id of the chat's snapshot in a moment, which may name its lorebook's snapshot and a message, too.
fn chat_of(moment: &str) -> &str {
    moment.split(['+', ':']).next().unwrap_or_default()
}

/// A line that says the same in every snapshot: messages and entries do not change because another snapshot or fork has them, too.
fn timeless(line: Box<RawValue>) -> Box<RawValue> {
    let text = line.get();
    let fields = match text {
        message if message.starts_with("{\"type\":\"message\"") => ["snapshot", "timeline"],
        entry if entry.starts_with("{\"type\":\"lore_entry\"") => ["snapshot", "time"],
        _ => return line,
    };
    let without = fields.iter().fold(text.to_owned(), |text, field| without(text, field));
    RawValue::from_string(without).unwrap_or(line)
}

/// JSON whose first field of that name, a string, is null.
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
    fn a_line_without_where_it_stands() {
        let line = r#"{"type":"message","snapshot":"abc","timeline":"chats/M/a \"b\" \\","index":1,"text":"\"timeline\":\"x\""}"#;
        let told = timeless(RawValue::from_string(line.to_owned()).unwrap());
        assert_eq!(
            told.get(),
            r#"{"type":"message","snapshot":null,"timeline":null,"index":1,"text":"\"timeline\":\"x\""}"#
        );
    }
}
