//! Moments: their grammar, and the pair of chat and lorebook that each means in every command.

mod after_commands;
mod grammar;
mod model;
mod pairs;
mod renamed;
mod story;
