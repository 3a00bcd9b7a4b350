//! Finds users who were created after the watch began.

use std::time::Instant;

use super::bell::{Message, Reasons};
use super::context::Context;
use super::pool::{Lane, Task};

pub(super) struct NewUsers<'a> {
    context: &'a Context<'a>,
    looked: Instant,
}

impl<'a> NewUsers<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Self { context, looked: Instant::now() }
    }
}

impl Task for NewUsers<'_> {
    fn hear(&mut self, _why: Reasons, _now: Instant) {}

    fn next_due(&self) -> Option<(Instant, Lane)> {
        Some((self.looked + self.context.new_users_interval(), Lane::Long))
    }

    fn step(&mut self) {
        // Set before the folders are listed, so that a panic does not repeat the step at once.
        self.looked = Instant::now();
        self.context.waker.send(Message::Found(self.context.front.users()));
    }

    fn panicked(&mut self) {}

    fn end(&mut self) {}

    fn end_order(&self) -> u8 {
        0
    }
}
