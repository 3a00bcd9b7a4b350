//! What to do next when something could not be done. The parts of a hint stand between semicolons; one that names the command that just failed is left out ([`Hint::without`]).

use std::collections::BTreeSet;

use super::words::{clean, shell, short};
use crate::archive::backup::BackupError;
use crate::archive::{self, Role, SnapshotId};
use crate::engine::copies::CopyError;
use crate::engine::written_since::Offer;
use crate::engine::{self, ConfigurationError, TagError};
use crate::store::{self, RemoteError};
use crate::verbs::{self, MergeError, RestoreError, UndoError};
use crate::{durable, history, st};

/// Where somebody's SillyTavern might be, to be replaced by who reads it.
pub const EXAMPLE_FOLDER: &str =
    if cfg!(windows) { r"C:\path\to\SillyTavern" } else { "/path/to/SillyTavern" };

/// What to do next.
pub struct Hint {
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

impl Hint {
    /// Leaves out the parts, between semicolons, that name the command line that just failed: it would fail again. `None` if nothing is left.
    pub fn without(self, typed: &[String]) -> Option<Self> {
        let typed = essential(typed.iter().map(String::as_str));
        let repeats = |part: &&str| commands(part).any(|command| essential(command) == typed);
        let words: Vec<_> = self.words.split("; ").filter(|part| !repeats(part)).collect();
        let words = words.join("; ");
        (!words.is_empty()).then_some(Self { words, ..self })
    }
}

/// Returns the command lines that a text quotes, each as its words.
fn commands(text: &str) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    let quoted = text.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|quoted| quoted.strip_prefix("stvc "));
    commands.map(|command| command.split_whitespace().map(|word| word.trim_matches(['"', '\''])))
}

/// Returns the words of a command line that decide what it does, in any order: not the program's name, nor where the library is and how answers look.
fn essential<'w>(words: impl Iterator<Item = &'w str>) -> BTreeSet<&'w str> {
    const WITH_VALUE: [&str; 5] = ["--data", "--store", "--user", "--color", "--date"];
    let mut is_value = false;
    let is_essential = |word: &&str| {
        let is_skipped = std::mem::replace(&mut is_value, WITH_VALUE.contains(word));
        !is_skipped && !is_value && !matches!(*word, "stvc" | "--json" | "--quiet" | "-q")
    };
    words.filter(is_essential).collect()
}

/// A hint that can say so.
pub fn unchanged(words: impl Into<String>) -> Hint {
    Hint { words: words.into(), unchanged: true }
}

/// The restore that was asked for, to be typed again.
fn again(snapshot: SnapshotId, only: Option<Role>, at: Option<usize>) -> String {
    let part = only.map_or(String::new(), |only| format!(" --only {}", only.as_str()));
    let at = at.map_or(String::new(), |at| format!(" --at {at}"));
    format!("stvc restore {}{at}{part}", short(snapshot))
}

