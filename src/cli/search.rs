use clap_complete::engine::ArgValueCompleter;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::args::{date, last_date, one_of};
use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::output::{Output, STYLES, bold, dim, paint, short_id};
use super::wording::{clean, count, cut, cut_middle, name};
use stvc::snapshots::Time;
use stvc::verbs::search::{Excerpt, Match, MatchPlace, Options, Part, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Words or parts of words to find, in any case; all must be in one text
    #[arg(value_name = "TEXT", required = true, value_parser = not_blank)]
    pub text: Vec<String>,

    /// Match the words as a phrase, in this order
    #[arg(long)]
    pub phrase: bool,

    /// Treat TEXT as a regular expression
    #[arg(long, conflicts_with = "phrase")]
    pub regex: bool,

    /// Search only messages of this speaker, or entries with this title; a part of the name is
    /// enough
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub who: Option<String>,

    /// Search only texts written since DATE: 2026-11-01, yesterday, "2 weeks ago"
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<i64>,

    /// Search only texts written up to and including DATE
    #[arg(long, value_name = "DATE", value_parser = last_date)]
    pub until: Option<i64>,

    /// Search only the snapshots of this timeline
    #[arg(add = ArgValueCompleter::new(timelines), long = "in", value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Search only chats, lorebooks or character cards
    #[arg(long, value_name = "PART", value_parser = one_of([("chat", Part::Chat), ("lorebook", Part::Lorebook), ("character", Part::Character)]))]
    pub only: Option<Part>,

    /// Show at most N matches
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

const HELP: &str = "Searches messages with all their swipes, lorebook entries (title, keys, content) and \
    character cards, including hidden and deleted ones. Each text is listed once: in the latest \
    snapshot of a timeline that still contains it, or else in the last snapshot that did. It is \
    shown under the timeline in which it first appeared, with the number of other timelines that \
    contain it. If nothing is found, the exit code is 1, as with grep.";

fn not_blank(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("it must not be empty") } else { Ok(text.into()) }
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options {
        text: args.text.join(" "),
        phrase: args.phrase,
        regex: args.regex,
        who: args.who.clone(),
        since: args.since,
        until: args.until,
        timeline: args.timeline.clone(),
        only: args.only,
        state: None,
        limit: args.limit,
    };
    let report = verbs::search::search(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let (columns, clock) = (out.columns(), out.clock);
    for found in &report.matches {
        let excerpt = format!("    {}", marked(&found.excerpt, columns - 4));
        out.record(&[head_line(found, clock, columns), excerpt]);
    }
    out.say(match (report.matches.len(), report.more) {
        (0, _) => format!("Nothing found in {}.", count(report.snapshots, "snapshot")),
        (_, true) => dim("… and more; use -n N to show more"),
        (1, false) => "1 match.".into(),
        (many, false) => format!("{many} matches."),
    });
    out.broken(&report.broken);
}

/// The width in columns up to which a timeline's name is not shortened. The speaker or title is
/// shortened first.
const NAME: usize = 24;

fn head_line(found: &Match, clock: Clock, columns: usize) -> String {
    let said = found.said.map(|seconds| Time { seconds, ..found.snapshot.time });
    let mut facts = vec![clock.age(said.unwrap_or(found.snapshot.time))];
    if !found.others.is_empty() {
        facts.push(format!("also in {}", count(found.others.len(), "other")));
    }
    let (place, whose_words) = match &found.place {
        MatchPlace::Message { index, name, hidden, swipe, .. } => {
            if *hidden {
                facts.push("hidden".into());
            }
            // SillyTavern counts swipes from 1.
            facts.extend(swipe.map(|(n, of)| format!("swipe {} of {of}, not shown", n + 1)));
            (format!("#{index} "), clean(name))
        }
        MatchPlace::Entry { uid, title } => match uid {
            Some(uid) => (format!("lorebook entry {} ", cut(&clean(uid), 12)), clean(title)),
            None => ("lorebook".into(), String::new()),
        },
        MatchPlace::Field { field } => ("in ".into(), clean(field)),
    };
    let lost = match (found.live, found.deleted) {
        (true, _) => "",
        (false, true) => ", deleted chat",
        (false, false) => ", removed since",
    };
    let facts = facts.join(", ");
    // If a timeline still has the text, the first such timeline; else the last timeline that had
    // it.
    let whose = name(if found.live { &found.first } else { &found.timeline });
    let taken = 10 + 1 + 2 + place.width() + 2 + facts.width() + lost.len();
    let room = columns.saturating_sub(taken);
    let words_room = room.saturating_sub(whose.width().min(NAME)).clamp(8, 30);
    let place = format!("{place}{}", cut(&whose_words, words_room)).trim_end().to_owned();
    let room = room.saturating_sub(whose_words.width().min(words_room));
    let label = cut_middle(&whose, room.max(12));
    let (id, lost) = (short_id(found.snapshot.id), paint(STYLES.warn, lost));
    format!("{id} {}  {place}  {}{lost}", bold(label), dim(facts))
}

fn marked(excerpt: &Excerpt, columns: usize) -> String {
    let Excerpt { text, marks } = excerpt;
    let mut out = String::new();
    let mut room = columns;
    let mut at = 0;
    let ends = marks.iter().flat_map(|mark| [(mark.start, false), (mark.end, true)]);
    for (end, is_mark) in ends.chain([(text.len(), false)]) {
        let piece = clean(text.get(at..end).unwrap_or_default());
        let fits = piece.width() < room || (end == text.len() && piece.width() == room);
        let shown = if fits { piece } else { shorten(&piece, room) };
        room = if fits { room - shown.width() } else { 0 };
        out.push_str(&if is_mark { paint(STYLES.tag, &shown) } else { shown });
        if room == 0 {
            break;
        }
        at = end;
    }
    out
}

/// Shortens a text and appends an ellipsis, even if the text would just fit, because more text
/// follows.
fn shorten(text: &str, columns: usize) -> String {
    let mut width = 0;
    let kept = text.chars().take_while(|c| {
        width += c.width().unwrap_or(0);
        width < columns
    });
    format!("{}…", kept.collect::<String>())
}
