//! Checks that all objects below a tree exist and are safe. This check is used for tree entries
//! that the format does not define, for snapshots of a newer format, and for snapshots in backups.

use std::collections::HashMap;
use std::rc::Rc;

use crate::archive::layout::{Layout, is_safe};
use crate::archive::problem::Problem;
use crate::archive::{Error, Result};
use crate::store::{Kind, Loss, Mode, ObjectId, Reader};

/// Maximum number of levels in a tree. A snapshot has four levels; a newer format may have more. A
/// deeper tree could exhaust memory.
const MAX_TREE_DEPTH: usize = 32;

/// Function that checks whether an object exists and may be read. Returns the problem, or `None` if
/// there is no problem.
pub(in crate::archive) type Look<'l> = dyn FnMut(ObjectId, Kind) -> Result<Option<Problem>> + 'l;

#[derive(Default)]
pub(in crate::archive) struct Wholes {
    known: HashMap<ObjectId, JudgedTree>,
}

#[derive(Clone)]
struct JudgedTree {
    height: usize,
    problem: Option<Rc<Problem>>,
}

impl JudgedTree {
    /// Records a problem. Only the first problem is recorded, but a problem that forbids reading
    /// the tree replaces an earlier one.
    fn note(&mut self, problem: Rc<Problem>) {
        if self.problem.is_none() || hinders(&problem) {
            self.problem = Some(problem);
        }
    }
}

pub(in crate::archive) fn hinders(problem: &Problem) -> bool {
    matches!(problem, Problem::TooLong { .. } | Problem::TooDeep)
}

impl Wholes {
    /// Checks the objects of tree entries that the format does not define, and adds their problems.
    pub(super) fn look_at_extra(&mut self, layout: &mut Layout<'_>) -> Result<()> {
        for (id, mode) in std::mem::take(&mut layout.notes.extra) {
            if let Some(problem) = self.below(layout.reader, id, mode)? {
                layout.notes.problems.push(problem);
            }
        }
        Ok(())
    }

    pub(super) fn below(
        &mut self,
        reader: &Reader,
        id: ObjectId,
        mode: Mode,
    ) -> Result<Option<Problem>> {
        let mut look = |id, kind| read(reader, id, kind);
        match mode {
            Mode::Folder => self.look(reader, id, &mut look),
            _ if mode.is_blob() => look(id, Kind::Blob),
            _ => Ok(None),
        }
    }

    pub(in crate::archive) fn look(
        &mut self,
        reader: &Reader,
        tree: ObjectId,
        look: &mut Look<'_>,
    ) -> Result<Option<Problem>> {
        let judged = self.judge(reader, tree, look, 0)?;
        Ok(judged.map_or(Some(Problem::TooDeep), |judged| judged.problem.as_deref().cloned()))
    }

    /// Judges a tree that is `depth` levels below the first one. Returns `None` if the first tree
    /// has too many levels. The trees on the way to the last level are then not cached, because
    /// they may be valid elsewhere.
    fn judge(
        &mut self,
        reader: &Reader,
        id: ObjectId,
        look: &mut Look<'_>,
        depth: usize,
    ) -> Result<Option<JudgedTree>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Some(known.clone()));
        }
        if depth == MAX_TREE_DEPTH {
            return Ok(None);
        }
        let mut judged = JudgedTree { height: 1, problem: look(id, Kind::Tree)?.map(Rc::new) };
        let mut entries = Vec::new();
        if judged.problem.is_none() {
            match reader.raw_tree(id) {
                Ok(tree) => {
                    if !tree.is_gits {
                        judged.note(Rc::new(Problem::NotGits { path: format!("tree {id}") }));
                    }
                    entries = tree.entries;
                }
                Err(error) if error.is_loss() => {
                    judged.note(Rc::new(Problem::Lacks { why: error.to_string() }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for entry in entries {
            let name = || String::from_utf8_lossy(&entry.name).into_owned();
            if entry.mode == Mode::Folder {
                let below = self.judge(reader, entry.id, look, depth + 1)?;
                let Some(below) = below else { return Ok(None) };
                judged.height = judged.height.max(below.height + 1);
                below.problem.into_iter().for_each(|problem| judged.note(problem));
            } else if entry.mode.is_blob()
                && let Some(problem) = look(entry.id, Kind::Blob)?
            {
                judged.note(Rc::new(problem));
            }
            if !is_safe(&entry.name) {
                judged.note(Rc::new(Problem::UnsafeName { path: name() }));
            } else if matches!(entry.mode, Mode::Link | Mode::Other) {
                judged.note(Rc::new(Problem::Link { path: name() }));
            }
        }
        if judged.height > MAX_TREE_DEPTH {
            judged.note(Rc::new(Problem::TooDeep));
        }
        self.known.insert(id, judged.clone());
        Ok(Some(judged))
    }
}

fn read(reader: &Reader, id: ObjectId, kind: Kind) -> Result<Option<Problem>> {
    match reader.read(id, kind, &mut Vec::new()) {
        Ok(_) => Ok(None),
        Err(error) if error.is_loss() => Ok(Some(Problem::Lacks { why: error.to_string() })),
        Err(error) => Err(Error::from(error)),
    }
}