/// The hint for an error, if there is one.
pub fn hint(error: &verbs::Error) -> Option<Hint> {
    Some(match error {
        verbs::Error::Engine(error) => return of_engine(error),
        verbs::Error::Merge(error) => of_merge(error),
        verbs::Error::Restore(error) => of_restore(error),
        verbs::Error::Undo(error) => of_undo(error),
        verbs::Error::NoPolicy => {
            "say what stays, such as `stvc forget --keep-last 10 --keep-daily 30 --dry-run`, or write a [retention] table into stvc/config.toml in the store".into()
        }
        verbs::Error::Partway { source } => {
            let more = hint(source).map_or(String::new(), |hint| format!("{}. ", hint.words));
            format!("{more}What was done before that stays; give the command again").into()
        }
        verbs::Error::NeedsCheckpoint { option } => {
            format!("add `--at N` or `--scenes` to {option}; `--tag NAME` names the state as it is").into()
        }
        verbs::Error::Together { option, .. } => format!("leave out {option:?} or the other").into(),
        verbs::Error::NotSaved { .. } => unchanged("save the chat, and ask again"),
        verbs::Error::NeedsOneTimeline { option } => {
            format!("name the chat: `stvc snapshot \"Chat name\" {option} …`").into()
        }
        verbs::Error::NoParent { .. } => {
            unchanged("name the chat that it was forked from; `stvc timelines --tree` shows all")
        }
        verbs::Error::StillThere { .. } => {
            unchanged("delete the chat in SillyTavern first; the next snapshot would take it again")
        }
        verbs::Error::BadPattern { .. } => "without `--regex` words are searched for as they are".into(),
        verbs::Error::NoSuchGroup { .. } | verbs::Error::SeveralGroups { .. } => {
            "name it by its file under groups/, without `.json`".into()
        }
        verbs::Error::NoSuchLorebook { .. } => {
            "it is called as its file in `worlds`, without `.json`".into()
        }
        verbs::Error::DamagedLorebook { .. } => {
            "`stvc doctor` names the latest valid version that is stored".into()
        }
        verbs::Error::NoSuchEntry { book: Some(book), .. } => {
            format!("`stvc lore {}` lists its entries", shell(book)).into()
        }
        verbs::Error::NoSuchEntry { .. } => {
            "`stvc lore` lists lorebooks and entries; `stvc search` looks into what they say".into()
        }
        verbs::Error::NeedsOneLorebook => "name it: `stvc lore \"Lorebook\" --at …`".into(),
        verbs::Error::NoLorebookThen { .. } | verbs::Error::NoChatWith { .. } => {
            "`--at` takes a date, too: `--at yesterday`".into()
        }
        verbs::Error::OneStep { .. } => {
            "write one of ~N, @DATE and :N, or a moment with its name, such as `Chat@yesterday~1`".into()
        }
        verbs::Error::NoChat => "`stvc snapshot` takes the first snapshots".into(),
        verbs::Error::BadName { .. } => return None,
    })
}

/// Returns the commands that settle conflicts. `is_of_sync`: one of the two lorebooks was set aside by a sync.
pub fn ways(into: &str, from: &str, is_of_sync: bool) -> String {
    let merge = format!("stvc merge {} {}", shell(into), shell(from));
    if is_of_sync {
        format!(
            "`{merge} --keep local --yes` keeps the local values, `{merge} --keep remote --yes` the remote ones; or edit both lorebooks in SillyTavern until they agree"
        )
    } else {
        format!(
            "`{merge} --keep a --yes` keeps the values of {}, `{merge} --keep b --yes` takes those of {}; or edit both lorebooks in SillyTavern until they agree",
            clean(into),
            clean(from)
        )
    }
}

fn of_merge(error: &MergeError) -> Hint {
    match error {
        MergeError::Conflicts { into, from, local, .. } => {
            unchanged(ways(into, from, local.is_some()))
        }
        MergeError::NotSetAside { into, from } => unchanged(format!(
            "write `--keep a` for the values of {}, `--keep b` for those of {}",
            clean(into),
            clean(from)
        )),
        MergeError::Unmergeable { .. } => {
            unchanged("mend the file, or bring a sound state of it back with `stvc restore … --only lorebook`")
        }
        MergeError::NotNewest { timeline, .. } => {
            unchanged(format!("name the timeline {timeline}: its lorebook as it is now is merged into. To go back first: `stvc restore`"))
        }
        MergeError::NoLorebook { .. } => {
            "only chats that are bound to a lorebook can be merged; `stvc doctor` tells of missing ones".into()
        }
    }
}

fn of_restore(error: &RestoreError) -> Hint {
    match error {
        RestoreError::InTheWay { snapshot, only, at, chat_is_free, can_be_copied, .. } => {
            let restore = again(*snapshot, *only, *at);
            let chat = match (only, chat_is_free) {
                (None, true) => {
                    format!("`{restore} --only chat` leaves the lorebook as it is now; ")
                }
                _ => String::new(),
            };
            let fork = if only.is_none() && *can_be_copied {
                format!("`{restore} --as Restored` makes a chat of its own of it; ")
            } else {
                String::new()
            };
            Hint::from(format!(
                "{chat}{fork}`{restore} --overwrite` stores what is there and then replaces it; \
                 `{restore} --to restored` writes the files into that folder"
            ))
        }
        RestoreError::NameTaken { .. } | RestoreError::NameStored { .. } => {
            unchanged("choose another name")
        }
        RestoreError::NotExpected { .. } => {
            unchanged("somebody wrote it meanwhile; look at the plan again")
        }
        RestoreError::NotEmpty { .. } => "choose a folder that does not exist yet".into(),
        RestoreError::SillyTavernRuns { source, snapshot, only, at } => {
            let restore = again(*snapshot, *only, *at);
            let alone = match source {
                engine::Error::SillyTavernRuns { paths, .. }
                    if only.is_none() && paths.iter().all(|path| path.starts_with("worlds/")) =>
                {
                    format!(
                        ". `{restore} --overwrite --only chat` brings back the chat alone without that"
                    )
                }
                _ => String::new(),
            };
            let fork = match only {
                None => {
                    format!(
                        ". Or `{restore} --as Restored`: a chat of its own can be made at any time"
                    )
                }
                Some(_) => String::new(),
            };
            unchanged(format!(
                "in SillyTavern, click the menu ☰ (bottom left), then \"Close chat\"; run `{restore} --overwrite --chat-closed`; \
                 then press F5 there{alone}{fork}"
            ))
        }
    }
}

