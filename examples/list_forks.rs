//! Lists the forks of a chat, with the last message that each shares with it.
//!
//! `cargo run --example list_forks -- SILLYTAVERN-FOLDER "Chat name"`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that is run by hand")]

use std::error::Error;
use std::path::Path;

use stvc::Workspace;
use stvc::progress::NoProgress;
use stvc::verbs::timelines::timelines;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(chat)) = (arguments.next(), arguments.next()) else {
        return Err("a SillyTavern folder and the name of a chat are expected".into());
    };
    for (fork, shared) in run(Path::new(&folder), &chat)? {
        println!("{fork}: {shared} messages shared");
    }
    Ok(())
}

/// Returns the names of the forks of a chat, and how many messages each shares with it.
pub fn run(folder: &Path, chat: &str) -> Result<Vec<(String, u64)>, Box<dyn Error>> {
    let workspace = Workspace::at(folder, "list_forks");
    let report = timelines(&workspace, &mut NoProgress)?;
    let is_fork = |parent: Option<&str>| parent == Some(chat);
    let forks = report.timelines.iter().filter_map(|timeline| {
        let parent = timeline.fork.parent.as_ref().map(|parent| parent.chat());
        is_fork(parent)
            .then(|| (timeline.name.chat().to_owned(), timeline.fork.fork_at.unwrap_or(0)))
    });
    Ok(forks.collect())
}
