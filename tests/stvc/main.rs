//! What stvc does, seen from outside: one file a subject.

mod common;

mod docs;
mod layers;
