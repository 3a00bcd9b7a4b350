//! Stores snapshots of SillyTavern timelines in a git repository. This library is for programs that
//! have their own front end.
//!
//! Begin with a [`Workspace`]: the library, the store and the current time. [`verbs`] has a module
//! for each command, with a function that takes a workspace, options and a [`progress::Monitor`],
//! and returns a report or an [`errors::Error`]:
//!
//! ```no_run
//! use stvc::Workspace;
//! use stvc::progress::NoProgress;
//! use stvc::verbs::snapshot::{Options, snapshot};
//!
//! let workspace = Workspace::at("/path/to/SillyTavern", "my program");
//! let report = snapshot(&workspace, &Options::default(), &mut NoProgress)?;
//! # Ok::<(), stvc::errors::Error>(())
//! ```
//!
//! [`watch`] creates snapshots automatically when files are saved. [`json_output`] has the
//! documented objects that `--json` prints, and [`api`] answers requests with these objects. The
//! other modules contain the types of options and reports. `examples/` has complete programs.
//!
//! The library does not print, ask questions, or read a command line. The program `stvc` does, and
//! is not part of the library.

// The feature `internals` exports everything else. `cargo doc` builds without it.
#![cfg_attr(not(any(feature = "internals", test, fuzzing)), warn(missing_docs))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod api;
mod archive;
mod auto_recap;
mod durable;
mod engine;
pub mod exit;
mod file_lock;
mod file_names;
mod folder;
#[cfg(any(test, fuzzing))]
mod fuzz_equipment;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hint;
mod history;
pub mod json_output;
mod parallel;
pub mod progress;
mod real_path;
mod regular;
mod rules;
mod settings;
mod similar;
#[cfg(test)]
mod simulation;
mod st;
mod storage;
mod store;
pub mod system_clock;
pub mod verbs;
pub mod watch;
pub mod words;

pub use engine::safety_snapshots::SafetySnapshots;
pub use engine::{CommandRun, LibraryPlace, Workspace, finish_interrupted, has_unfinished};

/// SillyTavern's files: where they are, the names of timelines, and raw values in JSON files.
pub mod library {
    pub use crate::st::{
        Category, Library, LibraryPath, Message, Raw, STORE, Surroundings, TimelineName, User,
        entry_comment, entry_content, replace, text_of,
    };
}

/// Snapshots and their contents.
pub mod snapshots {
    pub use crate::archive::{Blake3, ContentId, FileRecord, Kind, Role, Snapshot, SnapshotId};
    pub use crate::auto_recap::CheckpointState;
    pub use crate::store::Time;
}

/// Moments in a timeline: how dates are parsed, and the sources of a moment that was assembled
/// because it has no snapshot.
pub mod moments {
    pub use crate::history::at_message::{BookSource, Origin};
    pub use crate::history::dates;
}

/// Findings: problems in the user's data.
pub mod findings {
    pub use crate::rules::{Code, Finding, Level, Rule, findings_page, lost_attachments, rules};
}

/// Error types.
pub mod errors {
    pub use crate::engine::Error as EngineError;
    pub use crate::verbs::Error;
}

/// Differences between two snapshots, or between a snapshot and the current files.
pub mod changes {
    pub use crate::archive::diff::{
        Change, ChangeKind, Field, Location, MessagePlace, Part, Piece, Root, joined, set_change,
        words,
    };
}

/// The merge of two lorebooks.
pub mod merging {
    pub use crate::archive::merge::{Conflict, ConflictKind, EntryName, FieldChange, Side};
}

/// Data of the ST-Auto-Recap extension in messages.
pub mod recaps {
    pub use crate::auto_recap::{MEMORY, RECAP_IN_USE, RUNNING_RECAP, Scene, scene};
}

/// The readiness check before a checkpoint.
pub mod readiness {
    pub use crate::auto_recap::READINESS;
    pub use crate::engine::gate::{GatePolicy, SceneRule, WaitLimit};
}

/// Files that are written to the library.
pub mod files {
    pub use crate::engine::files::{Action, ChatOpenState, FileAction, WritePermissions};
}

/// Backups and remotes.
pub mod copies {
    pub use crate::archive::backup::Passphrase;
    pub use crate::engine::copies::last_backups::{BackupAge, LastBackup, Purpose};
    pub use crate::engine::copies::{
        CopyError, CopyPlace, UpdatePermissions, is_encrypted, is_repository, last_backups,
        last_sync, mirror, server,
    };
    pub use crate::engine::receive::{Conflict, Outcome, ReceivedTimeline, look_at};
    pub use crate::store::LoginPrompt;
}

/// The user's configuration of a store.
pub mod configuration {
    pub use crate::engine::configuration::{Configuration, Dates, When, parse_schedule};
    pub use crate::settings::Key;
}

/// The retention policy, which `forget` applies.
pub mod retention {
    pub use crate::history::retention::{Policy, parse_span};
}

/// Stores and their operation logs.
pub mod stores {
    pub use crate::store::{LoggedOperation, Url, temporary_folder};
}

/// Plain object storage, for remotes: folders, WebDAV servers, S3 buckets, and remotes of rclone.
pub mod storages {
    pub use crate::storage::address::{self, Address};
    pub use crate::storage::{
        Credentials, Error, LONGEST_OBJECT, Limit, Listed, Options, Password, Result, Storage, open,
    };
}

/// Writes files that front ends create outside libraries and stores. The writes are durable, links
/// are not followed, and other programs never see a partial file.
pub mod output_files {
    pub use crate::durable::{Existing, create_dir_all, write};
}

/// The internal modules, exported only for the tests of this package.
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
    pub mod storage {
        pub use crate::storage::*;
    }
    pub mod store {
        pub use crate::store::*;
    }
}