fn of_undo(error: &UndoError) -> Hint {
    match error {
        UndoError::UndoneBelow { number, first, undone } => unchanged(format!(
            "run `stvc undo {first}` first, which redoes operation {undone}, then `stvc undo {number}`"
        )),
        UndoError::ChangedSince { offers, .. } if !offers.is_empty() => {
            let restores: Vec<_> = offers.iter().map(restore_beside).collect();
            unchanged(format!(
                "{} restores the state before it as a chat of its own",
                restores.join(", ")
            ))
        }
        UndoError::ChangedSince { is_new: true, .. } => unchanged(
            "nothing was there before it; delete the chat in SillyTavern if you do not want it, its snapshots stay",
        ),
        UndoError::ChangedSince { .. } => unchanged(
            "`stvc operations` lists what was done since; `stvc undo N` undoes one of them",
        ),
    }
}

/// Returns the command that restores a state under another name.
fn restore_beside(offer: &Offer) -> String {
    format!("`stvc restore {} --as {}`", offer.moment, shell(&offer.name))
}

fn of_engine(error: &engine::Error) -> Option<Hint> {
    Some(match error {
        engine::Error::SillyTavernRuns { .. } => unchanged(
            "in SillyTavern, click the menu ☰ (bottom left), then \"Close chat\"; give the command again with `--chat-closed`; \
             then press F5 there",
        ),
        engine::Error::Refused { findings } => {
            let remedies: Vec<_> =
                findings.iter().filter_map(|finding| finding.remedy.as_deref()).collect();
            return Some(remedies.join("; ")).filter(|words| !words.is_empty()).map(Hint::from);
        }
        engine::Error::History(history::Error::KeepsNothing) => {
            unchanged("keep some: `--keep-last N`, or `--keep-tag` if that is what you want")
        }
        engine::Error::BrokenHistory { .. } => unchanged("`stvc check` lists all that is damaged"),
        engine::Error::Remote(error) => return of_server(error),
        engine::Error::Unfinished { .. } => {
            "nothing is lost: the next command that writes finishes it, or takes it back".into()
        }
        engine::Error::TakenBack { source } => {
            let more = of_engine(source).map_or(String::new(), |hint| format!(". {}", hint.words));
            format!("what had been written before it was taken back{more}").into()
        }
        engine::Error::LeftAlone { others, .. } => {
            let rest = if *others > 0 { "all else is done" } else { "nothing was written" };
            format!(
                "SillyTavern may have saved it; {rest}. Look at it, then give the command again"
            )
            .into()
        }
        engine::Error::History(history::Error::Ambiguous { .. }) => "type more of the name".into(),
        engine::Error::History(
            history::Error::NoSuchTimeline { similar, .. }
            | history::Error::NoSuchSnapshot { similar, .. },
        ) if !similar.is_empty() => "perhaps one of these is meant".into(),
        engine::Error::History(history::Error::NotThatOld { .. }) => {
            "`stvc log` lists what there is".into()
        }
        engine::Error::History(history::Error::NotTakenThen { timeline, message }) => {
            let chat = shell(timeline.as_str());
            format!("`stvc reconstruct {chat} --at {message}` makes one of what is known; `stvc snapshot {chat} --at {message}` takes one with the lorebook of now").into()
        }
        engine::Error::History(history::Error::Unreadable { .. }) => {
            "docs/moments.md tells how moments are written".into()
        }
        engine::Error::History(history::Error::NoSuchTimeline { .. }) => {
            "`stvc timelines` lists them".into()
        }
        engine::Error::History(history::Error::NoSuchSnapshot { .. }) => {
            "`stvc log` lists the snapshots, `stvc timelines` the timelines".into()
        }
        engine::Error::St(st::Error::NeverStarted { .. }) => {
            "start it once; or bring chats back into it: `stvc import BACKUP`, then `stvc restore --all`".into()
        }
        engine::Error::St(st::Error::NoLibraryFound { .. } | st::Error::NotALibrary { .. }) => {
            format!("go to your SillyTavern folder, or name it: `stvc --data {EXAMPLE_FOLDER} …`")
                .into()
        }
        engine::Error::St(st::Error::SavedMeanwhile { .. }) => {
            unchanged("SillyTavern may have saved it; look at it, then try again")
        }
        engine::Error::St(st::Error::Io { source, .. }) if durable::is_held_elsewhere(source) => {
            HELD.into()
        }
        engine::Error::St(st::Error::Io { source, .. }) if durable::is_read_only(source) => {
            "check the permissions of that file and of its folder, and whether its disk is mounted read-only".into()
        }
        engine::Error::St(st::Error::NoSuchFolder { .. }) => {
            format!("name your SillyTavern folder: `stvc --data {EXAMPLE_FOLDER} …`").into()
        }
        engine::Error::St(st::Error::SeveralUsers { .. }) => "choose one with `--user NAME`".into(),
        engine::Error::St(st::Error::ChangedWhileReading { .. }) => {
            "something keeps saving it; try again in a moment".into()
        }
        engine::Error::Store(error) | engine::Error::Archive(archive::Error::Store(error)) => {
            return of_store(error);
        }
        engine::Error::Archive(archive::Error::NewerFormat { .. }) => {
            "a newer stvc wrote this; get that version".into()
        }
        engine::Error::Archive(
            archive::Error::Incomplete { .. }
            | archive::Error::Differs { .. }
            | archive::Error::Unsound { .. },
        ) => "`stvc check` lists all that is damaged; other snapshots are not affected".into(),

        engine::Error::Configuration(ConfigurationError::Bad { .. }) => {
            unchanged("correct the file, or move it away")
        }
        engine::Error::Tag(error) => return of_tag(error),
        engine::Error::Copy(error) => return of_copy(error),
        engine::Error::NoSuchOperation { .. } => "`stvc operations` lists what was done".into(),
        _ => return None,
    })
}

