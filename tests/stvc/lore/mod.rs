//! What the story knew, and since when: `lore`, held against a writer who knows what he did.

mod attribution;
mod identity;
mod questions;
mod truth;
