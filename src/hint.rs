//! Hints: suggestions that follow an error message. Each error type has a method `hint()`. The
//! parts of a hint are separated by semicolons. [`Hint::without`] removes the parts that suggest
//! the command that just failed.

use std::collections::BTreeSet;
use std::io;

use crate::durable;

/// A path for examples in hints.
pub const EXAMPLE_FOLDER: &str =
    if cfg!(windows) { r"C:\path\to\SillyTavern" } else { "/path/to/SillyTavern" };

/// The hint for a file that cannot be replaced. It names programs that often have files open on
/// Windows.
const FILE_IN_USE: &str = "close the program that has the file open (for example SillyTavern, a virus scanner or OneDrive), or check the file's permissions, then try again. Nothing is lost";

/// The hint for a full disk.
const DISK_FULL: &str = "free some disk space and try again. Nothing is lost";

/// A suggestion for the user's next step.
pub struct Hint {
    pub(crate) words: String,
    /// Whether the failed command changed nothing. If so, the hint ends with a sentence that says
    /// so.
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
    /// Removes the parts that suggest the command line `typed`, which just failed. Returns `None`
    /// if no part is left.
    pub fn without(self, typed: &[String]) -> Option<Self> {
        let typed = essential(typed.iter().map(String::as_str));
        let repeats = |part: &&str| commands(part).any(|command| essential(command) == typed);
        let words: Vec<_> = self.words.split("; ").filter(|part| !repeats(part)).collect();
        let words = words.join("; ");
        (!words.is_empty()).then_some(Self { words, ..self })
    }
}

fn commands(text: &str) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    let quoted = text.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|quoted| quoted.strip_prefix("stvc "));
    commands.map(|command| command.split_whitespace().map(|word| word.trim_matches(['"', '\''])))
}

/// Returns the words of a command line without the program's name and the global options.
fn essential<'w>(words: impl Iterator<Item = &'w str>) -> BTreeSet<&'w str> {
    const WITH_VALUE: [&str; 5] = ["--data", "--store", "--user", "--color", "--date"];
    let mut is_value = false;
    let is_essential = |word: &&str| {
        let is_skipped = std::mem::replace(&mut is_value, WITH_VALUE.contains(word));
        !is_skipped && !is_value && !matches!(*word, "stvc" | "--json" | "--quiet" | "-q")
    };
    words.filter(is_essential).collect()
}

/// Returns the hint for an I/O error with a cause that can occur in every command: a full disk, or
/// a file that another program has open.
pub(crate) fn of_io(error: &io::Error) -> Option<Hint> {
    if durable::is_full(error) {
        Some(DISK_FULL.into())
    } else if durable::is_held_elsewhere(error) {
        Some(FILE_IN_USE.into())
    } else {
        None
    }
}

/// Returns a hint that ends with "Nothing was changed".
pub fn unchanged(words: impl Into<String>) -> Hint {
    Hint { words: words.into(), unchanged: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::backup::BackupError;
    use crate::engine::copies::CopyError;
    use crate::engine::{self, TagError};
    use crate::verbs::{self, MergeError, UndoError};
    use crate::{history, st, store};

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
                verbs::Error::NoSuchEntry { book: Some(name()), name: name(), similar: Vec::new() },
                verbs::Error::NoSuchEntry { book: None, name: name(), similar: Vec::new() },
                verbs::Error::NoParent { parent: name(), child: name() },
            ])
            .collect()
    }

    #[test]
    fn hints_never_suggest_the_command_that_failed() {
        let mut quoted = 0;
        for error in errors() {
            let words = error.hint().unwrap().to_string();
            for command in commands(&words) {
                quoted += 1;
                let command: Vec<_> = command.map(str::to_owned).collect();
                let typed = ["stvc", "--data", "somewhere", "--json"].map(str::to_owned);
                let typed: Vec<_> = typed.into_iter().chain(command.clone()).collect();
                let left = error.hint().unwrap().without(&typed).map(|left| left.to_string());
                let left = left.unwrap_or_default();
                let again = essential(command.iter().map(String::as_str));
                assert!(commands(&left).all(|other| essential(other) != again), "{left}");
            }
        }
        assert!(quoted > 20, "only {quoted} commands in hints");
    }

    #[test]
    fn hint_may_suggest_the_failed_command_with_other_options() {
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
