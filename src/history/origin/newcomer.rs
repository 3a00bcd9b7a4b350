//! Chats that were never seen, and the order in which they are taken.

use std::collections::HashMap;

use crate::archive::State;
use crate::archive::message_identity::Chain;
use crate::st::{self, Chat, TimelineName};

pub(crate) struct Newcomer {
    pub name: TimelineName,
    pub chain: Chain,
    /// Its parent, as its header says.
    pub main_chat: Option<String>,
    /// The times of its messages, where readable; only for forks.
    sent: Vec<Option<i64>>,
}

impl Newcomer {
    pub(crate) fn of_state(state: &State<'_>) -> Self {
        Self::new(state.timeline(), &state.chat, state.files.group_bytes())
    }

    pub(crate) fn new(name: &TimelineName, chat: &Chat<'_>, group: Option<&[u8]>) -> Self {
        let lines = without_blank_end(&chat.messages);
        let sent = |line: &&[u8]| {
            st::Message::read(line).and_then(|message| st::send_millis(message.send_date()?))
        };
        let chat = Chat { header: chat.header, messages: Vec::new() };
        let main_chat = st::metadata(&chat, name, group).and_then(st::main_chat);
        // When messages were sent settles the order of forks, and matters for nothing else.
        let sent = if main_chat.is_some() { lines.iter().map(sent).collect() } else { Vec::new() };
        Self { name: name.clone(), chain: Chain::of(lines), main_chat, sent }
    }

    pub(crate) fn parent_name(&self) -> Option<TimelineName> {
        named(&self.name, self.main_chat.as_deref()?)
    }
}

/// Returns the timeline that a `main_chat` means: one in the same folder.
pub(crate) fn named(chat: &TimelineName, main_chat: &str) -> Option<TimelineName> {
    let parent = st::chat_name(main_chat)?;
    chat.sibling(&parent).ok()
}

/// Drops the blank last line that a trailing newline makes.
pub(crate) fn without_blank_end<'a, 'b>(lines: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    let end =
        lines.iter().rposition(|line| !line.trim_ascii().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// In which order new chats are taken: whoever may be another's origin comes first.
///
/// First those that do not say they were forked. Then always those that name one which is placed;
/// if there are none, the first of those whose names are dead: these may come from any, but nobody
/// who names a living chat comes from them. Among equals the one whose own part was written
/// earlier: a fork is made of what was there.
pub(crate) fn order(newcomers: &[&Newcomer]) -> Vec<usize> {
    let by_name: HashMap<_, _> =
        newcomers.iter().enumerate().map(|(n, newcomer)| (&newcomer.name, n)).collect();
    let parent: Vec<Option<usize>> =
        newcomers.iter().map(|newcomer| by_name.get(&newcomer.parent_name()?).copied()).collect();
    let roots: Vec<_> = newcomers.iter().filter(|newcomer| newcomer.main_chat.is_none()).collect();
    let own_part = |newcomer: &Newcomer| {
        let shared = roots.iter().map(|root| newcomer.chain.shared_with(&root.chain)).max();
        newcomer.sent[shared.unwrap_or(0).min(newcomer.sent.len())..].to_vec()
    };
    let key = |n: usize| {
        let newcomer = newcomers[n];
        let own = if newcomer.main_chat.is_some() { own_part(newcomer) } else { Vec::new() };
        (newcomer.main_chat.is_some(), own, newcomer.name.clone())
    };
    let mut waiting: Vec<_> = (0..newcomers.len()).collect();
    waiting.sort_by_cached_key(|n| key(*n));
    let mut order = Vec::with_capacity(newcomers.len());
    let mut placed = vec![false; newcomers.len()];
    while !waiting.is_empty() {
        let is_next = |n: &usize| {
            newcomers[*n].main_chat.is_none() || parent[*n].is_some_and(|parent| placed[parent])
        };
        let is_dead = |n: &usize| parent[*n].is_none();
        // One that others name has forks for certain, and so rather comes first.
        let is_named = |n: &usize| is_dead(n) && parent.contains(&Some(*n));
        // Names can go round in a circle after renames: then the first in line begins.
        let first = |is: &dyn Fn(&usize) -> bool| waiting.iter().position(is);
        let next =
            first(&is_next).or_else(|| first(&is_named)).or_else(|| first(&is_dead)).unwrap_or(0);
        let n = waiting.remove(next);
        placed[n] = true;
        order.push(n);
    }
    order
}
