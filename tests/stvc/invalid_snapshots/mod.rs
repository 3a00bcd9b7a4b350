//! One verdict per snapshot: `check`, `show`, `restore`, `backup` and `import` report the same of
//! an invalid snapshot, and the others are imported.

mod copies;
mod store;
mod verdicts;

use crate::common::Answer;
use crate::common::forged_snapshot::ForgedSnapshot;

#[track_caller]
fn exits(answer: &Answer, code: i32, what: &str) {
    assert_eq!(answer.code, code, "{what}\n{}\n{}", answer.stdout, answer.stderr);
}

type Case<'c> = (&'c str, &'c dyn Fn(&mut ForgedSnapshot));
