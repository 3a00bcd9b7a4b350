//! Answers requests.

use serde::Serialize;
use serde_json::value::RawValue;

use super::background_jobs::BackgroundJobs;
use super::request::{
    Arguments, Backup, Doctor, Log, Page, Refusal, Request, Rights, Show, Sync, Tag,
};
use crate::archive::diff::Change;
use crate::engine::Workspace;
use crate::engine::copies::last_sync;
use crate::json_output::answers;
use crate::json_output::{ErrorLine, Line, Summary};
use crate::progress::NoProgress;
use crate::verbs::diff::Comparison;
use crate::verbs::timelines::graph;
use crate::verbs::{
    self, Result, backup, diff, doctor, log, lore, message_versions, names, operations, picture,
    read, restore, search, show, snapshot, sync, tag, timelines, undo,
};

/// The answer to a request: the lines that `--json` prints, and the exit code.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    /// Objects as `--json` prints them. The last one is the summary, or an error.
    pub lines: Vec<Box<RawValue>>,
    /// The exit code that the command line would return.
    pub exit: u8,
    /// The index at which the next page begins, or `None` on the last page.
    pub next: Option<usize>,
}

/// Serves a request. If the request fails, the answer contains the error. `jobs` are the
/// backup and the sync that an earlier request started.
pub fn serve(
    workspace: &Workspace,
    request: &Request,
    rights: Rights,
    jobs: &BackgroundJobs,
) -> Answer {
    let mut answer = Answer::default();
    if request.verb.needs > rights {
        let refusal = Refusal::ReadOnly { verb: request.verb.name };
        return Answer::refused(&refusal);
    }
    match answer.fill(workspace, request, jobs) {
        Ok(()) => {
            for notice in workspace.take_notices() {
                answer.add(Line::Finding(&notice));
            }
            answer
        }
        Err(error) => Answer::failed(&error),
    }
}

impl Answer {
    /// Returns the answer to a refused request.
    pub fn refused(refusal: &Refusal) -> Self {
        let (message, exit) = (refusal.to_string(), refusal.exit());
        let hint = refusal.hint().map(str::to_owned);
        let mut answer = Self { exit, ..Self::default() };
        let code = refusal.into();
        answer.add(Line::Error(ErrorLine { code, message, hint, exit, ..ErrorLine::default() }));
        answer
    }

    fn failed(error: &verbs::Error) -> Self {
        let line = ErrorLine::from(error);
        let mut answer = Self { exit: line.exit, ..Self::default() };
        error.findings().iter().for_each(|it| answer.add(Line::Finding(it)));
        answer.add(Line::Error(line));
        answer
    }

    /// Returns the answer to `diff`: a page of these changes, or only their number.
    pub(super) fn of_comparison(
        comparison: &Comparison,
        changes: Vec<Change<'_>>,
        stat: bool,
        page: Page,
    ) -> Self {
        let (total, listed) = (changes.len(), page.first..page.end());
        let mut answer = Self::default();
        answer.add_answer(&answers::Diffed { comparison, changes, stat, listed });
        answer.more_than(page, if stat { 0 } else { total });
        answer
    }

    fn add(&mut self, line: Line<'_>) {
        self.lines.extend(serde_json::value::to_raw_value(&line).ok());
    }

    fn add_answer(&mut self, answer: &impl answers::Answer) {
        answer.lines(&mut |line| self.add(line));
        self.end(answer.summary(), answer.exit());
    }

    fn page(&mut self, answer: &impl answers::Answer, page: Page) {
        let mut n = 0;
        answer.lines(&mut |line| {
            if (page.first..page.end()).contains(&n) {
                self.add(line);
            }
            n += 1;
        });
        self.more_than(page, n);
        self.end(answer.summary(), answer.exit());
    }

    fn end(&mut self, summary: Summary, exit: u8) {
        self.add(Line::Summary(summary));
        self.exit = exit;
    }

