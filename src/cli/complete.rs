//! What a shell can offer when Tab is pressed in the place of a name: chats, tags, ids. Nothing is said where nothing can be read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{Args, FromArgMatches};
use clap_complete::engine::CompletionCandidate;

use super::args::GlobalArgs;
use super::wording::{clean, short};
use stvc::engine::Workspace;
use stvc::history::{self, History};
use stvc::st::TimelineName;

/// So many ids are offered.
const IDS: usize = 20;

/// Names of timelines, of the library and of the store.
pub fn timelines(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some((typed, workspace)) = asked(typed) else { return Vec::new() };
    offer(&typed, names(&workspace))
}

/// Everything that names a snapshot.
pub fn snapshots(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some((typed, workspace)) = asked(typed) else { return Vec::new() };
    let mut offered = names(&workspace);
    offered.extend(tag_names(&workspace));
    let history = workspace.open_store().ok().and_then(|store| History::load(&store).ok());
    let newest = history.iter().flat_map(History::newest_first).take(IDS);
    offered.extend(newest.map(|snapshot| (short(snapshot.id), clean(&snapshot.subject))));
    offer(&typed, offered)
}

/// Names of tags.
pub fn tags(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some((typed, workspace)) = asked(typed) else { return Vec::new() };
    offer(&typed, tag_names(&workspace))
}

/// What was typed so far, and where it is looked for: the options before it say so.
fn asked(typed: &OsStr) -> Option<(String, Workspace)> {
    // Bash gives what was typed with its backslashes.
    let typed = typed.to_str()?.replace('\\', "");
    let words: Vec<OsString> =
        std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let value = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        words.get(at + 1).cloned()
    };
    let mut line = vec![OsString::from("stvc")];
    for option in ["--data", "--user", "--store"] {
        line.extend(value(option).into_iter().flat_map(|value| [option.into(), value]));
    }
    let found = GlobalArgs::augment_args(clap::Command::new("stvc")).try_get_matches_from(line);
    let args = GlobalArgs::from_arg_matches(&found.ok()?).ok()?;
    Some((typed, super::workspace(&args, &[])))
}

/// Each name once: the chat's alone where that is enough, with its folder where it is not.
fn names(workspace: &Workspace) -> Vec<(String, String)> {
    let here = workspace.library().ok().and_then(|library| library.scan().ok());
    let stored = workspace.open_store().ok().and_then(|store| history::heads(&store).ok());
    let mut all: BTreeMap<TimelineName, &str> = BTreeMap::new();
    all.extend(stored.into_iter().flatten().map(|head| (head.timeline, "")));
    all.extend(here.into_iter().flat_map(|scan| scan.chats).map(|name| (name, "")));
    let mut chats: BTreeMap<String, usize> = BTreeMap::new();
    for name in all.keys() {
        *chats.entry(name.chat().to_owned()).or_default() += 1;
    }
    let mut names = Vec::new();
    for name in all.keys() {
        let folder = name.folder().unwrap_or("group chats");
        if chats.get(name.chat()) == Some(&1) {
            names.push((name.chat().to_owned(), clean(folder)));
        }
        names.push((format!("{folder}/{}", name.chat()), String::new()));
    }
    names
}

fn tag_names(workspace: &Workspace) -> Vec<(String, String)> {
    let store = workspace.open_store().ok();
    let refs = store.and_then(|store| store.refs("refs/tags/").ok());
    let tags = refs.into_iter().flat_map(|found| found.refs);
    tags.filter_map(|(name, _)| Some((name.tag_name()?, "tag".to_owned()))).collect()
}

/// Those that begin as it was typed; in bash, as it has to be typed.
fn offer(typed: &str, names: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    // Only its script says how Tab was pressed.
    let is_bash = std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some();
    let begin = typed.to_lowercase();
    let fits = names.into_iter().filter(|(name, _)| name.to_lowercase().starts_with(&begin));
    // With nothing typed, names with their folders would say everything twice.
    let fits =
        fits.filter(|(name, help)| !begin.is_empty() || !help.is_empty() || !name.contains('/'));
    // What a terminal would obey is not offered.
    let fits = fits.filter(|(name, _)| clean(name) == *name);
    fits.map(|(name, help)| {
        let value = if is_bash { escaped(&name) } else { name };
        CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
    })
    .collect()
}

fn escaped(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./+,@".contains(c);
    let mut out = String::new();
    for c in name.chars() {
        if !plain(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
