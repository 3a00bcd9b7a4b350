//! Moments: how they are written, and that each is one pair of chat and lorebook for every command.

mod after_commands;
mod grammar;
mod model;
mod pairs;
mod renamed;
mod story;
