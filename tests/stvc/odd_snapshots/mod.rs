//! What is judged, is judged once: whatever is odd about a snapshot, `check`, `show`, `restore`, `backup` and `import` say the same of it, and the others come in.

mod copies;
mod store;
mod verdicts;

use crate::common::Answer;
use crate::common::forged_snapshot::Forge;

#[track_caller]
fn exits(answer: &Answer, code: i32, what: &str) {
    assert_eq!(answer.code, code, "{what}\n{}\n{}", answer.stdout, answer.stderr);
}

type Case<'c> = (&'c str, &'c dyn Fn(&mut Forge));
