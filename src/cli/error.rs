//! Errors in words, with a hint what to do next, and their exit codes.

use std::io::Write;

use super::exit::{FAILED, LOCKED, NO_STORE, PARTLY, REFUSED, USAGE};
use super::output::{LOOK, Out, paint};
use super::wording::{clean, shell, short};
use stvc::archive::backup::BackupError;
use stvc::archive::{self, Role};
use stvc::engine::Error;
use stvc::lines::{Counts, ErrorLine, Line, Summary};
use stvc::store::{self, RemoteError};
use stvc::{history, st};

/// Print an error; its exit code.
pub fn report(error: &Error, command: &'static str, out: &mut Out) -> u8 {
    let exit = exit_code(error);
    let hint = hint(error).map(|hint| hint.to_string());
    let candidates = match error {
        Error::History(history::Error::Ambiguous { candidates, .. }) => candidates.clone(),
        _ => Vec::new(),
    };
    if out.is_json() {
        if let Error::Refused { findings } = error {
            out.findings(findings);
        }
        let message = error.to_string();
        out.object(ErrorLine { message, hint, candidates, exit });
        out.summary(command, false, Counts::None {});
        return exit;
    }
    out.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(&error.to_string())));
    for candidate in candidates {
        out.error_line(&format!("  {}", clean(&candidate)));
    }
    if let Some(hint) = hint {
        out.error_line(&format!("{}: {hint}", paint(LOOK.tag, "hint")));
    }
    exit
}

/// A command line that does not parse; also `--help` and `--version`, which clap reports the same way.
pub fn usage(problem: &clap::Error, json: bool) -> u8 {
    let exit = u8::try_from(problem.exit_code()).unwrap_or(USAGE);
    if json && exit != 0 {
        let message = problem.to_string();
        let message =
            message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let error = ErrorLine { message, hint: None, candidates: Vec::new(), exit };
        let summary = Summary { command: "", ok: false, counts: Counts::None {} };
        for line in [Line::Error(error), Line::Summary(summary)] {
            let line = serde_json::to_string(&line).unwrap_or_default();
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    } else {
        let _ = problem.print();
    }
    exit
}

pub(super) fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Partway { source } => exit_code(source),
        Error::Refused { .. }
        | Error::NameTaken { .. }
        | Error::NameStored { .. }
        | Error::History(history::Error::KeepsNothing)
        | Error::Conflicts { .. }
        | Error::Unmergeable { .. }
        | Error::InTheWay { .. }
        | Error::SillyTavernRuns { .. }
        | Error::NotEmpty { .. }
        | Error::BackupInTheWay { .. }
        | Error::UnitInTheWay { .. }
        | Error::NotHere { .. }
        | Error::ChangedSince { .. } => REFUSED,
        Error::LeftAlone { others, .. } if *others > 0 => PARTLY,
        Error::Watched { .. } => LOCKED,
        Error::NeedsOneTimeline { .. }
        | Error::BadTag { .. }
        | Error::BadChatName { .. }
        | Error::NotNewest { .. }
        | Error::UnknownDestination { .. }
        | Error::BadOutput { .. }
        | Error::BackupIsNoStore { .. }
        | Error::NoPolicy => USAGE,
        Error::Remote(RemoteError::Foreign { .. }) => REFUSED,
        Error::Store(error)
        | Error::Remote(RemoteError::Store(error))
        | Error::Archive(archive::Error::Store(error)) => match error {
            store::Error::NoStore { .. } => NO_STORE,
            store::Error::Locked { .. } => LOCKED,
            store::Error::Link { .. } => REFUSED,
            _ => FAILED,
        },
        _ => FAILED,
    }
}

/// What to do next.
struct Hint {
    words: String,
    /// Whether it can be said that nothing was changed.
    unchanged: bool,
}

impl<W: Into<String>> From<W> for Hint {
    fn from(words: W) -> Self {
        Self { words: words.into(), unchanged: false }
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = if self.unchanged { ". Nothing was changed" } else { "" };
        write!(f, "{}{end}", self.words)
    }
}

/// A hint that can say so.
fn unchanged(words: impl Into<String>) -> Hint {
    Hint { words: words.into(), unchanged: true }
}

/// The restore that was asked for, to be typed again.
fn again(snapshot: &str, only: Option<Role>, at: Option<usize>) -> String {
    let part = only.map_or(String::new(), |only| format!(" --only {}", only.as_str()));
    let at = at.map_or(String::new(), |at| format!(" --at {at}"));
    format!("stvc restore {}{at}{part}", short(snapshot))
}

