//! The task of a companion: work that belongs to a watched library, such as answers to requests of
//! SillyTavern's page. The watch does not know its purpose.

use std::sync::Arc;
use std::time::Instant;

use super::bell::{Bell, Reasons};
use super::context::{CompanionNews, Context, LibraryState};
use super::front_end::Companion;
use super::pool::{Lane, Task};

/// Runs a companion while the library is watched.
pub(super) struct CompanionTask<'a> {
    context: &'a Context<'a>,
    companion: Box<dyn Companion>,
    news: Arc<CompanionNews>,
    due: Option<Instant>,
    has_news: bool,
    has_begun: bool,
}

impl<'a> CompanionTask<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        companion: Box<dyn Companion>,
        news: Arc<CompanionNews>,
    ) -> Self {
        Self { context, companion, news, due: None, has_news: false, has_begun: false }
    }
}

impl Task for CompanionTask<'_> {
    fn hear(&mut self, why: Reasons, now: Instant) {
        self.has_news |= why.has(Reasons::NEWS);
        // Only one watch serves a user, so the companion begins after the watch has its lock.
        if self.news.state() != LibraryState::NotWatched {
            self.due = Some(now);
        }
    }

    fn next_due(&self) -> Option<(Instant, Lane)> {
        self.due.map(|due| (due, Lane::Answer))
    }

    fn step(&mut self) {
        self.due = None;
        let has_events = match self.news.state() {
            LibraryState::NotWatched => return,
            state => state == LibraryState::WithEvents,
        };
        self.has_begun = true;
        let interval = self.context.mail_interval(has_events);
        // Set first, so that the companion runs again after a panic.
        self.due = Some(Instant::now() + interval);
        let news = std::mem::take(&mut self.has_news).then(|| self.news.take());
        let wait = self.companion.step(news, interval);
        self.due = Some(Instant::now() + wait.min(interval));
    }

    fn panicked(&mut self) {}

    fn end(&mut self) {
        if self.has_begun {
            self.companion.end();
        }
    }

    fn end_order(&self) -> u8 {
        1
    }
}

/// Returns a handle that wakes the companion, and the messages to it.
pub(super) fn link(context: &Context<'_>) -> (Bell, Arc<CompanionNews>) {
    (context.new_bell(), Arc::default())
}
