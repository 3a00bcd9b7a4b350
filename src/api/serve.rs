//! From a request to its answer.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::request::{self, Refusal, Request};
use crate::archive::Role;
use crate::archive::diff::Part;
use crate::engine::Workspace;
use crate::engine::files::{Closed, Leave};
use crate::engine::gate::{GatePolicy, SceneRule, Wait};
use crate::lines::answers::{self, DiffCounts};
use crate::lines::{CopyLine, ErrorLine, Line, Summary, exit};
use crate::progress::Silent;
use crate::verbs::restore::{Overwrite, Target, Until};
use crate::verbs::{self, Result};

/// What a front end may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    Read,
    Change,
}

/// What is answered: the lines of `--json`, and the exit code.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    pub lines: Vec<Box<RawValue>>,
    pub exit: u8,
    /// Where the next page begins, if there is more.
    pub next: Option<usize>,
}

/// So many seconds a request waits for a queue at most: requests are served one after the other.
const LONGEST_WAIT: u64 = 10;

/// A page is at most so long.
const LONGEST_PAGE: usize = 1000;

/// Serve what was asked. Whatever goes wrong is an answer, too.
pub fn serve(workspace: &Workspace, request: &Request, rights: Rights) -> Answer {
    let mut answer = Answer::default();
    if request.changes() && rights == Rights::Read {
        let refusal = Refusal::ReadOnly { verb: request.verb() };
        return Answer::refused(&refusal);
    }
    match answer.fill(workspace, request) {
        Ok(()) => {
            for notice in workspace.take_notices() {
                answer.add(&notice);
            }
            answer
        }
        Err(error) => Answer::failed(&error),
    }
}

impl Answer {
    /// A request that is not served.
    pub fn refused(refusal: &Refusal) -> Self {
        let (message, candidates) = (refusal.to_string(), Vec::new());
        let hint = match refusal {
            Refusal::Protocol { .. } => {
                Some("`stvc extension update`, then reload SillyTavern's page".to_owned())
            }
            Refusal::Session { .. } => Some(
                "send it again with the \"session\" of this answer; if nobody sent it, nothing was done"
                    .to_owned(),
            ),
            Refusal::Unwritable { .. } => Some("`stvc operations` says what was done".to_owned()),
            Refusal::BrokeDown { .. } => Some(
                "`stvc check` says whether the store is sound; the watch's own output says where it broke down"
                    .to_owned(),
            ),
            _ => None,
        };
        let exit = match refusal {
            Refusal::ReadOnly { .. } | Refusal::Session { .. } => exit::REFUSED,
            Refusal::Unwritable { .. } | Refusal::BrokeDown { .. } => exit::FAILED,
            _ => exit::USAGE,
        };
        let mut answer = Self { exit, ..Self::default() };
        answer.add(ErrorLine {
            message,
            hint,
            candidates,
            more_candidates: 0,
            offers: Vec::new(),
            exit,
        });
        answer
    }

    fn failed(error: &verbs::Error) -> Self {
        let line = ErrorLine::from(error);
        let mut answer = Self { exit: line.exit, ..Self::default() };
        if let verbs::Error::Engine(crate::engine::Error::Refused { findings }) = error {
            findings.iter().for_each(|it| answer.add(it));
        }
        answer.add(line);
        answer
    }