fn hint(error: &Error) -> Option<Hint> {
    Some(match error {
        Error::InTheWay { snapshot, only, at, chat_is_free, .. } => {
            let restore = again(snapshot, *only, *at);
            let chat = match (only, chat_is_free) {
                (None, true) => format!("`{restore} --only chat` leaves the lorebook as it is now; "),
                _ => String::new(),
            };
            let fork = match only {
                None => format!("`{restore} --as NAME` makes a chat of its own of it; "),
                Some(_) => String::new(),
            };
            Hint::from(format!(
                "{chat}{fork}`{restore} --overwrite` stores what is there and then replaces it; \
                 `{restore} --to DIR` writes the files elsewhere"
            ))
        }
        Error::SillyTavernRuns { restore: None, .. } => {
            unchanged("in SillyTavern, click the menu ☰ (bottom left), then \"Close chat\"; give the command again with `--chat-closed`; \
             then press F5 there")
        }
        Error::SillyTavernRuns { restore: Some((snapshot, only, at)), .. } => {
            let restore = again(snapshot, *only, *at);
            let fork = match only {
                None => format!(". Or `{restore} --as NAME`: a chat of its own can be made at any time"),
                Some(_) => String::new(),
            };
            unchanged(format!(
                "in SillyTavern, click the menu ☰ (bottom left), then \"Close chat\"; run `{restore} --overwrite --chat-closed`; \
                 then press F5 there{fork}"
            ))
        }
        Error::Refused { findings } => {
            let remedies: Vec<_> =
                findings.iter().filter_map(|finding| finding.remedy.as_deref()).collect();
            return Some(remedies.join("; ")).filter(|words| !words.is_empty()).map(Hint::from);
        }
        Error::NameTaken { .. } | Error::NameStored { .. } => {
            unchanged("choose another name")
        }
        Error::Watched { .. } => {
            "one is enough: it takes a snapshot after every save. Stop it first if you want to start another".into()
        }
        Error::UnitInTheWay { .. } => unchanged("look at it, and move it away"),
        Error::NoHome => "set HOME or XDG_CONFIG_HOME".into(),
        Error::NoPolicy => {
            "say what stays, such as `stvc forget --keep-last 10 --keep-daily 30 --dry-run`, or write a [retention] table into stvc/config.toml in the store".into()
        }
        Error::History(history::Error::KeepsNothing) => {
            unchanged("keep some: `--keep-last N`, or `--keep-tag` if that is what you want")
        }
        Error::BrokenHistory { .. } => {
            unchanged("`stvc check` lists all that is damaged")
        }
        Error::Backup { source, .. } => return backup_hint(source),
        Error::Remote(error) => return remote_hint(error),
        Error::BackupInTheWay { what, .. } if !what.is_backup() => {
            unchanged("choose another name")
        }
        Error::BackupInTheWay { .. } => {
            unchanged("choose another name, or `--overwrite` if that backup may go")
        }
        Error::BackupIsNoStore { .. } => {
            "take it in: `stvc import FILE`; log, show, diff, search, timelines, stats, check and `restore … --to DIR` work on the file itself".into()
        }
        Error::UnknownDestination { .. } => {
            "a file such as /media/stick/chats.stvc, a folder, or a git server such as ssh://host/chats.git".into()
        }
        Error::NotHere { destination, .. } => {
            let place = shell(destination);
            unchanged(format!("`stvc sync {place}` joins both sides, `stvc import {place}` takes in what is there; `--overwrite` leads it to what is here and keeps what was there out of sight"))
        }
        Error::BadOutput { .. } => "`stvc backup - | …`, or name a file".into(),
        Error::NoPassphrase { .. } => {
            "type it on a terminal, or name it with `--passphrase-file FILE` or `--passphrase-command COMMAND`".into()
        }
        Error::Conflicts { into, from, .. } => {
            unchanged(super::merge::ways(into, from))
        }
        Error::Unmergeable { .. } => {
            unchanged("mend the file, or bring a sound state of it back with `stvc restore … --only lorebook`")
        }
        Error::NotNewest { timeline, .. } => {
            unchanged(format!("name the timeline {timeline}: its lorebook as it is now is merged into. To go back first: `stvc restore`"))
        }
        Error::NoLorebook { .. } => {
            "only chats that are bound to a lorebook can be merged; `stvc doctor` tells of missing ones".into()
        }
        Error::Unfinished { .. } => {
            "nothing is lost: the next command that writes finishes it, or takes it back".into()
        }
        Error::TakenBack { source } => {
            let more = hint(source).map_or(String::new(), |hint| format!(". {}", hint.words));
            format!("what had been written before it was taken back{more}").into()
        }
        Error::Partway { source } => {
            let more = hint(source).map_or(String::new(), |hint| format!("{}. ", hint.words));
            format!("{more}What was done before that stays; give the command again").into()
        }
        Error::LeftAlone { others, .. } => {
            let rest = if *others > 0 { "all else is done" } else { "nothing was written" };
            format!("SillyTavern may have saved it; {rest}. Look at it, then give the command again").into()
        }
        Error::History(history::Error::Ambiguous { .. }) => "type more of the name".into(),
        Error::History(history::Error::NoSuchTimeline { .. }) => "`stvc timelines` lists them".into(),
        Error::History(history::Error::NoSuchSnapshot { .. }) => {
            "`stvc log` lists the snapshots, `stvc timelines` the timelines".into()
        }
        Error::NothingToUndo | Error::NoSuchOperation { .. } => "`stvc operations` lists what was done".into(),
        Error::UndoneAlready { by, .. } => format!("`stvc undo {by}` does it again").into(),
        Error::ChangedSince { .. } => {
            unchanged("undo what came later first, or bring an older state back with `stvc restore`")
        }
        Error::NoSuchTag { .. } => "`stvc tag` lists the tags, `stvc tag NAME SNAPSHOT` makes one".into(),
        Error::TagExists { name, .. } => {
            format!("choose another name, or first `stvc tag --delete {}`", shell(name)).into()
        }
        Error::NeedsOneTimeline { option } => {
            format!("name the chat: `stvc snapshot \"Chat name\" {option} …`").into()
        }
        Error::NotEmpty { .. } => "choose a folder that does not exist yet".into(),
        Error::St(st::Error::NoLibraryFound { .. } | st::Error::NotALibrary { .. }) => {
            "go to your SillyTavern folder, or name it: `stvc --data /path/to/SillyTavern …`".into()
        }
        Error::St(st::Error::SavedMeanwhile { .. }) => {
            unchanged("SillyTavern may have saved it; look at it, then try again")
        }
        Error::St(st::Error::Io { path, .. }) if !path.exists() => {
            "name your SillyTavern folder: `stvc --data /path/to/SillyTavern …`".into()
        }
        Error::St(st::Error::SeveralUsers { .. }) => "choose one with `--user NAME`".into(),
        Error::St(st::Error::ChangedWhileReading { .. }) => {
            "something keeps saving it; try again in a moment".into()
        }
        Error::Store(error) | Error::Archive(archive::Error::Store(error)) => {
            return store_hint(error);
        }
        Error::Archive(archive::Error::NewerFormat { .. }) => {
            "a newer stvc wrote this; get that version".into()
        }
        Error::Archive(
            archive::Error::Incomplete { .. }
            | archive::Error::Differs { .. }
            | archive::Error::Unsound { .. },
        ) => {
            "`stvc check` lists all that is damaged; other snapshots are not affected".into()
        }
        _ => return None,
    })
}

