//! Are the library's timelines sound? Every chat and every lorebook is looked at, alone and together, and what can be repaired safely is.
//!
//! [`doctor()`] reads and plans; [`fix()`] does what was chosen of the plan. A plan names files and not their bytes: those are read anew under the
//! store's lock, and what does not fit the plan any more is left alone.

mod examine;
mod fix;
mod repairs;
mod unlisted;

use std::collections::BTreeSet;

use crate::engine::Workspace;
use crate::history::name_lookup;
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{LibraryPath, TimelineName};
use crate::verbs::Result;
use examine::Examined;

pub use fix::{Fixed, fix};
pub use repairs::{Repair, Undecided};

/// What to look at, and how to repair.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these timelines; none: the whole library.
    pub timelines: Vec<String>,
    /// What to do about missing lorebooks; not given: bring back what the store has.
    pub missing: Option<Missing>,
    /// Also remove unused lorebooks that may be meant for later.
    pub orphans: bool,
    /// The group, by its name or its file's, to which group chats belong of which that is not known.
    pub group: Option<String>,
}

/// What to do about a missing lorebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make an empty one.
    Empty,
    /// Copy that of the chat it was forked from.
    Clone,
    /// Copy this one.
    CloneOf(String),
    /// Let the chat go without.
    Detach,
}

/// What was found, and what can be done about it.
pub struct Report {
    /// How many timelines were looked at.
    pub timelines: usize,
    /// How many lorebooks there are.
    pub lorebooks: usize,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
    /// What can be repaired.
    pub repairs: Vec<Repair>,
    /// What can be repaired in several ways, of which somebody has to choose one.
    pub undecided: Vec<Undecided>,
}

impl Report {
    /// What is left of the findings once these repairs are done.
    pub fn left<'r>(&'r self, done: &[&Repair]) -> Vec<&'r Finding> {
        let is_left = |finding: &&Finding| !done.iter().any(|repair| repair.mends(finding));
        self.findings.iter().filter(is_left).collect()
    }
}

/// Look at the library. Nothing is written.
pub fn doctor(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let here: BTreeSet<_> = scan.chats.iter().cloned().collect();
    let named = options.timelines.iter();
    let only: Result<BTreeSet<_>> =
        named.map(|text| Ok(name_lookup::timeline(text, Some(&library), &here)?)).collect();
    let only = only?;
    let store = workspace.find_store()?;
    let mut examined = examine::examine(&library, scan, store.as_ref(), &only, monitor)?;
    let facts = &examined.facts;
    let mut findings = rules::library(facts);
    findings.extend(examined.unlisted.iter().map(unlisted::Unlisted::finding));
    let (mut repairs, mut undecided) = repairs::plan(&library, &examined, options)?;
    if only.is_empty() {
        // What is allowed is told only to who asks about the chat.
        findings.retain(|finding| finding.code != Code::LorebookNone);
    } else {
        let books = books_of(&examined, &only);
        let is_about = |subject: &str| {
            only.iter().any(|name| name.as_str() == subject)
                || books.iter().any(|book| book.as_str() == subject)
        };
        findings.retain(|finding| is_about(&finding.subject));
        repairs.retain(|repair| is_about(&repair.subject));
        undecided.retain(|book| book.users.iter().any(|user| only.contains(user)));
        // The forks may be others than those that were named.
        let is_shared = |finding: &&mut Finding| finding.code == Code::LorebookShared;
        if !repairs.iter().any(|repair| repair.code == Code::LorebookShared) {
            for finding in findings.iter_mut().filter(is_shared) {
                let remedy = "`stvc doctor` without a name says what can be done for each of them";
                finding.remedy = Some(remedy.into());
            }
        }
    }
    findings.append(&mut examined.findings);
    for finding in &mut findings {
        if let Some(repair) = repairs.iter().find(|repair| repair.mends(finding)) {
            repair.advise(finding);
        }
    }
    let key = |finding: &Finding| (std::cmp::Reverse(finding.level), finding.code.as_str());
    findings
        .sort_by(|a, b| (key(a), &a.subject, &a.message).cmp(&(key(b), &b.subject, &b.message)));
    // What is wrong with a lorebook is found once for every chat that uses it.
    findings.dedup();
    let timelines = if only.is_empty() { here.len() } else { only.len() };
    Ok(Report { timelines, lorebooks: examined.lorebooks, findings, repairs, undecided })
}

/// The lorebooks that these timelines are bound to.
fn books_of<'e>(examined: &'e Examined, names: &BTreeSet<TimelineName>) -> Vec<&'e LibraryPath> {
    let timelines = examined.facts.timelines.iter();
    let chosen = timelines.filter(|timeline| names.contains(&timeline.name));
    chosen.filter_map(|timeline| timeline.book.as_ref()?.path.as_ref()).collect()
}
