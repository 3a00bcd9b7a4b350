//! One snapshot's files, for those who want them: judged by the same rules, and read once.

use super::{Says, Wholes, count};
use crate::archive::problem::{Problem, Problems};
use crate::archive::{Contents, Error, Result, Snapshot, Tree};
use crate::store::Reader;

/// The files of a snapshot that can be brought back.
pub struct Rebuilt {
    /// The files, each equal to what was stored.
    pub contents: Contents,
    /// What is wrong with the snapshot all the same; nothing of it is fatal.
    pub problems: Problems,
}

/// Rebuild a snapshot's files. Fails where the verdict of a [`Validator`](super::Validator) would be that they cannot be restored; else it tells what that
/// would tell.
pub fn rebuild(reader: &Reader, snapshot: &Snapshot) -> Result<Rebuilt> {
    let tree = Tree::open(reader, snapshot.tree)?;
    let (contents, mut noticed) = tree.materialise_and_notice(reader)?;
    Wholes::default().look_at_extra(reader, &mut noticed)?;
    let mut problems = noticed.problems;
    let chat = contents.files.split();
    let is_chat = contents.files.timeline.is_chat();
    let split = !is_chat
        || chat.header.is_some() == tree.header().is_some()
            && chat.messages.len() == tree.messages().len();
    if !split {
        problems.push(Problem::NotSplit);
    }
    let messages = chat.message_count() as u64;
    count("manifest", contents.manifest.messages, messages, &mut problems);
    Says::of(&contents.manifest, Some(messages)).compare(snapshot, &mut problems);
    if problems.is_fatal() {
        return Err(Error::Unsound { id: snapshot.id, problems: Box::new(problems) });
    }
    Ok(Rebuilt { contents, problems })
}
