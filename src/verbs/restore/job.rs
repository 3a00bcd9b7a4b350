//! What a restore works on, and how far it goes.

use super::material::Material;
use super::options::{Options, Source};
use crate::engine::Workspace;
use crate::engine::operation::{Held, Operation};
use crate::history::History;
use crate::store::Store;

/// One state that is restored; only read.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub history: &'a History,
    pub options: &'a Options,
    pub source: &'a Source,
    pub material: &'a Material,
    /// The message at which the state is restored.
    pub at: Option<usize>,
}

pub(super) enum Mode<'m, 'a> {
    /// It is only planned.
    Plan,
    /// It is an operation of its own.
    Now(&'m Held),
    /// It is a part of an operation that the caller finishes; files under their own names only.
    Part(&'m mut Operation<'a>),
}
