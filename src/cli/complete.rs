//! Completes paths and names of timelines, snapshots and tags in the shell. If the store cannot be
//! read, nothing is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use clap::{Args, FromArgMatches, ValueHint};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};

use super::args::GlobalArgs;
use super::wording::{clean, short};
use stvc::library::TimelineName;
use stvc::{Workspace, verbs};

const IDS: usize = 20;

/// The environment variable in which bash's completion script passes the last word as it was typed,
/// with an opening quotation mark. Clap gets the word without it.
pub const TYPED: &str = "STVC_COMPLETE_TYPED";

pub fn timelines(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| names(verbs::names::timelines(workspace)))
}

/// Offers chats, for commands that refuse other timelines.
pub fn chats(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| {
        let mut all = verbs::names::timelines(workspace);
        all.retain(TimelineName::is_chat);
        names(all)
    })
}

/// Offers timelines that have a file.
pub fn existing(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| names(verbs::names::existing(workspace)))
}

/// Offers timelines whose files are deleted.
pub fn deleted(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| names(verbs::names::deleted(workspace)))
}

/// Offers names of timelines, tags, and ids of recent snapshots.
pub fn snapshots(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |workspace| {
        let latest = verbs::names::latest_snapshots(workspace, IDS);
        let ids = latest.iter().map(|snapshot| (short(snapshot.id), clean(&snapshot.subject)));
        let names = names(verbs::names::timelines(workspace));
        names.into_iter().chain(tag_names(workspace)).chain(ids).collect()
    })
}

pub fn tags(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, tag_names)
}

/// Adds the completion of files and folders to all arguments that take a path.
pub fn with_paths(command: clap::Command) -> clap::Command {
    let with_paths_of = |arg: clap::Arg| match arg.get_value_hint() {
        ValueHint::AnyPath => arg.add(ArgValueCompleter::new(paths)),
        _ => arg,
    };
    command.mut_args(with_paths_of).mut_subcommands(with_paths)
}

fn paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let quoting = Quoting::now();
    let typed = quoting.read(typed);
    // A tilde in quotation marks is not the home folder.
    let home = std::env::home_dir().filter(|_| quoting == Quoting::Backslash);
    let home = home.map(|home| home.to_string_lossy().into_owned());
    let (path, home) = match (typed.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => (format!("{home}/{rest}"), Some(home)),
        _ => (typed, None),
    };
    let found = PathCompleter::any().complete(OsStr::new(&path)).into_iter();
    let found = found.filter_map(|found| found.get_value().to_str().map(str::to_owned));
    let value = |found: String| match home.as_ref().and_then(|home| found.strip_prefix(home)) {
        Some(rest) => format!("~{}", quoting.write(rest)),
        None => quoting.write(&found),
    };
    found.map(|found| CompletionCandidate::new(value(found))).collect()
}

type Names = Vec<(String, String)>;

/// How the shell passes the word at the cursor, and how it takes candidates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// As plain text; the shell quotes candidates itself. Bash does not.
    ByShell,
    Backslash,
    Single,
    Double,
}

impl Quoting {
    fn now() -> Self {
        match std::env::var(TYPED).as_deref().map(|typed| typed.chars().next()) {
            Err(_) => Self::ByShell,
            Ok(Some('\'')) => Self::Single,
            Ok(Some('"')) => Self::Double,
            Ok(_) => Self::Backslash,
        }
    }

    fn read(self, typed: &str) -> String {
        match self {
            Self::ByShell => typed.to_owned(),
            Self::Backslash => unquoted(typed),
            // The mark that closes the word is not typed yet.
            Self::Single => unquoted(&format!("'{typed}'")),
            Self::Double => unquoted(&format!("\"{typed}\"")),
        }
    }

    fn write(self, value: &str) -> String {
        let escape = |is_special: fn(char) -> bool| {
            let escaped = value.chars().map(|c| match is_special(c) {
                true => format!("\\{c}"),
                false => c.to_string(),
            });
            escaped.collect()
        };
        match self {
            Self::ByShell => value.to_owned(),
            Self::Backslash => escape(|c| !c.is_alphanumeric() && !"-_./+,@".contains(c)),
            Self::Single => value.replace('\'', r"'\''"),
            Self::Double => escape(|c| "$`\"\\".contains(c)),
        }
    }
}

/// Returns a word of a command line without the quoting of the shell.
fn unquoted(word: &str) -> String {
    let mut words = shlex::split(word).unwrap_or_default();
    // Windows uses backslashes in paths. A shell that passes plain words may pass several words.
    match words.pop() {
        Some(plain) if words.is_empty() && !cfg!(windows) => plain,
        _ => word.to_owned(),
    }
}

/// Returns the workspace that the options on the command line select.
fn workspace() -> Option<Workspace> {
    let words: Vec<OsString> =
        std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let value = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        let value = words.get(at + 1)?.to_str().map(unquoted)?;
        Some(match (value.strip_prefix("~/"), std::env::home_dir()) {
            (Some(rest), Some(home)) => home.join(rest).into_os_string(),
            _ => value.into(),
        })
    };
    let mut line = vec![OsString::from("stvc")];
    for option in ["--data", "--user", "--store"] {
        line.extend(value(option).into_iter().flat_map(|value| [option.into(), value]));
    }
    let found = GlobalArgs::augment_args(clap::Command::new("stvc")).try_get_matches_from(line);
    let args = GlobalArgs::from_arg_matches(&found.ok()?).ok()?;
    Some(args.workspace(&[]))
}

/// Returns each timeline's name with its folder. A chat whose name is unique is also listed without
/// its folder.
fn names(all: BTreeSet<TimelineName>) -> Names {
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
    let (Some(typed), Some(workspace)) = (typed.to_str(), workspace()) else { return Vec::new() };
    let quoting = Quoting::now();
    let typed = quoting.read(typed);
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
        let value = quoting.write(&name);
        CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
    })
    .collect()
}
