use clap_complete::engine::ArgValueCompleter;

use super::clock::Clock;
use super::complete::timelines;
use super::diff::{Page, entry_lines};
use super::error::Result;
use super::output::{LOOK, Out, bold, dim, paint, short_id};
use super::show;
use super::table::{self, Cell};
use super::wording::{clean, count, cut, cut_front, cut_middle, entry_title, in_parentheses, name};
use super::wrap::hanging;
use stvc::library::{self, Raw};
use stvc::lines::answers::Lore;
use stvc::snapshots::Snapshot;
use stvc::verbs::lore::{
    Active, Book, EntryChange, EntryStory, EntryThen, KnownFrom, Options, Report, SceneName, Then,
};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, group = clap::ArgGroup::new("when").args(["at", "active"]))]
pub struct Args {
    /// A lorebook, an entry, or a lorebook and one of its entries; all of them if nothing is said
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub named: Vec<String>,

    /// The text of now, and for each sentence the snapshot and message it came with
    #[arg(long, conflicts_with = "at")]
    pub blame: bool,

    /// What was known then: a message's number, a date, ~N (states ago), or a snapshot
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,

    /// Which entries the model was told at message N, where ST-Auto-Recap noted it there
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "blame"])]
    pub active: Option<usize>,

    /// The chat whose messages --at and --active count; if not given, the last one with the lorebook
    #[arg(add = ArgValueCompleter::new(timelines), long = "in", value_name = "TIMELINE", requires = "when")]
    pub chat: Option<String>,

    /// At most this many changes
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,

    /// Also changes of formatting alone
    #[arg(long, conflicts_with = "when")]
    pub all: bool,
}

const HELP: &str = "An entry is named by its title, one of its keywords, or any part of a title that no other has, also by a title it once had; with its lorebook also by its UID. \
                    SillyTavern gives the UID of a deleted entry to the next one: 5 is the entry that has UID 5 or had it last, 5~1 the one that had it before. An exact title comes before a part of one, also if that entry was deleted. \
                    Its history is told across renames and forks, newest first: the snapshot, the message that the story had come to, and what changed. \
                    A scene is named if it ended after the state before and ST-Auto-Recap recorded the new text at its end; otherwise only the time between the two states is certain. \
                    An entry that was deleted and made again is the same one if it says the same, or if under the same UID it has the same title or much of what it said.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    // A single name may be that of a lorebook or of an entry.
    let mut names = args.named.iter().rev().cloned();
    let options = Options {
        entry: names.next(),
        book: names.next(),
        blame: args.blame,
        at: args.at.clone(),
        chat: args.chat.clone(),
        active: args.active,
        limit: args.limit,
        all: args.all,
        ..Options::default()
    };
    run_with(&options, workspace, out)
}

pub fn of_snapshot(args: &show::Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        entry: args.entry.clone(),
        snapshot: Some(args.snapshot.clone()),
        ..Options::default()
    };
    run_with(&options, workspace, out)
}

fn run_with(options: &Options, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::lore::lore(workspace, options, &mut out.progress())?;
    let command = if options.snapshot.is_some() { "show" } else { "lore" };
    let answer = Lore { command, report: &report };
    let text = |out: &mut Out| {
        let clock = out.clock;
        match &report {
            Report::Books(books) => list(books, options.entry.is_some(), clock, out),
            Report::Entry(story) => tell(story, clock, out),
            Report::Active(active) => tell_active(active, out),
            Report::Then(then) => tell_then(then, clock, out),
        }
        out.broken(answer.broken());
    };
    Ok(out.answer(&answer, text))
}

/// How many entries of each lorebook are listed if none was named.
const LISTED: usize = 12;

