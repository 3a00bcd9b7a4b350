//! Snapshots of SillyTavern timelines in a git repository.
//!
//! Layers, lowest first: [`durable`], `regular`, [`parallel`] and [`progress`] serve all; [`st`] knows SillyTavern's files and [`store`] knows git;
//! [`archive`] says what a snapshot is; [`rules`] find fault with values; [`history`] says what follows what; [`engine`] is what verbs are made of, [`verbs`] is what
//! can be asked for; [`watch`] asks by itself, and [`cli`] is the front end for a person. Imports go downward only, and `st` and `store` are strangers to each other.

pub mod archive;
pub mod cli;
pub mod durable;
pub mod engine;
pub mod history;
pub mod parallel;
pub mod progress;
mod regular;
pub mod rules;
pub mod st;
pub mod store;
pub mod verbs;
pub mod watch;