fn backup_hint(error: &BackupError) -> Option<Hint> {
    Some(match error {
        BackupError::Foreign => unchanged("a backup is what `stvc backup` wrote"),
        BackupError::Newer { .. } => unchanged("a newer stvc wrote this; get that version"),
        BackupError::Encrypted | BackupError::WrongPassphrase => unchanged(
            "type it on a terminal, or name it with `--passphrase-file FILE` or `--passphrase-command COMMAND`",
        ),
        BackupError::Damaged { .. } | BackupError::Hostile { .. } => {
            unchanged("nothing of it was taken in; use another backup")
        }
        BackupError::Io(source) if source.kind() == std::io::ErrorKind::StorageFull => {
            "the disk is full; make room and try again. Nothing is lost".into()
        }
        _ => return None,
    })
}

fn remote_hint(error: &RemoteError) -> Option<Hint> {
    let says = |words: &str, signs: &[&str]| {
        let words = words.to_lowercase();
        signs.iter().any(|sign| words.contains(sign))
    };
    Some(match error {
        RemoteError::NoGit => {
            "a git server is reached through git: install it (https://git-scm.com), or back up to a file or folder, which need none".into()
        }
        RemoteError::Raced { .. } => "try again. Nothing is lost".into(),
        RemoteError::Foreign { .. } => {
            "make an empty repository there, for the chats alone".into()
        }
        RemoteError::Failed { words, .. } if says(words, &["prompts disabled", "could not read username", "could not read password", "authentication failed", "permission denied"]) => {
            "the server wants to know who you are, and git has no key or password for it: try `git ls-remote ADDRESS`. Nothing is lost".into()
        }
        RemoteError::Failed { words, .. } if says(words, &["not allowed", "not support"]) => {
            unchanged("only ssh://, https://, http:// and git:// lead to a git server")
        }
        RemoteError::Failed { .. } => {
            "is the server there, and the address right? What was interrupted is begun anew next time: try again. Nothing is lost".into()
        }
        RemoteError::Store(error) => return store_hint(error),
    })
}

fn store_hint(error: &store::Error) -> Option<Hint> {
    Some(match error {
        store::Error::NoStore { .. } => "`stvc snapshot` makes it and takes the first snapshots".into(),
        store::Error::NewerFormat { .. } => unchanged("a newer stvc wrote this; get that version"),
        store::Error::Foreign { .. } | store::Error::NotEmpty { .. } => {
            unchanged("choose another place with `--store DIR`")
        }
        store::Error::RefLocked { .. } => {
            unchanged("wait for git to finish; a lock that nobody holds is removed by itself after a minute")
        }
        store::Error::Link { .. } => {
            "put what it leads to in its place, if you trust that; nothing was written".into()
        }
        store::Error::Locked { .. } => "wait for it to finish, then try again".into(),
        store::Error::Missing { .. } | store::Error::Damaged { .. } => {
            "`stvc check` lists all that is damaged; other snapshots are not affected".into()
        }
        store::Error::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::StorageFull => "the disk is full; make room and try again. Nothing is lost".into(),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                "stvc may not write there; check the permissions, or keep the store elsewhere with `--store DIR`".into()
            }
            _ => return None,
        },
        _ => return None,
    })
}
