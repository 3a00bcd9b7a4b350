//! How far a restore goes.

use crate::engine::operation::{Held, Operation};

pub(super) enum Mode<'m, 'a> {
    /// It is only planned.
    Plan,
    /// It is an operation of its own.
    Now(&'m Held),
    /// It is a part of an operation that somebody else finishes; files under their own names only.
    Part(&'m mut Operation<'a>),
}
