//! From a request to its answer.

use serde::Serialize;
use serde_json::value::RawValue;

use super::request::{Asked, Log, Page, Refusal, Request, Rights, Tag};
use crate::engine::Workspace;
use crate::lines::answers;
use crate::lines::{ErrorLine, Line, Summary};
use crate::progress::Silent;
use crate::verbs::timelines::graph;
use crate::verbs::{
    self, Result, diff, doctor, log, lore, message_versions, operations, read, restore, search,
    show, snapshot, tag, timelines, undo,
};

/// The lines of `--json`, and the exit code.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    pub lines: Vec<Box<RawValue>>,
    pub exit: u8,
    /// Where the next page begins, if there is more.
    pub next: Option<usize>,
}

/// Serves a request. Errors are answers, too.
pub fn serve(workspace: &Workspace, request: &Request, rights: Rights) -> Answer {
    let mut answer = Answer::default();
    if request.verb.needs > rights {
        let refusal = Refusal::ReadOnly { verb: request.verb.name };
        return Answer::refused(&refusal);
    }
    match answer.fill(workspace, request) {
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
    /// The answer to a request that is not served.
    pub fn refused(refusal: &Refusal) -> Self {
        let (message, exit) = (refusal.to_string(), refusal.exit());
        let hint = refusal.hint().map(str::to_owned);
        let mut answer = Self { exit, ..Self::default() };
        answer.add(Line::Error(ErrorLine { message, hint, exit, ..ErrorLine::default() }));
        answer
    }

    fn failed(error: &verbs::Error) -> Self {
        let line = ErrorLine::from(error);
        let mut answer = Self { exit: line.exit, ..Self::default() };
        if let verbs::Error::Engine(crate::engine::Error::Refused { findings }) = error {
            findings.iter().for_each(|it| answer.add(Line::Finding(it)));
        }
        answer.add(Line::Error(line));
        answer
    }

    fn add(&mut self, line: Line<'_>) {
        self.lines.extend(serde_json::value::to_raw_value(&line).ok());
    }

    fn tell(&mut self, answer: &impl answers::Answer) {
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

    fn fill(&mut self, workspace: &Workspace, request: &Request) -> Result<()> {
        let page = request.page;
        match request.asked.clone() {
            Asked::Library(_) => {
                let report = timelines::timelines(workspace, &mut Silent)?;
                report.last_backup.iter().for_each(|last| self.add(Line::Copy(last.into())));
                self.tell(&answers::Timelines { command: "library", report: &report });
            }
            Asked::Timelines(_) | Asked::Status(_) => {
                let report = timelines::timelines(workspace, &mut Silent)?;
                self.tell(&answers::Timelines { command: request.verb.name, report: &report });
            }
            Asked::Graph(options) => {
                let options = graph::Options { lanes: Some(page.first..page.end()), ..options };
                let report = graph::graph(workspace, &options, &mut Silent)?;
                self.tell(&report);
                self.more_than(page, report.total);
            }
            Asked::Log(Log { timeline: Some(timeline), message: Some(message) }) => {
                let limit = Some(page.end());
                let options = message_versions::Options { timeline, message, limit };
                self.tell(&message_versions::message_versions(workspace, &options)?);
            }
            Asked::Log(Log { timeline, .. }) => {
                let options =
                    log::Options { timeline, limit: Some(page.end()), ..Default::default() };
                let report = log::log(workspace, &options)?;
                self.page(&report, page);
                self.more_than(page, report.total);
            }
            Asked::Show(asked) => self.tell(&show::show(workspace, &asked.snapshot)?),
            Asked::Messages(options) => {
                let messages = Some(page.first..=page.end() - 1);
                let report = read::read(workspace, &read::Options { messages, ..options })?;
                self.tell(&report);
                self.more_than(page, report.total);
            }
            Asked::Lore(options) => {
                let options = lore::Options {
                    limit: Some(Page::LONGEST),
                    entries: Some(page.first..page.end()),
                    ..options
                };
                let report = lore::lore(workspace, &options, &mut Silent)?;
                self.tell(&answers::Lore { command: "lore", report: &report });
                if let lore::Report::Then(then) = &report {
                    self.more_than(page, then.total);
                }
            }
            Asked::Diff(options) => {
                let comparison = diff::diff(workspace, &options)?;
                let (changes, stat) = (comparison.changes(options.only), options.stat);
                self.tell(&answers::Diffed { comparison: &comparison, changes, stat });
            }
            Asked::Search(options) => {
                let options = search::Options { limit: Some(page.end()), ..options };
                let report = search::search(workspace, &options, &mut Silent)?;
                self.page(&report, page);
                self.next = report.more.then_some(page.end());
            }
            Asked::Operations(_) => {
                let limit = page.end().saturating_add(1);
                self.page(&operations::operations(workspace, Some(limit))?, page);
            }
            Asked::Doctor(_) => {
                self.tell(&doctor::doctor(workspace, &Default::default(), &mut Silent)?)
            }
            Asked::Snapshot(options) => {
                let report = snapshot::snapshot(workspace, &options, &mut Silent)?;
                self.tell(&answers::Snapshots { report: &report, dry_run: options.dry_run });
            }
            Asked::Tag(Tag { name, snapshot }) => {
                let options = match snapshot {
                    Some(snapshot) => tag::Options::Add { name, snapshot, lead: false },
                    None => tag::Options::Delete { name },
                };
                self.tell(&tag::tag(workspace, &options)?);
            }
            Asked::Restore(asked) => {
                let options: restore::Options = asked.try_into()?;
                self.tell(&restore::restore(workspace, &options, &mut Silent)?);
            }
            Asked::Undo(options) => self.tell(&undo::undo(workspace, &options)?),
        }
        Ok(())
    }

    fn more_than(&mut self, page: Page, total: usize) {
        self.next = (total > page.end()).then_some(page.end());
    }
}
