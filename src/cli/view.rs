//! `stvc view`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::{Error, Result};
use super::exit;
use super::interrupt::on_interrupt;
use super::output::{Output, bold_name, dim, level_word};
use super::wording::{clean, count, name, size};
use stvc::Workspace;
use stvc::api::http::{IdleTimeout, Redirect, Server};
use stvc::api::page::{Exported, Extent, LeftOut, PageStats};
use stvc::api::{Rights, page};
use stvc::findings::Level;
use stvc::json_output::{Counts, Line, Summary};
use stvc::verbs::timelines::graph;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Timeline to open first; with --out, timelines to write (default: all chats)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Write these timelines, as a reader sees them, to a file that opens in any browser without
    /// stvc
    #[arg(long, value_name = "FILE", conflicts_with_all = ["write", "no_open", "port"])]
    pub out: Option<PathBuf>,

    /// Include earlier versions, hidden messages, swipes and notes in the file
    #[arg(long, requires = "out")]
    pub all_history: bool,

    /// Allow the viewer to restore, fork, tag and undo (default: read-only)
    #[arg(long)]
    pub write: bool,

    /// Print the address without opening a browser
    #[arg(long)]
    pub no_open: bool,

    /// Listen on this port (default: a free port)
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

const HELP: &str = "The viewer is served only to this computer. The address works once; after that, the browser \
    tab holds the secret, even if it is reloaded. The server stops one minute after the last tab \
    is closed, or with Ctrl-C. Run `stvc --store BACKUP view` to view a backup.\n\nA file that \
    --out writes contains the names of the timelines, the displayed text of their messages, and the \
    enabled entries of their lorebooks, all in the latest state. Earlier versions, other swipes, \
    hidden messages, reasoning, author's notes and variables are in the file only with --all-history.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if let Some(path) = &args.out {
        return write(args, path, workspace, out);
    }
    let timeline = match args.timelines.as_slice() {
        [] => None,
        [one] => Some(one),
        several => return Err(Error::OneTimeline { given: several.len() }),
    };
    // A missing store is reported here, because the viewer would have nothing to show.
    workspace.must_have_store()?;
    // An unknown name is reported here, too, and not by the viewer after it was opened.
    if let Some(name) = timeline {
        let options = graph::Options {
            timeline: Some(name.clone()),
            lanes: Some(0..1),
            lanes_only: true,
            ..graph::Options::default()
        };
        graph::graph(workspace, &options, &mut out.progress())?;
    }
    let rights = if args.write { Rights::Change } else { Rights::Read };
    let server = Server::bind(workspace.clone(), rights, args.port);
    let server = server.map_err(|source| Error::NoServer { source })?;
    let place = timeline.map(|name| format!("/tree/{}", encoded(name))).unwrap_or_default();
    let new_address = || {
        let address = server.new_address().map_err(|source| Error::NoServer { source })?;
        Ok::<_, Error>(format!("{address}{place}"))
    };
    let address = new_address()?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    on_interrupt(move || stopped.store(true, Ordering::Relaxed))
        .map_err(|why| Error::NoSignals { why: why.to_string() })?;
    out.object(Line::View { address: &address, write: args.write });
    out.line(clean(&address));
    let is_open = if args.no_open || out.is_json() {
        false
    } else {
        // The browser gets another address than the printed one, because each address works once.
        open(&new_address()?, &server)
    };
    let what = if is_open {
        "Opened in the browser. If it shows nothing, open this address; it works once. Press Ctrl-C to stop."
    } else {
        "Open this address in a browser on this computer; it works once. Press Ctrl-C to stop."
    };
    out.say(dim(what));
    server.run(IdleTimeout::default(), &stop).map_err(|source| Error::NoServer { source })?;
    out.end_with(Summary { command: "view", ok: true, counts: Counts::default() });
    Ok(exit::DONE)
}

fn open(address: &str, server: &Server) -> bool {
    let Ok(redirect) = Redirect::to(address) else { return false };
    let is_open = opener::open_browser(redirect.path()).is_ok();
    server.keep(redirect);
    is_open
}

fn write(args: &Args, path: &Path, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let extent = if args.all_history { Extent::AllHistory } else { Extent::Story };
    let options = page::Options { timelines: args.timelines.clone(), out: path.to_owned(), extent };
    let written = page::write(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&written, |out| print(&written, out)))
}

fn print(written: &PageStats, out: &mut Output) {
    let path = clean(&written.path.display().to_string());
    let timelines = count(written.timelines.len(), "timeline");
    let length = size(written.bytes);
    match written.extent {
        Extent::Story => {
            out.line(format!("{path}: {timelines}, {length}"));
            for Exported { timeline, story, .. } in &written.timelines {
                let (messages, entries) =
                    story.as_ref().map_or((0, 0), |story| (story.messages, story.entries));
                let messages = timeline.is_chat().then(|| count(messages, "message"));
                let entries = match entries {
                    0 if timeline.is_chat() => None,
                    entries => Some(count(entries, "lorebook entry")),
                };
                let parts: Vec<_> = messages.into_iter().chain(entries).collect();
                out.line(format!("  {}: {}", bold_name(timeline), parts.join(", ")));
            }
            out.say(dim(left_out(written.left_out())));
            out.say(dim("Use --all-history to include everything that the viewer shows."));
        }
        Extent::AllHistory => {
            let snapshots = count(written.snapshots(), "snapshot");
            out.line(format!("{path}: {timelines}, {snapshots}, {length}"));
            out.say(dim(
                "This file contains deleted and hidden texts, notes and variables. Omit --all-history to share only the story.",
            ));
        }
    }
    for Exported { timeline, story, .. } in &written.timelines {
        if story.as_ref().is_some_and(|story| story.has_changed) {
            out.warn(&format!(
                "{}: {} changed after the latest snapshot, which the file contains. Run `stvc snapshot` and export again to share the current text",
                level_word(Level::Warning),
                name(timeline),
            ));
        }
    }
    out.broken(written.broken());
}

fn left_out(left_out: LeftOut) -> String {
    let LeftOut { hidden, disabled, unreadable, .. } = left_out;
    let parts = [
        (hidden, count(hidden, "hidden message")),
        (disabled, count(disabled, "disabled lorebook entry")),
        (unreadable, count(unreadable, "unreadable text")),
    ];
    let counted = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text);
    let general = ["earlier versions", "other swipes", "reasoning", "notes and variables"];
    let parts: Vec<_> = counted.chain(general.map(str::to_owned)).collect();
    format!("Not in the file: {}.", parts.join(", "))
}

/// Encodes the name of a timeline for an address of the viewer.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encode =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encode).collect()
}