fn of_tag(error: &TagError) -> Option<Hint> {
    Some(match error {
        TagError::Missing { .. } => {
            "`stvc tag` lists the tags, `stvc tag NAME SNAPSHOT` makes one".into()
        }
        TagError::Taken { name, .. } => {
            format!("choose another name, or `stvc tag {} SNAPSHOT --move`", shell(name)).into()
        }
        TagError::BadName { .. } => return None,
    })
}

fn of_copy(error: &CopyError) -> Option<Hint> {
    Some(match error {
        CopyError::NoFolder { .. } => {
            unchanged("is the drive plugged in? If it shall be a new folder, make it first")
        }
        CopyError::File { source, .. } => return of_file(source),
        CopyError::InTheWay { what, .. } if !what.is_backup() => {
            unchanged("choose another name")
        }
        CopyError::InTheWay { .. } => {
            unchanged("choose another name, or `--overwrite` if that backup may go")
        }
        CopyError::UnknownDestination { .. } => {
            "a file such as /media/stick/chats.stvc, a folder, or a git server such as ssh://host/chats.git".into()
        }
        CopyError::NotHere { destination, .. } => {
            let place = shell(destination);
            unchanged(format!("`stvc sync {place}` joins both sides; `stvc import {place}` takes in what is there; `--overwrite` leads it to what is here and keeps what was there out of sight"))
        }
    })
}

fn of_file(error: &BackupError) -> Option<Hint> {
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

fn of_server(error: &RemoteError) -> Option<Hint> {
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
        RemoteError::Store(error) => return of_store(error),
    })
}

/// Who mostly keeps files on Windows from being replaced.
const HELD: &str = "another program has it open, or you may not write there: SillyTavern, a virus scanner, a program that synchronises the folder (OneDrive)? Try again when that is done. Nothing is lost";

