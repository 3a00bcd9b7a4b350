use clap_complete::engine::ArgValueCompleter;

use super::clock::Clock;
use super::complete::chats;
use super::diff::{Page, entry_lines};
use super::error::Result;
use super::output::{Output, STYLES, bold, dim, paint, short_id};
use super::show;
use super::table::{self, Cell};
use super::wording::{clean, count, cut, cut_front, cut_middle, entry_title, in_parentheses, name};
use super::wrap::with_hanging_indent;
use stvc::json_output::answers::Lore;
use stvc::library::{self, Raw};
use stvc::snapshots::Snapshot;
use stvc::verbs::lore::{
    ActiveEntries, Book, EntryChange, EntryStory, EntryThen, KnownFrom, LoreAtMoment, Options,
    Report, SceneName,
};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, group = clap::ArgGroup::new("when").args(["at", "active"]))]
pub struct Args {
    /// Lorebook, entry, or lorebook and entry (default: all lorebooks)
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub named: Vec<String>,

    /// Show the snapshot and message that each sentence comes from
    #[arg(long, conflicts_with = "at")]
    pub blame: bool,

    /// Show the text as of WHEN: a message number, a date, ~N (N versions ago) or a snapshot
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,

    /// List the entries in the prompt at message N, as recorded by ST-Auto-Recap
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "blame"])]
    pub active: Option<usize>,

    /// Chat that --at and --active refer to (default: the latest chat with the lorebook)
    #[arg(add = ArgValueCompleter::new(chats), long = "in", value_name = "TIMELINE", requires = "when")]
    pub chat: Option<String>,

    /// Show at most N changes
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,

    /// Include changes of formatting
    #[arg(long, conflicts_with = "when")]
    pub all: bool,
}

const HELP: &str = "Name an entry by its title, a former title, one of its keywords, or a part of a title that \
    no other entry has. After the name of a lorebook, you can also use the UID. SillyTavern \
    reuses the UID of a deleted entry: 5 is the entry that has UID 5 or had it last, 5~1 is the \
    entry that had it before. An exact title takes precedence over a part of a title, even if \
    that entry was deleted. The history of an entry follows renames and forks, newest first. \
    Each change is shown with its snapshot and the last message of the chat at that time. It is \
    attributed to a scene if the scene ended after the previous version and ST-Auto-Recap \
    recorded the new text at its end; otherwise only the time between the two versions is known. \
    An entry that was deleted and created again counts as the same entry if it has the same \
    text, or if it has the same UID and the same title or a similar text.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    // A single name can name a lorebook or an entry. It is passed as the entry.
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

pub fn of_snapshot(args: &show::Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options {
        entry: args.entry.clone(),
        snapshot: Some(args.snapshot.clone()),
        ..Options::default()
    };
    run_with(&options, workspace, out)
}

fn run_with(options: &Options, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let report = verbs::lore::lore(workspace, options, &mut out.progress())?;
    let command = if options.snapshot.is_some() { "show" } else { "lore" };
    let answer = Lore { command, report: &report };
    let text = |out: &mut Output| {
        let clock = out.clock;
        match &report {
            Report::Books(books) => list(books, options.entry.is_some(), clock, out),
            Report::Entry(story) => print(story, clock, out),
            Report::Active(active) => print_active_entries(active, out),
            Report::Then(then) => print_lore_at_moment(then, clock, out),
        }
        out.broken(answer.broken());
    };
    Ok(out.answer(&answer, text))
}

/// The number of entries that are listed per lorebook if no lorebook is named.
const LISTED: usize = 12;

/// The number of lorebooks above which only their names are listed.
const BOOKS: usize = 3;