    fn add<'a>(&mut self, line: impl Into<Line<'a>>) {
        self.lines.extend(serde_json::value::to_raw_value(&line.into()).ok());
    }

    /// A whole answer.
    fn tell(&mut self, answer: &impl answers::Answer) {
        answer.lines(&mut |line| self.add(line));
        self.end(answer.summary(), answer.exit());
    }

    /// One page of an answer.
    fn page(&mut self, answer: &impl answers::Answer, page: Page) {
        let mut n = 0;
        answer.lines(&mut |line| {
            if page.has(n) {
                self.add(line);
            }
            n += 1;
        });
        self.next = (n > page.end()).then_some(page.end());
        self.end(answer.summary(), answer.exit());
    }

    fn end(&mut self, summary: Summary, exit: u8) {
        self.add(summary);
        self.exit = exit;
    }

    fn fill(&mut self, workspace: &Workspace, request: &Request) -> Result<()> {
        match request {
            Request::Library(_) => self.library(workspace)?,
            Request::Timelines(_) => self.timelines("timelines", workspace)?,
            Request::Status(_) => self.timelines("status", workspace)?,
            Request::Graph(asked) => {
                let page = Page::of(asked.first, asked.count);
                let options = verbs::timelines::graph::Options {
                    timeline: asked.timeline.clone(),
                    first: page.first,
                    count: Some(page.count),
                    lanes_only: asked.lanes_only == Some(true),
                    with_scenes: asked.scenes == Some(true),
                };
                let report = verbs::timelines::graph::graph(workspace, &options, &mut Silent)?;
                self.next = (report.total > page.end()).then_some(page.end());
                self.tell(&report);
            }
            Request::Log(asked) => self.log(workspace, asked)?,
            Request::Show(asked) => self.tell(&verbs::show::show(workspace, &asked.snapshot)?),
            Request::Messages(asked) => {
                let page = Page::of(asked.first, asked.count);
                let options = verbs::read::Options {
                    snapshot: asked.snapshot.clone(),
                    messages: Some(page.first..=page.end() - 1),
                    with_hidden: true,
                };
                let report = verbs::read::read(workspace, &options)?;
                self.next = (report.total > page.end()).then_some(page.end());
                self.tell(&report);
            }
            Request::Lore(asked) => self.lore(workspace, asked)?,
            Request::Diff(asked) => self.diff(workspace, asked)?,
            Request::Search(asked) => {
                let page = Page::of(asked.first, asked.count);
                let options = verbs::search::Options {
                    text: asked.text.clone(),
                    phrase: asked.phrase == Some(true),
                    regex: asked.regex == Some(true),
                    who: asked.who.clone(),
                    timeline: asked.timeline.clone(),
                    only: asked.only.and_then(|only| match only {
                        request::Part::Chat => Some(verbs::search::Part::Chat),
                        request::Part::Lorebook => Some(verbs::search::Part::Lorebook),
                        request::Part::Card => Some(verbs::search::Part::Character),
                        request::Part::Metadata => None,
                    }),
                    limit: Some(page.end()),
                    ..Default::default()
                };
                let report = verbs::search::search(workspace, &options, &mut Silent)?;
                self.page(&report, page);
                self.next = report.more.then_some(page.end());
            }
            Request::Operations(asked) => {
                let page = Page::of(asked.first, asked.count);
                let report =
                    verbs::operations::operations(workspace, Some(page.end().saturating_add(1)))?;
                self.page(&report, page);
            }
            Request::Doctor(_) => {
                let options = verbs::doctor::Options::default();
                self.tell(&verbs::doctor::doctor(workspace, &options, &mut Silent)?);
            }
            Request::Snapshot(asked) => {
                let subject = verbs::snapshot::Asked {
                    timelines: asked.timelines.clone().unwrap_or_default(),
                    tag: asked.tag.clone(),
                    at: asked.at,
                    scenes: asked.scenes == Some(true),
                    holds: asked.holds.clone(),
                    ..Default::default()
                };
                let options = verbs::snapshot::Options {
                    subject: subject.try_into()?,
                    message: asked.message.clone(),
                    gate: gate(asked.strict, asked.wait, asked.allow_active_queue),
                    dry_run: asked.dry_run == Some(true),
                    ..Default::default()
                };
                let report = verbs::snapshot::snapshot(workspace, &options, &mut Silent)?;
                self.tell(&answers::Snapshots { report: &report, dry_run: options.dry_run });
            }
            Request::Tag(asked) => {
                let name = asked.name.clone();
                let options = match &asked.snapshot {
                    Some(snapshot) => {
                        let snapshot = snapshot.clone();
                        verbs::tag::Options::Add { name, snapshot, lead: false }
                    }
                    None => verbs::tag::Options::Delete { name },
                };
                self.tell(&verbs::tag::tag(workspace, &options)?);
            }
            Request::Restore(asked) => self.restore(workspace, asked)?,
            Request::Undo(asked) => {
                let options = verbs::undo::Options {
                    operation: asked.operation,
                    closed: closed(asked.chat_closed, asked.rereads),
                    dry_run: asked.dry_run == Some(true),
                };
                self.tell(&verbs::undo::undo(workspace, &options)?);
            }
        }
        Ok(())
    }

    fn timelines(&mut self, command: &'static str, workspace: &Workspace) -> Result<()> {
        let report = verbs::timelines::timelines(workspace, &mut Silent)?;
        self.tell(&answers::Timelines { command, report: &report });
        Ok(())
    }

    fn library(&mut self, workspace: &Workspace) -> Result<()> {
        let report = verbs::timelines::timelines(workspace, &mut Silent)?;
        report.last_backup.iter().for_each(|last| self.add(CopyLine::from(last)));
        self.tell(&answers::Timelines { command: "library", report: &report });
        Ok(())
    }

    fn log(&mut self, workspace: &Workspace, asked: &request::Log) -> Result<()> {
        let page = Page::of(asked.first, asked.count);
        if let (Some(timeline), Some(message)) = (&asked.timeline, asked.message) {
            let (timeline, limit) = (timeline.clone(), Some(page.end()));
            let options = verbs::message_versions::Options { timeline, message, limit };
            self.tell(&verbs::message_versions::message_versions(workspace, &options)?);
            return Ok(());
        }
        let options = verbs::log::Options {
            timeline: asked.timeline.clone(),
            limit: Some(page.end()),
            ..Default::default()
        };
        let report = verbs::log::log(workspace, &options)?;
        self.page(&report, page);
        self.next = (report.total > page.end()).then_some(page.end());
        Ok(())
    }

    fn lore(&mut self, workspace: &Workspace, asked: &request::Lore) -> Result<()> {
        let named = asked.book.iter().chain(&asked.entry).cloned().collect();
        let page = Page::of(asked.first, asked.count);
        let options = verbs::lore::Options {
            named,
            blame: asked.blame == Some(true),
            at: asked.at.clone(),
            in_snapshot: asked.snapshot.clone(),
            chat: asked.chat.clone(),
            active: asked.active,
            limit: Some(LONGEST_PAGE),
            with_formatting: asked.all == Some(true),
            entries: Some(page.first..page.end()),
        };
        let report = verbs::lore::lore(workspace, &options, &mut Silent)?;
        if let verbs::lore::Report::Then(then) = &report {
            self.next = (then.total > page.end()).then_some(page.end());
        }
        self.tell(&answers::Lore { command: "lore", report: &report });
        Ok(())
    }

    fn diff(&mut self, workspace: &Workspace, asked: &request::Diff) -> Result<()> {
        let options =
            verbs::diff::Options { before: asked.before.clone(), after: asked.after.clone() };
        let only = asked.only.map(|only| match only {
            request::Part::Chat => Part::Message,
            request::Part::Lorebook => Part::Lorebook,
            request::Part::Metadata => Part::Metadata,
            request::Part::Card => Part::Card,
        });
        let comparison = verbs::diff::diff(workspace, &options)?;
        let changes = comparison.changes(only);
        let mut counts = DiffCounts::default();
        counts.add(&changes);
        let stat = asked.stat == Some(true);
        answers::compared(&comparison, &changes, stat, &mut |line| self.add(line));
        self.end(counts.summary(), exit::DONE);
        Ok(())
    }

    fn restore(&mut self, workspace: &Workspace, asked: &request::Restore) -> Result<()> {
        let dry_run = asked.dry_run == Some(true);
        let allow_active_queue = asked.allow_active_queue == Some(true);
        let only = asked.only.map(|only| match only {
            request::Part::Lorebook => Role::Lorebook,
            _ => Role::Chat,
        });
        let target = match (&asked.name, only) {
            (Some(_), Some(_)) => {
                return Err(verbs::Error::Together { option: "name", other: "only" });
            }
            (Some(name), None) => Target::NewTimeline {
                name: name.clone(),
                gate: Some(gate(asked.strict, asked.wait, asked.allow_active_queue)),
            },
            (None, only) => Target::InPlace {
                only,
                // A plan says what would be replaced, and what is replaced was in a plan.
                overwrite: match &asked.expect {
                    Some(expected) => Overwrite::Only(expected.clone()),
                    None if dry_run => Overwrite::All,
                    None => Overwrite::None,
                },
                leave: Leave {
                    closed: closed(asked.chat_closed, asked.rereads),
                    active_queue: allow_active_queue,
                },
            },
        };
        let until = match (asked.at, asked.cut) {
            (Some(_), Some(_)) => {
                return Err(verbs::Error::Together { option: "at", other: "cut" });
            }
            (Some(at), None) => Until::Message(at),
            (None, Some(cut)) => Until::Cut(cut),
            (None, None) => Until::End,
        };
        let snapshot = asked.snapshot.clone();
        let options =
            verbs::restore::Options { snapshot, until, target, dry_run, ..Default::default() };
        self.tell(&verbs::restore::restore(workspace, &options, &mut Silent)?);
        Ok(())
    }
}