fn list(books: &[Book], all: bool, clock: Clock, out: &mut Out) {
    for (n, book) in books.iter().enumerate() {
        if n > 0 {
            out.line("");
        }
        let last = book.last.as_ref().map(|last| format!(", changed {}", clock.age(last.time)));
        let (entries, states) = (count(book.entries.len(), "entry"), count(book.states, "state"));
        let facts = format!("{entries}, {states}{}", last.unwrap_or_default());
        let label = bold(clean(book.name.chat()));
        out.line(format!("{label}  {}", dim(facts)));
        let room = out.columns().saturating_sub(40).max(20);
        let shown = if all { usize::MAX } else { LISTED };
        let row = |entry: &verbs::lore::EntryNow| {
            let title = if entry.title.is_empty() {
                format!("({})", cut(&clean(&entry.keys.join(", ")), 24))
            } else {
                cut(&clean(&entry.title), room)
            };
            let off = if entry.is_off { "switched off, " } else { "" };
            vec![
                Cell::new(LOOK.dim, format!("  {:>4}", cut(&clean(&entry.uid), 12))),
                Cell::plain(title).cut(),
                Cell::new(LOOK.dim, format!("{off}{}", clock.age(entry.changed.time))),
            ]
        };
        let rows: Vec<_> = book.entries.iter().take(shown).map(row).collect();
        table::lines(&rows).iter().for_each(|line| out.line(line));
        if book.entries.len() > shown {
            out.line(dim(format!("        … and {} more", book.entries.len() - shown)));
        }
    }
    if books.is_empty() {
        out.say("No lorebook is stored yet.");
    }
}

fn moment(snapshot: &Snapshot, story: Option<&Snapshot>, clock: Clock, room: usize) -> [String; 2] {
    let id = short_id(snapshot.id);
    let when = clock.date(snapshot.time);
    let place = story.map(|story| {
        let at = story.messages.checked_sub(1).map(|last| format!(" #{last}")).unwrap_or_default();
        let label = cut_middle(&name(&story.timeline), room.saturating_sub(40).max(16));
        format!("{}{at}", bold(label))
    });
    let words = story.and_then(|story| story.last_words.as_deref()).map(clean);
    let words = words.map(|words| dim(cut_front(&words, room.min(90).saturating_sub(4))));
    [
        format!("{id} {}  {}", dim(when), place.unwrap_or_default()),
        words.map(|words| format!("    {words}")).unwrap_or_default(),
    ]
}

fn tell(story: &EntryStory, clock: Clock, out: &mut Out) {
    let columns = out.columns();
    let gone = if story.is_there { "" } else { ", not in it any more" };
    let facts = format!("UID {} in {}{gone}", clean(&story.uid), clean(story.book.chat()));
    out.line(format!("{}  {}", bold(entry_title(&story.title, usize::MAX)), dim(facts)));
    if !story.sentences.is_empty() {
        for sentence in &story.sentences {
            out.line("");
            out.line(clean(sentence.text.trim_end()));
            let told = moment(&sentence.snapshot, sentence.story.as_ref(), clock, columns);
            out.line(format!("    {}", told[0]));
        }
        return;
    }
    let page = Page::of(out, 8);
    for change in &story.changes.list {
        out.line("");
        let told = moment(&change.snapshot, change.story.as_ref(), clock, columns);
        told.iter().filter(|line| !line.is_empty()).for_each(|line| out.line(line));
        if let Some(made) = attribution(change, clock) {
            out.line(dim(format!("  {made}")));
        }
        match change.change() {
            Some(told) => {
                if change.is_again {
                    out.line("  it is there again");
                }
                let rows = entry_lines(&told, page);
                let rows = rows.iter().flat_map(|line| hanging("  ", line, 2));
                rows.for_each(|row| out.line(row));
            }
            None => match &change.after {
                None => out.line(paint(LOOK.bad, "  what it said then cannot be read")),
                Some((_, text)) => {
                    out.line(paint(LOOK.bad, "  what it said before cannot be read; then it said"));
                    out.line(format!("  {}", page.added(&clean(&content(text)))));
                }
            },
        }
    }
    if story.changes.list.len() < story.changes.total {
        let more = story.changes.total - story.changes.list.len();
        out.say(dim(format!("… and {more} more; -n N shows more of them")));
    }
    if story.changes.formatting > 0 {
        let hidden = count(story.changes.formatting, "change");
        out.say(dim(format!("{hidden} of formatting alone; --all shows them too")));
    }
    if !story.same_uid.is_empty() {
        out.line("");
        out.line(format!("Other entries that had UID {}:", clean(&story.uid)));
    }
    for other in &story.same_uid {
        let label = dim(format!("  UID {}", clean(&other.name)));
        out.line(format!("{label}  {}", bold(entry_title(&other.title, usize::MAX))));
    }
    if !story.elsewhere.is_empty() {
        out.line("");
        out.line("In other lorebooks that come from the same one:");
    }
    for other in &story.elsewhere {
        let label = bold(cut_middle(&clean(other.book.chat()), 50));
        let says =
            if other.is_same { dim("the same") } else { page.gist(&content(&other.text), 10) };
        out.record(&[format!("  {label}"), format!("      {says}")]);
    }
}

