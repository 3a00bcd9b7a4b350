//! `stvc view`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueHint;
use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::{Error, Result};
use super::exit;
use super::output::{Out, dim};
use super::wording::{clean, count, size};
use stvc::Workspace;
use stvc::api::http::{Linger, Redirect, Server};
use stvc::api::{Rights, page};
use stvc::lines::answers::{Answer, Tell};
use stvc::lines::{Counts, Line, Summary};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Begin with the map of this timeline's story; with `--out`, write these (none: all chats)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Write the page with these timelines into this file instead: it opens in any browser, without this program
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["write", "no_open", "port"])]
    pub out: Option<PathBuf>,

    /// Let the page bring states back, fork, name and undo; without it, it only looks
    #[arg(long)]
    pub write: bool,

    /// Only print the address
    #[arg(long)]
    pub no_open: bool,

    /// On this port; if not given, on one that is free
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

const HELP: &str = "The page is served to this computer only. The address opens it once; after that the page itself holds the secret, also when it is loaded again. It ends a minute after the last page was closed, or with Ctrl-C. \
                    `stvc --store BACKUP view` shows a backup.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if let Some(path) = &args.out {
        return write(args, path, workspace, out);
    }
    let timeline = match args.timelines.as_slice() {
        [] => None,
        [one] => Some(one),
        several => return Err(Error::OneTimeline { given: several.len() }),
    };
    // An error is reported here, not in a page that cannot show anything.
    workspace.must_have_store()?;
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
    ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed))
        .map_err(|why| Error::NoSignals { why: why.to_string() })?;
    out.object(Line::View { address: &address, write: args.write });
    out.line(clean(&address));
    let is_open = if args.no_open || out.is_json() {
        false
    } else {
        // Not the printed address: each works once.
        open(&new_address()?, &server)
    };
    let what = if is_open {
        "Opened in the browser; if it shows nothing, open this address, which works once. Ctrl-C ends it."
    } else {
        "Open this address in a browser on this computer; it works once. Ctrl-C ends it."
    };
    out.say(dim(what));
    server.run(Linger::default(), &stop).map_err(|source| Error::NoServer { source })?;
    out.end_with(Summary { command: "view", ok: true, counts: Counts::default() });
    Ok(exit::DONE)
}

fn open(address: &str, server: &Server) -> bool {
    let Ok(redirect) = Redirect::to(address) else { return false };
    let is_open = opener::open_browser(redirect.path()).is_ok();
    server.keep(redirect);
    is_open
}

fn write(args: &Args, path: &Path, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = page::Options { timelines: args.timelines.clone(), out: path.to_owned() };
    let written = page::write(workspace, &options, &mut out.progress())?;
    let page = PageFile { path: path.display().to_string(), written };
    let text = |out: &mut Out| {
        let PageFile { path, written } = &page;
        let timelines = count(written.timelines, "timeline");
        let snapshots = count(written.snapshots, "snapshot");
        out.line(format!("{}: {timelines}, {snapshots}, {}", clean(path), size(written.bytes)));
    };
    Ok(out.answer(&page, text))
}

struct PageFile {
    path: String,
    written: page::Written,
}

impl Answer for PageFile {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(Line::Page { path: &self.path, bytes: self.written.bytes });
    }

    fn counts(&self) -> (&'static str, Counts) {
        let page::Written { timelines, snapshots, .. } = self.written;
        let counts = vec![("timelines", timelines.into()), ("snapshots", snapshots.into())];
        ("view", Counts(counts))
    }
}

/// Encodes a name for the viewer's addresses.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encode =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encode).collect()
}