/// What is asked of the readiness check.
fn gate(strict: Option<bool>, wait: Option<u64>, allow_active_queue: Option<bool>) -> GatePolicy {
    GatePolicy {
        scene: if strict == Some(true) { SceneRule::Strict } else { SceneRule::Warn },
        wait: wait.map(|seconds| Wait::AtMost(Duration::from_secs(seconds.min(LONGEST_WAIT)))),
        allow_active_queue: allow_active_queue == Some(true),
    }
}

fn closed(said: Option<bool>, rereads: Option<bool>) -> Closed {
    match (said, rereads) {
        (_, Some(true)) => Closed::Rereads,
        (Some(true), _) => Closed::Said,
        _ => Closed::Unknown,
    }
}

/// Which lines of a long answer.
#[derive(Clone, Copy)]
struct Page {
    first: usize,
    count: usize,
}

impl Page {
    const USUAL: usize = 200;

    fn of(first: Option<usize>, count: Option<usize>) -> Self {
        let count = count.unwrap_or(Self::USUAL).clamp(1, LONGEST_PAGE);
        Self { first: first.unwrap_or(0), count }
    }

    fn end(self) -> usize {
        self.first.saturating_add(self.count)
    }

    fn has(self, line: usize) -> bool {
        (self.first..self.end()).contains(&line)
    }
}
