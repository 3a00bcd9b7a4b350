//! What the story knew, and since when: `lore`, held against a writer who knows what he did.

mod questions;
mod truth;
