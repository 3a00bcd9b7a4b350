//! Snapshots of SillyTavern timelines in a git repository.
//!
//! Layers, lowest first: [`durable`], `regular`, [`parallel`] and [`progress`] serve all; [`st`] knows SillyTavern's files and [`store`] knows git;
//! [`archive`] says what a snapshot is; [`rules`] find fault with values; [`ops`] has one file for each verb; [`cli`] is the
//! front end. Imports go downward only, and `st` and `store` are strangers to each other.

pub mod archive;
pub mod cli;
pub mod durable;
pub mod ops;
pub mod parallel;
pub mod progress;
mod regular;
pub mod rules;
pub mod st;
pub mod store;
