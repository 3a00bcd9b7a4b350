//! Creates a snapshot of one chat, as a program would after SillyTavern saved it.
//!
//! `cargo run --example snapshot_after_save -- SILLYTAVERN-FOLDER "Chat name"`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that is run by hand")]

use std::error::Error;
use std::path::Path;

use stvc::Workspace;
use stvc::progress::NoProgress;
use stvc::verbs::snapshot::{Options, SnapshotResult, Subject, snapshot};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(chat)) = (arguments.next(), arguments.next()) else {
        return Err("a SillyTavern folder and the name of a chat are expected".into());
    };
    println!("{}", run(Path::new(&folder), &chat)?);
    Ok(())
}

/// Returns one line about the snapshot, which includes the chat's lorebook.
pub fn run(folder: &Path, chat: &str) -> Result<String, Box<dyn Error>> {
    let workspace = Workspace::at(folder, "snapshot_after_save");
    let options = Options { subject: Subject::Named(vec![chat.to_owned()]), ..Options::default() };
    let report = snapshot(&workspace, &options, &mut NoProgress)?;
    for finding in &report.findings {
        eprintln!("{}: {}", finding.subject, finding.message);
    }
    let taken = report.timelines.iter().find(|taken| taken.timeline.is_chat());
    Ok(match taken.map(|taken| &taken.result) {
        Some(SnapshotResult::New(snapshot, _)) => format!("{}: new", snapshot.id),
        Some(SnapshotResult::Unchanged(snapshot, _)) => format!("{}: unchanged", snapshot.id),
        Some(SnapshotResult::Failed(why)) => why.clone(),
        _ => "no snapshot was created".to_owned(),
    })
}
