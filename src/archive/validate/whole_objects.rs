//! Checks that all objects below a tree exist and are safe. This check is used for tree entries
//! that the format does not define, for snapshots of a newer format, and for snapshots in backups.

use std::collections::HashMap;
use std::rc::Rc;

use crate::archive::layout::{LayoutNotes, is_safe};
use crate::archive::problem::Problem;
use crate::archive::{Error, Result};
use crate::store::{Kind, Loss, Mode, ObjectId, Reader, TreeEntry};

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

struct OpenTree {
    id: ObjectId,
    entries: Vec<TreeEntry>,
    at: usize,
    known: JudgedTree,
}

impl Wholes {
    /// Checks the objects of tree entries that the format does not define, and adds their problems.
    pub(super) fn look_at_extra(
        &mut self,
        reader: &Reader,
        noticed: &mut LayoutNotes,
    ) -> Result<()> {
        for (id, mode) in std::mem::take(&mut noticed.extra) {
            if let Some(problem) = self.below(reader, id, mode)? {
                noticed.problems.push(problem);
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
        let mut path = Vec::new();
        self.enter(reader, tree, look, &mut path)?;
        while let Some(open) = path.last_mut() {
            let Some(entry) = open.entries.get(open.at) else {
                self.leave(&mut path);
                continue;
            };
            let name = || String::from_utf8_lossy(&entry.name).into_owned();
            if entry.mode == Mode::Folder {
                if let Some(below) = self.known.get(&entry.id) {
                    open.known.height = open.known.height.max(below.height + 1);
                    if let Some(problem) = &below.problem {
                        open.known.note(Rc::clone(problem));
                    }
                } else {
                    let id = entry.id;
                    self.enter(reader, id, look, &mut path)?;
                    continue;
                }
            } else if entry.mode.is_blob()
                && let Some(problem) = look(entry.id, Kind::Blob)?
            {
                open.known.note(Rc::new(problem));
            }
            if !is_safe(&entry.name) {
                open.known.note(Rc::new(Problem::UnsafeName { path: name() }));
            } else if matches!(entry.mode, Mode::Link | Mode::Other) {
                open.known.note(Rc::new(Problem::Link { path: name() }));
            }
            open.at += 1;
        }
        let problem = self.known.get(&tree).and_then(|known| known.problem.as_deref());
        Ok(problem.cloned())
    }

    /// Opens a tree and adds it to `path`, unless the tree is known or cannot be read.
    fn enter(
        &mut self,
        reader: &Reader,
        id: ObjectId,
        look: &mut Look<'_>,
        path: &mut Vec<OpenTree>,
    ) -> Result<()> {
        if self.known.contains_key(&id) {
            return Ok(());
        }
        let mut known = JudgedTree { height: 1, problem: None };
        if let Some(problem) = look(id, Kind::Tree)? {
            known.note(Rc::new(problem));
            self.known.insert(id, known);
            return Ok(());
        }
        match reader.raw_tree(id) {
            Ok(tree) => {
                if !tree.is_gits {
                    known.note(Rc::new(Problem::NotGits { path: format!("tree {id}") }));
                }
                path.push(OpenTree { id, entries: tree.entries, at: 0, known });
            }
            Err(error) if error.is_loss() => {
                known.note(Rc::new(Problem::Lacks { why: error.to_string() }));
                self.known.insert(id, known);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn leave(&mut self, path: &mut Vec<OpenTree>) {
        let Some(OpenTree { id, mut known, .. }) = path.pop() else { return };
        if known.height > MAX_TREE_DEPTH {
            known.note(Rc::new(Problem::TooDeep));
        }
        self.known.insert(id, known);
    }
}

fn read(reader: &Reader, id: ObjectId, kind: Kind) -> Result<Option<Problem>> {
    match reader.read(id, kind, &mut Vec::new()) {
        Ok(_) => Ok(None),
        Err(error) if error.is_loss() => Ok(Some(Problem::Lacks { why: error.to_string() })),
        Err(error) => Err(Error::from(error)),
    }
}
