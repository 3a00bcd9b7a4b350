//! Snapshots of SillyTavern timelines in a git repository, for programs that have their own front end.
//!
//! Begin with [`engine::Workspace`]: which library, which store, what time it is. [`verbs`] is what can be asked for: each takes a
//! workspace, options and a [`progress::Monitor`], and gives a report or an [`engine::Error`]. [`watch`] asks by itself whenever
//! something was saved. [`lines`] are the documented objects that reports become for other programs.
//!
//! What reports are made of is public for that reason, lowest first: [`st`] knows SillyTavern's files and [`store`] knows git;
//! [`archive`] says what a snapshot is; [`rules`] find fault with values; [`auto_recap`] knows the extension of that name; [`history`] says what follows what; [`engine`] is what verbs
//! are made of. Imports go downward only, and `st` and `store` are strangers to each other.
//!
//! Nothing here prints, asks, or reads a command line: that is the program's, and this library does not have it.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod api;
pub mod archive;
pub mod auto_recap;
mod durable;
pub mod engine;
pub mod exit;
mod file_lock;
mod folder;
#[cfg(any(test, fuzzing))]
mod fuzz_equipment;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hint;
pub mod history;
pub mod lines;
pub mod listed;
mod parallel;
pub mod progress;
mod real_path;
mod regular;
pub mod rules;
pub mod settings;
pub mod st;
pub mod store;
pub mod system_clock;
pub mod verbs;
pub mod watch;
pub mod words;

pub use engine::Workspace;

/// Durable writing of files that front ends create outside of libraries and stores. No link is followed, and nobody reads half of a file.
pub mod output_files {
    pub use crate::durable::{Existing, create_dir_all, write};
}
