use std::ops::RangeInclusive;

use clap_complete::engine::ArgValueCompleter;

use super::args::SNAPSHOT_HELP;
use super::complete::snapshots;
use super::error::Result;
use super::output::{Output, STYLES, bold, bold_name, dim, paint};
use super::restore;
use super::story::StoryArgs;
use super::wording::{clean, count, cut, fork_point, recap, short, size};
use stvc::library::User;
use stvc::verbs::show::{Report, ShownMoment};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// Snapshot to show
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT")]
    pub snapshot: String,

    /// Print these messages in full: N or N..M
    #[arg(long, value_name = "N[..M]", value_parser = messages)]
    pub message: Option<RangeInclusive<usize>>,

    /// Print the lorebook of the snapshot
    #[arg(long, conflicts_with = "message")]
    pub book: bool,

    /// Print one entry of the snapshot's lorebook
    #[arg(long, value_name = "NAME", conflicts_with_all = ["message", "book"])]
    pub entry: Option<String>,

    /// Print the chat as a story
    #[arg(long, conflicts_with_all = ["book", "entry"])]
    pub text: bool,

    #[command(flatten)]
    pub story: StoryArgs,
}

impl Args {
    pub fn is_to_read(&self) -> bool {
        self.message.is_some() || self.text || self.story.is_any()
    }
}

fn messages(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| {
        let text = text.trim().trim_start_matches('#');
        text.parse::<usize>()
            .map_err(|_| format!("{text:?} is not a message number; use 12 or 12..20"))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = number(first)?..=number(last.trim_start_matches('='))?;
    if range.is_empty() {
        Err(format!("the range {text:?} ends before it begins"))
    } else {
        Ok(range)
    }
}

/// Returns `3 chats, character Mira, all chats`.
fn users(users: &[User]) -> String {
    let chats = users.iter().filter(|user| matches!(user, User::Chat(_) | User::Group(_))).count();
    let mut shown: Vec<_> = (chats > 0).then(|| count(chats, "chat")).into_iter().collect();
    shown.extend(users.iter().filter_map(|user| match user {
        User::Chat(_) | User::Group(_) => None,
        User::AllChats => Some("all chats".to_owned()),
        User::Character(name) | User::Card(name) => Some(format!("character {}", clean(name))),
        User::Persona(name) if name.is_empty() => Some("the persona".to_owned()),
        User::Persona(name) => Some(format!("persona {}", clean(name))),
    }));
    shown.join(", ")
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let report = verbs::show::show(workspace, &args.snapshot)?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let ShownMoment { snapshot, timeline, manifest, book, at, tags, .. } = &report.shown;
    let field = |key: &str, value: String| format!("{} {value}", dim(format!("{key:<10}")));
    out.line(field("snapshot", paint(STYLES.id, snapshot.id)));
    out.line(field("timeline", bold_name(&snapshot.timeline)));
    if *timeline != snapshot.timeline {
        out.line(field("now", bold_name(timeline)));
    }
    out.line(field("created", out.clock.both(snapshot.time)));
    out.line(field("subject", clean(&snapshot.subject)));
    if !tags.is_empty() {
        let tags: Vec<_> = tags.iter().map(|tag| paint(STYLES.tag, clean(tag))).collect();
        out.line(field("tags", tags.join(", ")));
    }
    out.line(field("kind", clean(snapshot.kind.as_str())));
    if let Some(source) = &snapshot.source {
        out.line(field("from", clean(source)));
    }
    out.line(field("content", format!("b3:{}", snapshot.content)));
    for parent in &snapshot.parents {
        let fork = snapshot.fork_at.map(|at| format!(" ({})", fork_point(at)));
        out.line(field("previous", format!("{parent}{}", fork.unwrap_or_default())));
    }
    match at {
        Some(at) if report.origin.is_some() => {
            let shown = format!("message #{at}, reconstructed: no snapshot was created then");
            out.line(field("at", shown));
        }
        _ if snapshot.timeline.is_chat() => {
            out.line(field("messages", snapshot.messages.to_string()));
        }
        _ => {}
    }
    for file in &manifest.files {
        let path = format!("{} ({})", clean(&file.path), size(file.bytes));
        out.line(field(file.role.as_str(), path));
    }
    if let Some(book) = book {
        let taken = out.clock.both(book.time);
        let shown = format!("changed later: snapshot {}, created {taken}", short(book.id));
        out.line(field("", shown));
    }
    if let Some(state) = &manifest.checkpoint {
        out.line(field("recap", recap(state)));
        if !state.queue_was_empty {
            let active = count(state.active_operations, "operation");
            out.line(field("queue", format!("{active} pending when this snapshot was created")));
        }
    }
    if !report.used_by.is_empty() {
        out.line(field("used by", users(&report.used_by)));
    }
    let room = out.columns().saturating_sub(8);
    if !report.contents.card.is_empty() {
        out.line("");
        for (key, text) in &report.contents.card {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let shown = cut(&clean(&text), room.saturating_sub(20).max(20));
            out.line(format!("  {}  {shown}", dim(format!("{key:<26}"))));
        }
    }
    if !report.contents.entries.is_empty() {
        out.line("");
        out.line(format!("{}:", count(report.contents.entries.len(), "lorebook entry")));
        for (key, title) in report.contents.entries.iter().take(20) {
            out.line(format!("  {:>4}  {}", clean(key), cut(&clean(title), room)));
        }
        if report.contents.entries.len() > 20 {
            out.line(format!("        … and {} more", report.contents.entries.len() - 20));
        }
    }
    if !report.contents.last_messages.is_empty() {
        out.line("");
        out.line("Last messages:");
        for (number, message) in &report.contents.last_messages {
            let text = cut(&clean(&message.text), room * 2);
            let (number, name) = (dim(format!("#{number}")), bold(clean(&message.name)));
            out.line(format!("  {number} {name}: {text}"));
        }
    }
    if let Some(origin) = &report.origin {
        out.line("");
        restore::print_origin(origin, out);
    }
    out.findings(&report.findings);
}
