//! Checks the library: every chat and lorebook, alone and together; and repairs problems where that
//! is safe.
//!
//! [`doctor()`] reads and plans; [`fix()`] carries out chosen repairs. A plan names files, not
//! their bytes: those are read again under the store's lock, and a file that differs from the plan
//! is left alone.

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

/// Timelines to check, and choices for repairs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Empty: the whole library.
    pub timelines: Vec<String>,
    /// `None`: restore stored versions.
    pub missing: Option<Missing>,
    /// Also remove unused lorebooks that may be meant for later.
    pub orphans: bool,
    /// The group of chats for which it is unknown, by its name or file name.
    pub group: Option<String>,
}

/// The replacement of a missing lorebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Empty,
    /// Copy the lorebook of the parent chat.
    Clone,
    CloneOf(String),
    /// Unbind the chat from it.
    Detach,
}

/// Findings, and possible repairs.
pub struct Report {
    pub timelines: usize,
    pub lorebooks: usize,
    /// Worst first.
    pub findings: Vec<Finding>,
    pub repairs: Vec<Repair>,
    /// Problems with several repairs, one of which somebody has to choose.
    pub undecided: Vec<Undecided>,
}

impl Report {
    /// Returns the findings that remain after these repairs.
    pub fn left<'r>(&'r self, done: &[&Repair]) -> Vec<&'r Finding> {
        let is_left = |finding: &&Finding| !done.iter().any(|repair| repair.mends(finding));
        self.findings.iter().filter(is_left).collect()
    }
}

/// Examines the library. Nothing is written.
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
        // A chat without a lorebook is allowed, and only reported to those who ask about the chat.
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
        // The forks may be others than the named ones.
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
    // Problems of a lorebook are found once for every chat that uses it.
    findings.dedup();
    let timelines = if only.is_empty() { here.len() } else { only.len() };
    Ok(Report { timelines, lorebooks: examined.lorebooks, findings, repairs, undecided })
}

fn books_of<'e>(examined: &'e Examined, names: &BTreeSet<TimelineName>) -> Vec<&'e LibraryPath> {
    let timelines = examined.facts.timelines.iter();
    let chosen = timelines.filter(|timeline| names.contains(&timeline.name));
    chosen.filter_map(|timeline| timeline.book.as_ref()?.path.as_ref()).collect()
}
