//! stvc beside the real SillyTavern: its server, its page in headless Chromium, its own buttons, and a language model that is a few lines of Rust.
//!
//! Files are right only when that program says so. What is needed is fetched once, see `equipment.rs`; where that is not possible, the tests say so and
//! are skipped, or fail if `STVC_REQUIRE_SILLYTAVERN` is set, as `.ci/run` does.

// SillyTavern is started by a shell, and its folders are linked.
#![cfg(unix)]
// clippy.toml allows these in tests, but not in what tests share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr
)]

// Half of it is for the other tests.
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;

mod equipment;
mod model;
mod stage;
mod tavern;
mod writer;

mod dead_disk;
mod extension;
mod group;
mod looking_back;
mod shared_book;
mod solo;
mod while_open;
