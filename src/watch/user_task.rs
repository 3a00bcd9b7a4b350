//! The task of one user: starts the watch of the library, and tries again if it cannot start.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::bell::Reasons;
use super::companion::{self, CompanionTask};
use super::context::{CompanionLink, Context, UserLink};
use super::error::Error;
use super::front_end::{Event, WatchedUser};
use super::library_watch::LibraryWatch;
use super::pool::{Lane, NewTask, Task};

/// The shortest time after which a failed start is tried again. With many users it is longer.
const START_AGAIN: Duration = Duration::from_secs(10);

struct UserTask<'a> {
    link: Arc<UserLink<'a>>,
    state: State<'a>,
    /// The number of users before this one. It spreads the scans at intervals.
    number: usize,
}

enum State<'a> {
    Starting {
        at: Instant,
        reported: Option<String>,
    },
    Watching(Box<LibraryWatch<'a>>),
    /// The watch ends with an error.
    Failed,
}

/// Creates the task of a user, and that of the companion, if there is one.
pub(super) fn tasks<'a>(context: &'a Context<'a>, user: WatchedUser) -> Vec<NewTask<'a>> {
    let number = context.count_user();
    let bell = context.new_bell();
    let companion = context.front.companion(&user.workspace);
    let companion = companion.map(|companion| (companion::link(context), companion));
    let link = companion.as_ref().map(|((bell, news), companion)| CompanionLink {
        bell: bell.clone(),
        folder: companion.folder(),
        is_mail: companion.is_mail(),
        news: Arc::clone(news),
    });
    let gauges = context.metrics.of_user(UserLink::label(&user));
    let link = UserLink { context, user, bell: bell.clone(), companion: link, gauges };
    let state = State::Starting { at: Instant::now(), reported: None };
    let task = UserTask { link: Arc::new(link), state, number };
    let mut tasks: Vec<NewTask<'a>> = vec![(bell, Box::new(task))];
    if let Some(((bell, news), companion)) = companion {
        tasks.push((bell, Box::new(CompanionTask::new(context, companion, news))));
    }
    tasks
}

impl UserTask<'_> {
    fn start(&mut self) {
        match LibraryWatch::start(Arc::clone(&self.link), self.number) {
            Ok(watch) => self.state = State::Watching(Box::new(watch)),
            Err(error) if self.link.context.is_host => self.failed(&error),
            Err(error) => {
                let context = self.link.context;
                let mut failure = context.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(error);
                self.state = State::Failed;
                context.waker.stop();
            }
        }
    }

    /// Reports a failed start once, and plans the next attempt.
    fn failed(&mut self, error: &Error) {
        let State::Starting { at, reported } = &mut self.state else { return };
        let wait = self.link.context.seek_interval().max(START_AGAIN);
        *at = Instant::now() + wait;
        let why = error.to_string();
        if reported.as_ref() != Some(&why) {
            *reported = Some(why.clone());
            self.link.gauges.count_failure();
            self.link.tell(Event::Failed(why));
        }
    }
}

impl Task for UserTask<'_> {
    fn hear(&mut self, why: Reasons, now: Instant) {
        if let State::Watching(watch) = &mut self.state {
            watch.hear(why, now);
        }
    }

    fn next_due(&self) -> Option<(Instant, Lane)> {
        match &self.state {
            State::Starting { at, .. } => Some((*at, Lane::Save)),
            State::Watching(watch) => Some(watch.next_due()),
            State::Failed => None,
        }
    }

    fn step(&mut self) {
        match &mut self.state {
            State::Starting { .. } => self.start(),
            State::Watching(watch) => watch.step(),
            State::Failed => {}
        }
    }

    fn panicked(&mut self) {
        self.link.gauges.count_failure();
        self.link.gauges.is_failing.store(true, Ordering::Relaxed);
        self.link.tell(Event::Failed("an internal error occurred".to_owned()));
    }

    fn end(&mut self) {
        let context = self.link.context;
        let ended = match &mut self.state {
            State::Watching(watch) => Some(watch.end()),
            _ => None,
        };
        let mut summary = context.summary.lock().unwrap_or_else(PoisonError::into_inner);
        summary.users += 1;
        match ended {
            Some((taken, autosaves)) => {
                summary.taken += taken;
                summary.autosaves += autosaves;
                let is_watched = self.link.gauges.is_watched.load(Ordering::Relaxed);
                summary.failed += usize::from(!is_watched);
            }
            None => summary.failed += 1,
        }
    }

    fn end_order(&self) -> u8 {
        0
    }
}