fn of_store(error: &store::Error) -> Option<Hint> {
    Some(match error {
        store::Error::NoStore { .. } => "`stvc snapshot` makes it and takes the first snapshots".into(),
        store::Error::NewerFormat { .. } | store::Error::UnknownFeature { .. } => unchanged("a newer stvc wrote this; get that version"),
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
        store::Error::NoRoom { .. } => {
            "remove other files from that disk, or move the store to a larger one and name it with `--store DIR`. Nothing is lost".into()
        }
        store::Error::Io { source, .. } if durable::is_held_elsewhere(source) => HELD.into(),
        store::Error::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::StorageFull => "the disk is full; make room and try again. Nothing is lost".into(),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                "stvc may not write there; check the permissions, or keep the store elsewhere with `--store DIR`. What is stored can be read, backed up, and restored into a folder: `--to DIR`".into()
            }
            std::io::ErrorKind::AlreadyExists => {
                unchanged("what is there is not written over: choose another name, or move it away first")
            }
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors whose hints quote commands.
    fn errors() -> Vec<verbs::Error> {
        let name = || "Mira/a".to_owned();
        let timeline = || st::TimelineName::parse("chats/Mira/a").unwrap();
        let history = [
            history::Error::no_such_timeline("a"),
            history::Error::NoSuchSnapshot { name: name(), similar: Vec::new() },
            history::Error::NotThatOld { name: name(), first: Default::default() },
            history::Error::NotTakenThen { timeline: timeline(), message: 3 },
        ];
        let store = [
            store::Error::NoStore { path: "s".into() },
            store::Error::Missing { id: store::ObjectId::from_hex(&[b'0'; 40]).unwrap() },
        ];
        let copies = [
            CopyError::NotHere { destination: "rem".into(), refs: Vec::new() },
            CopyError::File { path: "f".into(), source: BackupError::Foreign },
        ];
        let engine = history
            .into_iter()
            .map(engine::Error::from)
            .chain(store.into_iter().map(engine::Error::from))
            .chain(copies.into_iter().map(engine::Error::from))
            .chain([
                engine::Error::Tag(TagError::Missing { name: name() }),
                engine::Error::Tag(TagError::Taken { name: name(), snapshot: name() }),
                engine::Error::NoSuchOperation { number: 4 },
                engine::Error::BrokenHistory { subject: name(), why: name() },
                engine::Error::St(st::Error::NeverStarted { path: "p".into(), root: "p".into() }),
            ]);
        let undo = [UndoError::UndoneBelow { number: 4, first: 5, undone: 2 }];
        let merge =
            MergeError::Conflicts { count: 1, into: name(), from: "Mira/b".into(), local: None };
        engine
            .map(verbs::Error::from)
            .chain(undo.into_iter().map(verbs::Error::Undo))
            .chain([
                verbs::Error::Merge(merge),
                verbs::Error::NoPolicy,
                verbs::Error::NoChat,
                verbs::Error::NoSuchEntry { book: Some(name()), name: name() },
                verbs::Error::NoSuchEntry { book: None, name: name() },
                verbs::Error::NoParent { parent: name(), child: name() },
            ])
            .collect()
    }

    #[test]
    fn no_hint_names_the_command_that_failed() {
        let mut quoted = 0;
        for error in errors() {
            let words = hint(&error).unwrap().to_string();
            for command in commands(&words) {
                quoted += 1;
                let command: Vec<_> = command.map(str::to_owned).collect();
                let typed = ["stvc", "--data", "somewhere", "--json"].map(str::to_owned);
                let typed: Vec<_> = typed.into_iter().chain(command.clone()).collect();
                let left = hint(&error).unwrap().without(&typed).map(|left| left.to_string());
                let left = left.unwrap_or_default();
                let again = essential(command.iter().map(String::as_str));
                assert!(commands(&left).all(|other| essential(other) != again), "{left}");
            }
        }
        assert!(quoted > 20, "only {quoted} commands in hints");
    }

    #[test]
    fn another_form_of_the_command_stays_in_the_hint() {
        let words = |typed: &str| {
            let hint = Hint::from(
                "`stvc sync rem` joins both sides; `stvc restore a --overwrite` replaces it",
            );
            let typed: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            hint.without(&typed).map(|hint| hint.to_string())
        };
        assert_eq!(
            words("stvc sync --quiet rem").unwrap(),
            "`stvc restore a --overwrite` replaces it"
        );
        assert!(words("stvc restore a").unwrap().contains("--overwrite"));
        assert!(
            Hint::from("`stvc log` lists them").without(&["stvc".into(), "log".into()]).is_none()
        );
    }
}
