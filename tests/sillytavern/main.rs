//! stvc together with the real SillyTavern: its server, its page in headless Chromium, its own
//! buttons, and a fake language model.
//!
//! Only SillyTavern itself can tell that files are correct for it. The tests fetch their tools once
//! (`equipment.rs`). Without these they print a note and are skipped, or fail if
//! `STVC_REQUIRE_SILLYTAVERN` is set, as in `.ci/run`.

// The tests start SillyTavern in a shell and link its folders.
#![cfg(unix)]
// clippy.toml allows these in test functions, but not in helpers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr
)]

// Other tests use the rest of it.
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;

// Other tests use the rest of them.
#[allow(dead_code)]
#[path = "../remotes/apache.rs"]
mod apache;
#[allow(dead_code)]
mod equipment;
#[allow(dead_code)]
#[path = "../remotes/servers.rs"]
mod servers;

mod model;
mod server;
mod session;
mod writer;

mod disk_failure;
mod extension;
mod group;
mod lorebook_history;
mod one_character;
mod remotes;
mod restore_while_open;
mod shared_lorebook;
