//! `lore`: the history of lorebook entries, compared with a model of a writer.

mod attribution;
mod identity;
mod model;
mod questions;