fn list(books: &[Book], all: bool, clock: Clock, out: &mut Output) {
    let is_brief = !all && !out.verbose && books.len() > BOOKS;
    for (n, book) in books.iter().enumerate() {
        if n > 0 && !is_brief {
            out.line("");
        }
        let last = book.last.as_ref().map(|last| format!(", changed {}", clock.age(last.time)));
        let (entries, states) = (count(book.entries.len(), "entry"), count(book.states, "version"));
        let facts = format!("{entries}, {states}{}", last.unwrap_or_default());
        let label = bold(clean(book.name.chat()));
        out.line(format!("{label}  {}", dim(facts)));
        let room = out.columns().saturating_sub(40).max(20);
        if is_brief {
            continue;
        }
        let shown = if all { usize::MAX } else { LISTED };
        let row = |entry: &verbs::lore::EntryNow| {
            let title = if entry.title.is_empty() {
                format!("({})", cut(&clean(&entry.keys.join(", ")), 24))
            } else {
                cut(&clean(&entry.title), room)
            };
            let off = if entry.is_off { "disabled, " } else { "" };
            vec![
                Cell::new(STYLES.dim, format!("  {:>4}", cut(&clean(&entry.uid), 12))),
                Cell::plain(title).cut(),
                Cell::new(STYLES.dim, format!("{off}{}", clock.age(entry.changed.time))),
            ]
        };
        let rows: Vec<_> = book.entries.iter().take(shown).map(row).collect();
        table::lines(&rows).iter().for_each(|line| out.line(line));
        if book.entries.len() > shown {
            out.line(dim(format!("        … and {} more", book.entries.len() - shown)));
        }
    }
    if is_brief {
        out.say(dim("Run `stvc lore NAME` to list the entries of a lorebook."));
    }
    if books.is_empty() {
        out.say("There are no lorebooks in the store yet.");
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

fn print(story: &EntryStory, clock: Clock, out: &mut Output) {
    let columns = out.columns();
    let gone = if story.is_there { "" } else { ", deleted" };
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
                    out.line("  added again");
                }
                let rows = entry_lines(&told, page);
                let rows = rows.iter().flat_map(|line| with_hanging_indent("  ", line, 2));
                rows.for_each(|row| out.line(row));
            }
            None => match &change.after {
                None => out.line(paint(STYLES.bad, "  this version cannot be read")),
                Some((_, text)) => {
                    out.line(paint(
                        STYLES.bad,
                        "  the previous version cannot be read; this version:",
                    ));
                    out.line(format!("  {}", page.added(&clean(&content(text)))));
                }
            },
        }
    }
    if story.changes.list.len() < story.changes.total {
        let more = story.changes.total - story.changes.list.len();
        out.say(dim(format!("… and {more} more; use -n N to show more")));
    }
    if story.changes.formatting > 0 {
        let hidden = count(story.changes.formatting, "change");
        out.say(dim(format!("{hidden} of formatting not shown (see --all)")));
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
        out.line("In related lorebooks:");
    }
    for other in &story.elsewhere {
        let label = bold(cut_middle(&clean(other.book.chat()), 50));
        let says =
            if other.is_same { dim("identical") } else { page.gist(&content(&other.text), 10) };
        out.record(&[format!("  {label}"), format!("      {says}")]);
    }
}

/// Names the scene whose recap made a change. If the scene is unknown, returns the times of the two
/// versions.
fn attribution(change: &EntryChange, clock: Clock) -> Option<String> {
    if let Some(SceneName { message, name }) = &change.scene {
        let name = in_parentheses(name.as_ref());
        return Some(format!("by the recap of the scene that ends at #{message}{name}"));
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

fn print_active_entries(active: &ActiveEntries, out: &mut Output) {
    let label = format!("{} #{}", name(&active.chat.timeline), active.message);
    let Some(entries) = &active.entries else {
        let near = match (active.before, active.after) {
            (Some(a), Some(b)) => format!("the nearest messages that do are #{a} and #{b}"),
            (Some(n), None) | (None, Some(n)) => format!("the nearest message that does is #{n}"),
            (None, None) => "no message of this chat does".to_owned(),
        };
        let what = "the message does not record which entries were active";
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

fn print_lore_at_moment(then: &LoreAtMoment, clock: Clock, out: &mut Output) {
    let from = match &then.known_from {
        KnownFrom::Snapshot(snapshot) => {
            let id = short_id(snapshot.id);
            format!("from snapshot {id}, {}", clock.date(snapshot.time))
        }
        KnownFrom::Notes(origin) => match (&origin.scene, origin.book_of) {
            (_, Some(id)) => format!("from snapshot {}", short_id(id)),
            (Some((message, scene)), _) => {
                let scene = in_parentheses(scene.as_ref());
                format!("reconstructed from ST-Auto-Recap's record in message #{message}{scene}")
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
        out.say(if is_one {
            "The entry did not exist then."
        } else {
            "The lorebook had no entries then."
        });
    }
}
