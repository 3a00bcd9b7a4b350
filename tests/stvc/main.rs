//! Behaviour of stvc seen from outside: one file per subject, a folder for a large one, and
//! `common` for helpers.
//!
//! A test that needs a missing tool prints that it is skipped, or fails if `STVC_TEST_ALL` is 1, as
//! in `.ci/run`.

// clippy.toml allows these only inside tests, not in their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod common;

mod api;
mod backup;
mod bad_input;
mod bounds;
mod checkpoints;
mod clock_and_memory;
mod commands;
mod config;
mod crash;
mod damage;
mod damaged_files;
mod dates;
mod deleted;
mod diff;
mod docs;
mod doctor;
mod erase;
mod examples;
mod extension;
mod findings;
mod folders;
mod foreign;
mod forged_log;
mod forget;
mod fork;
mod forks;
mod format;
mod full_disk;
mod gc;
mod git_compatibility;
mod graph;
mod hostile;
mod hosts;
mod import;
mod interrupted;
mod invalid_snapshots;
mod json;
mod language;
mod latest_snapshot;
mod layers;
mod lineage;
mod lore;
mod mailbox;
mod merge;
mod message_versions;
mod mirror;
mod model;
mod moments;
mod name_reuse;
mod names;
mod packaging;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod packaging_scripts;
mod parallel;
mod readiness;
mod reading;
mod reconstruct;
mod recovery;
mod remote;
mod remote_attacks;
mod requirements;
mod round_trip;
#[cfg(target_os = "linux")]
mod running;
mod screen;
mod search;
mod search_index;
mod server;
mod sessions;
#[cfg(target_os = "linux")]
mod setup;
mod status;
mod story_page;
mod sync;
mod terminal;
mod typed_names;
mod undo;
mod unreadable;
mod users;
mod view;
#[cfg(target_os = "linux")]
mod walkthrough;
mod watch;
mod whole_library;
