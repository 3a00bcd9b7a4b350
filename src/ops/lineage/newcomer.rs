//! Chats that were never seen, and the order in which they are taken.

use std::collections::HashMap;

use crate::archive::State;
use crate::archive::lineage::Chain;
use crate::st::{self, Captured, Chat, TimelineName};

/// A chat that has no branch yet.
pub(in crate::ops) struct Newcomer {
    pub name: TimelineName,
    /// What its messages say.
    pub chain: Chain,
    /// The chat it says it was forked from, as typed.
    pub main_chat: Option<String>,
    /// When each message was sent, where that can be read.
    sent: Vec<Option<i64>>,
}

impl Newcomer {
    pub(in crate::ops) fn of(captured: &Captured) -> Self {
        let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
        Self::new(
            &captured.name,
            &chat,
            captured.group.as_ref().map(|group| group.bytes.as_slice()),
        )
    }

    pub(in crate::ops) fn of_state(state: &State<'_>) -> Self {
        Self::new(state.timeline, &state.chat, state.group.map(|group| group.bytes))
    }

    pub(in crate::ops) fn new(name: &TimelineName, chat: &Chat<'_>, group: Option<&[u8]>) -> Self {
        let lines = without_blank_end(&chat.messages);
        let sent = |line: &&[u8]| {
            st::Message::read(line).and_then(|message| st::send_time(message.send_date()?))
        };
        let chat = Chat { header: chat.header, messages: Vec::new() };
        let main_chat = st::metadata(&chat, name, group).and_then(st::main_chat);
        // When messages were sent settles the order of forks, and matters for nothing else.
        let sent = if main_chat.is_some() { lines.iter().map(sent).collect() } else { Vec::new() };
        Self { name: name.clone(), chain: Chain::of(lines), main_chat, sent }
    }

    /// The timeline that `main_chat` names.
    pub(super) fn parent_name(&self) -> Option<TimelineName> {
        let chat = st::chat_name(self.main_chat.as_deref()?)?;
        match self.name.folder() {
            Some(folder) => TimelineName::solo(folder, &chat).ok(),
            None => TimelineName::group(&chat).ok(),
        }
    }
}

/// A trailing newline makes a last line that is no message.
pub(in crate::ops) fn without_blank_end<'a, 'b>(lines: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    let end =
        lines.iter().rposition(|line| !line.trim_ascii().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// In which order new chats are taken: whoever may be another's origin comes first.
///
/// First those that do not say they were forked, then those whose names lead to one of these, then those whose names are dead: these may
/// come from any, but no other comes from them. Among equals the one whose own part was written earlier: a fork is made of what
/// was there. And none before the one it names.
pub(in crate::ops) fn order(newcomers: &[Newcomer]) -> Vec<usize> {
    let by_name: HashMap<_, _> =
        newcomers.iter().enumerate().map(|(n, newcomer)| (&newcomer.name, n)).collect();
    let parent: Vec<Option<usize>> =
        newcomers.iter().map(|newcomer| by_name.get(&newcomer.parent_name()?).copied()).collect();
    let roots: Vec<_> = newcomers.iter().filter(|newcomer| newcomer.main_chat.is_none()).collect();
    let own_part = |newcomer: &Newcomer| {
        let shared = roots.iter().map(|root| newcomer.chain.shared_with(&root.chain)).max();
        newcomer.sent[shared.unwrap_or(0).min(newcomer.sent.len())..].to_vec()
    };
    // Where the names lead: to itself, to one that names nobody, or nowhere.
    let class = |n: usize| {
        let mut line = vec![n];
        while let Some(next) =
            line.last().and_then(|last| parent[*last]).filter(|next| !line.contains(next))
        {
            line.push(next);
        }
        let top = line.last().is_none_or(|top| newcomers[*top].main_chat.is_none());
        if newcomers[n].main_chat.is_none() {
            0
        } else if top {
            1
        } else {
            2
        }
    };
    let key = |n: usize| {
        let own = if class(n) == 0 { Vec::new() } else { own_part(&newcomers[n]) };
        (class(n), own, newcomers[n].name.clone())
    };
    let mut wanted: Vec<_> = (0..newcomers.len()).collect();
    wanted.sort_by_cached_key(|n| key(*n));
    let mut order = Vec::with_capacity(newcomers.len());
    let mut placed = vec![false; newcomers.len()];
    for n in wanted {
        // The line of those it comes from, as far as they are not placed; names can go round in a circle after renames.
        let mut line = vec![n];
        while let Some(next) = line.last().and_then(|last| parent[*last])
            && !placed[next]
            && !line.contains(&next)
        {
            line.push(next);
        }
        for n in line.into_iter().rev() {
            if !std::mem::replace(&mut placed[n], true) {
                order.push(n);
            }
        }
    }
    order
}