    fn fill(
        &mut self,
        workspace: &Workspace,
        request: &Request,
        jobs: &BackgroundJobs,
    ) -> Result<()> {
        let page = request.page;
        match request.asked.clone() {
            asked @ (Arguments::Library(_) | Arguments::Timelines(_) | Arguments::Status(_)) => {
                let report = timelines::timelines(workspace, &mut NoProgress)?;
                if matches!(asked, Arguments::Library(_)) {
                    report.last_backup.iter().for_each(|last| self.add(Line::Copy(last.into())));
                    last_sync::last(workspace)?.iter().for_each(|it| self.add(Line::LastSync(it)));
                }
                let command = request.verb.name;
                self.add_answer(&answers::Timelines { command, report: &report });
            }
            Arguments::Groups(_) => self.add_answer(&names::groups(workspace)),
            Arguments::Graph(options) => {
                let options = graph::Options { lanes: Some(page.first..page.end()), ..options };
                let report = graph::graph(workspace, &options, &mut NoProgress)?;
                self.add_answer(&report);
                self.more_than(page, report.total);
            }
            Arguments::Log(Log { timeline: Some(timeline), message: Some(message) }) => {
                let limit = Some(page.end());
                let options = message_versions::Options { timeline, message, limit };
                self.add_answer(&message_versions::message_versions(workspace, &options)?);
            }
            Arguments::Log(Log { timeline, .. }) => {
                let options =
                    log::Options { timeline, limit: Some(page.end()), ..Default::default() };
                let report = log::log(workspace, &options)?;
                self.page(&report, page);
                self.more_than(page, report.total);
            }
            Arguments::Show(Show { snapshot, brief: true }) => {
                self.add_answer(&show::brief(workspace, &snapshot)?)
            }
            Arguments::Show(Show { snapshot, .. }) => {
                self.add_answer(&show::show(workspace, &snapshot)?)
            }
            Arguments::Messages(options) => {
                let messages = Some(page.first..=page.end() - 1);
                let report = read::read(workspace, &read::Options { messages, ..options })?;
                self.add_answer(&report);
                self.more_than(page, report.total);
            }
            Arguments::Picture(options) => {
                self.add_answer(&picture::attachment(workspace, &options)?);
            }
            Arguments::Portrait(options) => {
                self.add_answer(&picture::portrait(workspace, &options)?);
            }
            Arguments::Lore(options) => {
                let options = lore::Options {
                    limit: Some(Page::MAX_LINES),
                    entries: Some(page.first..page.end()),
                    ..options
                };
                let report = lore::lore(workspace, &options, &mut NoProgress)?;
                self.add_answer(&answers::Lore { command: "lore", report: &report });
                if let lore::Report::Then(then) = &report {
                    self.more_than(page, then.total);
                }
            }
            Arguments::Diff(options) => {
                let comparison = diff::diff(workspace, &options)?;
                let changes = comparison.changes(options.only);
                *self = Self::of_comparison(&comparison, changes, options.stat, page);
            }
            Arguments::Search(options) => {
                let options = search::Options { limit: Some(page.end()), ..options };
                let report = search::search(workspace, &options, &mut NoProgress)?;
                self.page(&report, page);
                self.next = report.more.then_some(page.end());
            }
            Arguments::Operations(_) => {
                let limit = page.end().saturating_add(1);
                self.page(&operations::operations(workspace, Some(limit))?, page);
            }
            Arguments::Doctor(Doctor { timelines }) => {
                let options = doctor::Options { timelines, ..Default::default() };
                self.add_answer(&doctor::doctor(workspace, &options, &mut NoProgress)?)
            }
            Arguments::Repair(asked) => {
                let (repair, fixed) = doctor::repair(workspace, &asked, &mut NoProgress)?;
                self.add_answer(&answers::Repaired { repair: &repair, fixed: &fixed });
            }
            Arguments::Snapshot(options) => {
                let report = snapshot::snapshot(workspace, &options, &mut NoProgress)?;
                self.add_answer(&answers::Snapshots { report: &report, dry_run: options.dry_run });
            }
            Arguments::Tag(Tag { name, snapshot }) => {
                let options = match snapshot {
                    Some(snapshot) => tag::Options::Add { name, snapshot, lead: false },
                    None => tag::Options::Delete { name },
                };
                self.add_answer(&tag::tag(workspace, &options)?);
            }
            Arguments::Restore(asked) => {
                let options: restore::Options = asked.try_into()?;
                self.add_answer(&restore::restore(workspace, &options, &mut NoProgress)?);
            }
            Arguments::Undo(options) => self.add_answer(&undo::undo(workspace, &options)?),
            Arguments::Backup(Backup { running }) => {
                let workspace = workspace.clone();
                let backup = move || backup::again(&workspace, &mut NoProgress);
                self.add_answer(&jobs.backup.wait((!running).then_some(backup))?);
            }
            Arguments::Sync(Sync { running, closed }) => {
                let workspace = workspace.clone();
                let sync = move || sync::again(&workspace, closed, &mut NoProgress);
                self.add_answer(&jobs.sync.wait((!running).then_some(sync))?);
            }
        }
        Ok(())
    }

    fn more_than(&mut self, page: Page, total: usize) {
        self.next = (total > page.end()).then_some(page.end());
    }
}
