//! Checks each chat and lorebook of the library and the references between them, and repairs
//! problems where a repair is safe.
//!
//! [`doctor()`] examines the library and plans repairs. [`fix()`] carries out chosen repairs. A
//! plan contains the names of files, but not their content. [`fix()`] reads the files again under
//! the store's lock, and does not change a file that no longer matches the plan.

mod examine;
mod fix;
mod repairs;
mod unlisted;

use std::collections::BTreeSet;

use crate::engine::Workspace;
use crate::engine::files::ChatOpenState;
use crate::history::{self, name_lookup};
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{LibraryPath, TimelineName};
use crate::verbs::{Error, Result};
use examine::Examination;

pub use fix::{FixReport, fix};
pub use repairs::{Repair, Undecided};

/// The timelines to check, and choices for repairs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the timelines. An empty list selects all timelines.
    pub timelines: Vec<String>,
    /// Replacement for missing lorebooks. `None` restores the stored versions.
    pub missing: Option<MissingBookRepair>,
    /// Remove all unused lorebooks. If false, only the lorebooks of deleted chats are removed,
    /// because the user may need other unused lorebooks later.
    pub orphans: bool,
    /// Name or file name of the group to use for chats whose group cannot be determined.
    pub group: Option<String>,
}

/// The replacement of a missing lorebook.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingBookRepair {
    /// Create a lorebook without entries.
    Empty,
    /// Copy the lorebook of the parent chat.
    Clone,
    /// Copy this lorebook.
    CloneOf(String),
    /// Unbind the chat from the missing lorebook.
    Detach,
}

/// Findings, and possible repairs.
#[non_exhaustive]
pub struct Report {
    /// Number of timelines that were examined.
    pub timelines: usize,
    /// Number of lorebooks that were examined.
    pub lorebooks: usize,
    /// Most severe first.
    pub findings: Vec<Finding>,
    /// Repairs that need no decision.
    pub repairs: Vec<Repair>,
    /// Problems with several possible repairs, from which the user has to choose.
    pub undecided: Vec<Undecided>,
}

impl Report {
    /// Returns all repairs, and for those from which the user has to choose, what each of them
    /// does.
    pub fn possible_repairs(&self) -> impl Iterator<Item = (&Repair, Option<&MissingBookRepair>)> {
        let ways = self.undecided.iter().flat_map(|book| &book.ways);
        let ways = ways.flat_map(|(way, repairs)| repairs.iter().map(move |it| (it, Some(way))));
        self.repairs.iter().map(|repair| (repair, None)).chain(ways)
    }

    /// Returns the findings that the repairs in `done` do not resolve.
    pub fn left<'r>(&'r self, done: &[&Repair]) -> Vec<&'r Finding> {
        let is_left =
            |finding: &&Finding| !done.iter().any(|repair| repair.repairs_finding(finding));
        self.findings.iter().filter(is_left).collect()
    }
}

/// Examines the library and plans repairs. Nothing is written.
pub fn doctor(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let here: BTreeSet<_> = scan.chats.iter().cloned().collect();
    let store = workspace.find_store()?;
    let history = || workspace.history_if_any(store.as_ref());
    let find = |text: &String| name_lookup::timeline(text, Some(&library), &here, history);
    let only: history::Result<BTreeSet<_>> = options.timelines.iter().map(find).collect();
    let only = only?;
    let mut examined = examine::examine(&library, scan, store.as_ref(), &only, monitor)?;
    let facts = &examined.facts;
    let mut findings = rules::library(facts);
    findings.extend(examined.unlisted.iter().map(unlisted::Unlisted::finding));
    let (mut repairs, mut undecided) = repairs::plan(&library, &examined, options)?;
    if only.is_empty() {
        // Many chats need no lorebook, so the lack of a lorebook is reported only for named chats.
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
        // The repairs belong to the forks that share the lorebook, and the user may have named
        // other timelines.
        let is_shared = |finding: &&mut Finding| finding.code == Code::LorebookShared;
        if !repairs.iter().any(|repair| repair.code == Code::LorebookShared) {
            for finding in findings.iter_mut().filter(is_shared) {
                let remedy = "run `stvc doctor` without a name to see the repairs for each chat";
                finding.remedy = Some(remedy.into());
            }
        }
    }
    findings.append(&mut examined.findings);
    for finding in &mut findings {
        if let Some(repair) = repairs.iter().find(|repair| repair.repairs_finding(finding)) {
            repair.advise(finding);
        }
    }
    let key = |finding: &Finding| (std::cmp::Reverse(finding.level), finding.code.as_str());
    findings
        .sort_by(|a, b| (key(a), &a.subject, &a.message).cmp(&(key(b), &b.subject, &b.message)));
    // A problem of a lorebook is found once for each chat that uses the lorebook.
    findings.dedup();
    let timelines = if only.is_empty() { here.len() } else { only.len() };
    Ok(Report { timelines, lorebooks: examined.lorebooks, findings, repairs, undecided })
}

/// A planned repair that the user confirmed.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct ConfirmedRepair {
    /// The timelines that were examined. An empty list selects all timelines.
    #[serde(default)]
    pub timelines: Vec<String>,
    /// The description of the repair in the plan. It names the files and the snapshot to use, so it
    /// identifies the repair.
    pub what: String,
    /// Whether SillyTavern's page has the files in memory.
    #[serde(flatten)]
    pub closed: ChatOpenState,
}

/// Carries out one repair that an earlier plan listed, unless the library changed so that the
/// repair is no longer planned.
pub fn repair(
    workspace: &Workspace,
    asked: &ConfirmedRepair,
    monitor: &mut dyn Monitor,
) -> Result<(Repair, FixReport)> {
    let options = Options { timelines: asked.timelines.clone(), ..Options::default() };
    let report = doctor(workspace, &options, monitor)?;
    let mut chosen = report.possible_repairs().map(|(repair, _)| repair);
    let chosen = chosen.find(|repair| repair.what == asked.what).cloned();
    let chosen = chosen.ok_or_else(|| Error::NotPlanned { what: asked.what.clone() })?;
    let fixed = fix(workspace, &[&chosen], asked.closed, monitor)?;
    Ok((chosen, fixed))
}

fn books_of<'e>(examined: &'e Examination, names: &BTreeSet<TimelineName>) -> Vec<&'e LibraryPath> {
    let timelines = examined.facts.timelines.iter();
    let chosen = timelines.filter(|timeline| names.contains(&timeline.name));
    chosen.filter_map(|timeline| timeline.book.as_ref()?.path.as_ref()).collect()
}