/// Returns who made a change, or between which states it was made if that is all that is certain.
fn attribution(change: &EntryChange, clock: Clock) -> Option<String> {
    if let Some(SceneName { message, name }) = &change.scene {
        let name = in_parentheses(name.as_ref());
        return Some(format!("by the recap of the scene that ends with #{message}{name}"));
    }
    let previous = change.previous.as_ref()?;
    let (from, to) = (clock.date(previous.snapshot.time), clock.date(change.snapshot.time));
    let last = |story: &Option<Snapshot>| story.as_ref()?.messages.checked_sub(1);
    let during = match (last(&previous.story), last(&change.story)) {
        (Some(first), Some(last)) if first < last => format!(", during messages {first} to {last}"),
        (_, Some(last)) => format!(", during message {last}"),
        (_, None) => String::new(),
    };
    Some(format!("changed between {from} and {to}{during}"))
}

fn tell_active(active: &Active, out: &mut Out) {
    let label = format!("{} #{}", name(&active.chat.timeline), active.message);
    let Some(entries) = &active.entries else {
        let near = match (active.before, active.after) {
            (Some(a), Some(b)) => format!("the nearest that do: #{a} and #{b}"),
            (Some(n), None) | (None, Some(n)) => format!("the nearest that do: #{n}"),
            (None, None) => "no message of this chat does".to_owned(),
        };
        let what = "the message does not tell which entries were active";
        return out.say(format!("{}: {what}; {near}.", clean(&label)));
    };
    let facts = format!("{} active", count(entries.len(), "entry"));
    out.line(format!("{}  {}", bold(clean(&label)), dim(facts)));
    for entry in entries {
        let uid = dim(format!("UID {}", clean(&entry.uid)));
        let book = entry.lorebook.as_ref().map(|book| format!("  {}", clean(book)));
        let title = bold(clean(&entry.title));
        let head = format!("{uid}  {title}{}", dim(book.unwrap_or_default()));
        let said = cut(&clean(content(&entry.text).trim()), out.columns().saturating_sub(6));
        out.record(&[head, format!("    {said}")]);
    }
}

fn content(entry: &str) -> String {
    Raw::parse_str(entry).and_then(library::entry_content).unwrap_or_default()
}

fn tell_then(then: &Then, clock: Clock, out: &mut Out) {
    let from = match &then.known_from {
        KnownFrom::Snapshot(snapshot) => {
            let id = short_id(snapshot.id);
            format!("known from snapshot {id} of {}", clock.date(snapshot.time))
        }
        KnownFrom::Notes(origin) => match (&origin.scene, origin.book_of) {
            (_, Some(id)) => format!("known from snapshot {}", short_id(id)),
            (Some((message, scene)), _) => {
                let scene = in_parentheses(scene.as_ref());
                format!("put together from the notes in message #{message}{scene}")
            }
            (None, None) => "the chat has no lorebook".into(),
        },
    };
    out.line(format!("{}  {}", bold(clean(then.book.chat())), dim(from)));
    for EntryThen { key, text, .. } in &then.entries {
        let title = Raw::parse_str(text).and_then(library::entry_comment).unwrap_or_default();
        out.line("");
        let uid = dim(format!("UID {}", clean(&key.to_string_lossy())));
        out.line(format!("{uid}  {}", bold(clean(&title))));
        for line in content(text).lines() {
            out.line(format!("    {}", clean(line)));
        }
    }
    if then.entries.is_empty() {
        let is_one = then.entry.is_some();
        out.say(if is_one { "The entry was not in it then." } else { "It had no entries then." });
    }
}
