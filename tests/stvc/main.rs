//! What stvc does, seen from outside: one file a subject, a folder where it is a large one. `common` is what they share.
//!
//! What needs a tool that is not here says so and is not tried, or fails if `STVC_TEST_ALL` is 1, as `.ci/run` sets it.

// clippy.toml allows these in tests, but not in what tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod common;

mod another_ending;
mod api;
mod backup;
mod bad_days;
mod bad_input;
mod bounds;
mod checkpoints;
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
mod forks;
mod format;
mod full_disk;
mod gc;
mod git_agrees;
mod graph;
mod hostile;
mod import;
mod interrupted;
mod json;
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
mod newest;
mod odd_snapshots;
mod packaging;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod packaging_scripts;
mod parallel;
mod queue_gate;
mod reading;
mod reconstruct;
mod recovery;
mod requirements;
mod round_trip;
#[cfg(target_os = "linux")]
mod running;
mod screen;
mod search;
mod server;
mod sessions;
mod status;
mod sync;
mod terminal;
mod undo;
mod unreadable;
mod users;
mod view;
mod watch;
mod whole_library;
