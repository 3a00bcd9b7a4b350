//! Snapshots of SillyTavern timelines in a git repository, for programs that have their own front end.
//!
//! Begin with a [`Workspace`]: which library, which store, what time it is. [`verbs`] has a module for each command, with a function that takes
//! a workspace, options and a [`progress::Monitor`], and returns a report or an [`errors::Error`]:
//!
//! ```no_run
//! use stvc::Workspace;
//! use stvc::progress::Silent;
//! use stvc::verbs::snapshot::{Options, snapshot};
//!
//! let workspace = Workspace::at("/path/to/SillyTavern", "my program");
//! let report = snapshot(&workspace, &Options::default(), &mut Silent)?;
//! # Ok::<(), stvc::errors::Error>(())
//! ```
//!
//! [`watch`] creates snapshots by itself whenever something was saved. [`lines`] has the documented objects of `--json`, [`api`] answers requests
//! with them. The other modules hold the types that options and reports are made of. `examples/` has whole programs.
//!
//! Nothing here prints, asks, or reads a command line: the program `stvc` does that, and it is not part of this library.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod api;
mod archive;
mod auto_recap;
mod durable;
mod engine;
pub mod exit;
mod file_lock;
mod folder;
#[cfg(any(test, fuzzing))]
mod fuzz_equipment;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hint;
mod history;
pub mod lines;
mod parallel;
pub mod progress;
mod real_path;
mod regular;
mod rules;
mod settings;
mod st;
mod store;
pub mod system_clock;
pub mod verbs;
pub mod watch;
pub mod words;

pub use engine::take_first::TakenFirst;
pub use engine::{CommandRun, LibraryPlace, Workspace, finish_interrupted};

/// The files of SillyTavern: names of timelines, and raw values in their JSON.
pub mod library {
    pub use crate::st::{
        Category, Library, LibraryPath, Message, Raw, STORE, TimelineName, User, entry_comment,
        entry_content, replace, text_of,
    };
}

/// Snapshots, and what they record.
pub mod snapshots {
    pub use crate::archive::{Blake3, ContentId, FileRecord, Kind, Role, Snapshot, SnapshotId};
    pub use crate::auto_recap::CheckpointState;
    pub use crate::store::Time;
}

/// Names of moments: dates, and where a state that was never stored comes from.
pub mod moments {
    pub use crate::history::at_message::{BookSource, Origin};
    pub use crate::history::dates;
}

/// Findings: what is wrong with the user's data.
pub mod findings {
    pub use crate::rules::{Code, Finding, Level, Rule, findings_page, lost_attachments, rules};
}

/// Errors: why something could not be done.
pub mod errors {
    pub use crate::engine::Error as EngineError;
    pub use crate::history::Error as MomentError;
    pub use crate::st::Error as LibraryError;
    pub use crate::store::Error as StoreError;
    pub use crate::verbs::Error;
}

/// Differences between two states.
pub mod changes {
    pub use crate::archive::diff::{
        Change, ChangeKind, Field, Location, MessagePlace, Part, Piece, Root, joined, set_change,
        words,
    };
}

/// Two lorebooks merged into one.
pub mod merging {
    pub use crate::archive::merge::{Conflict, ConflictKind, FieldChange, Named, Side};
}

/// What the extension ST-Auto-Recap keeps in messages.
pub mod recaps {
    pub use crate::auto_recap::{MEMORY, RECAP_IN_USE, RUNNING_RECAP, Scene, scene};
}

/// The readiness check before a snapshot.
pub mod readiness {
    pub use crate::auto_recap::READINESS;
    pub use crate::engine::gate::{GatePolicy, SceneRule, Wait};
}

/// Files of the library that are written.
pub mod files {
    pub use crate::engine::files::{Action, Closed, FileAction, Leave};
}

/// Backups and other devices.
pub mod copies {
    pub use crate::archive::backup::Passphrase;
    pub use crate::engine::copies::last_backups::{LastBackup, Purpose, Since};
    pub use crate::engine::copies::{
        CopyError, CopyPlace, May, is_encrypted, is_repository, last_backups, mirror, server,
    };
    pub use crate::engine::receive::{Conflict, Outcome, ReceivedTimeline, look_at};
}

/// The user's configuration of a store.
pub mod configuration {
    pub use crate::engine::ConfigurationError;
    pub use crate::engine::configuration::{Configuration, Dates, When};
    pub use crate::settings::Key;
}

/// Which snapshots `forget` keeps.
pub mod retention {
    pub use crate::history::retention::{Policy, parse_span};
}

/// Stores, and the log of what was done in them.
pub mod stores {
    pub use crate::store::{LoggedOperation, Url, folder_for_now};
}

/// Durable writing of files that front ends create outside of libraries and stores. No link is followed, and nobody reads half of a file.
pub mod output_files {
    pub use crate::durable::{Existing, create_dir_all, write};
}

/// The inner modules, for tests of this package alone.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod archive {
        pub use crate::archive::*;
    }
    pub mod auto_recap {
        pub use crate::auto_recap::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod rules {
        pub use crate::rules::*;
    }
    pub mod st {
        pub use crate::st::*;
    }
    pub mod store {
        pub use crate::store::*;
    }
}
