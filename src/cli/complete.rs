//! Completes names of timelines, snapshots and tags in the shell. If the store cannot be read,
//! nothing is offered.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{Args, FromArgMatches};
use clap_complete::engine::CompletionCandidate;

use super::args::GlobalArgs;
use super::wording::{clean, short};
use stvc::{Workspace, verbs};

const IDS: usize = 20;

pub fn timelines(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, names)
}

/// Offers names of timelines, tags, and ids of recent snapshots.
pub fn snapshots(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| {
        let latest = verbs::names::latest_snapshots(workspace, IDS);
        let ids = latest.iter().map(|snapshot| (short(snapshot.id), clean(&snapshot.subject)));
        names(workspace).into_iter().chain(tag_names(workspace)).chain(ids).collect()
    })
}

pub fn tags(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, tag_names)
}

type Names = Vec<(String, String)>;

/// Returns the typed word, and the workspace that the options on the command line select.
fn asked(typed: &OsStr) -> Option<(String, Workspace)> {
    // Bash passes the word with the backslashes that the user typed.
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
    Some((typed, args.workspace(&[])))
}

/// Returns each timeline's name with its folder. A chat whose name is unique is also listed without
/// its folder.
fn names(workspace: &Workspace) -> Names {
    let all = verbs::names::timelines(workspace);
    let mut chats: BTreeMap<String, usize> = BTreeMap::new();
    for name in &all {
        *chats.entry(name.chat().to_owned()).or_default() += 1;
    }
    let mut names = Vec::new();
    for name in &all {
        let folder = name.folder().unwrap_or("group chats");
        if chats.get(name.chat()) == Some(&1) {
            names.push((name.chat().to_owned(), clean(folder)));
        }
        names.push((format!("{folder}/{}", name.chat()), String::new()));
    }
    names
}

fn tag_names(workspace: &Workspace) -> Names {
    let tags = verbs::names::tags(workspace);
    tags.into_iter().map(|name| (name, "tag".to_owned())).collect()
}

fn offer(typed: &OsStr, names: impl Fn(&Workspace) -> Names) -> Vec<CompletionCandidate> {
    let Some((typed, workspace)) = asked(typed) else { return Vec::new() };
    // Only bash's completion script sets this variable.
    let is_bash = std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some();
    let begin = typed.to_lowercase();
    let fits =
        names(&workspace).into_iter().filter(|(name, _)| name.to_lowercase().starts_with(&begin));
    // If nothing is typed yet, names with folders are left out, because they would repeat the other
    // names.
    let fits =
        fits.filter(|(name, help)| !begin.is_empty() || !help.is_empty() || !name.contains('/'));
    // Names with control characters are not offered.
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
