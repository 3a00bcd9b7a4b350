//! New chats, and the order in which stvc stores them.

use std::collections::HashMap;

use crate::archive::State;
use crate::archive::message_identity::Chain;
use crate::st::{self, Chat, TimelineName};

pub(crate) struct NewTimeline {
    pub name: TimelineName,
    pub chain: Chain,
    /// Name of the parent chat, according to the chat's header.
    pub main_chat: Option<String>,
    /// Send times of the messages, where readable. Empty if the chat is not a fork.
    sent: Vec<Option<i64>>,
}

impl NewTimeline {
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
        // Send times are used only to order forks.
        let sent = if main_chat.is_some() { lines.iter().map(sent).collect() } else { Vec::new() };
        Self { name: name.clone(), chain: Chain::of(lines), main_chat, sent }
    }

    pub(crate) fn parent_name(&self) -> Option<TimelineName> {
        named(&self.name, self.main_chat.as_deref()?)
    }
}

/// Returns the timeline that `main_chat` names. The parent is always in the same folder as `chat`.
pub(crate) fn named(chat: &TimelineName, main_chat: &str) -> Option<TimelineName> {
    let parent = st::chat_name(main_chat)?;
    chat.sibling(&parent).ok()
}

/// Removes blank lines at the end, which a trailing newline creates.
pub(crate) fn without_blank_end<'a, 'b>(lines: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    let end =
        lines.iter().rposition(|line| !line.trim_ascii().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// Orders new chats so that possible parents come before their forks.
///
/// Chats that do not name a parent come first. Each next chat is one whose parent is already placed
/// or, without such a chat, one whose named parent does not exist. A chat whose named parent does
/// not exist may be a fork of any chat, but a chat that names an existing parent is never a fork of
/// it. Among equal chats, the chat whose own messages were sent earlier comes first.
pub(crate) fn order(newcomers: &[&NewTimeline]) -> Vec<usize> {
    let by_name: HashMap<_, _> =
        newcomers.iter().enumerate().map(|(n, newcomer)| (&newcomer.name, n)).collect();
    let parent: Vec<Option<usize>> =
        newcomers.iter().map(|newcomer| by_name.get(&newcomer.parent_name()?).copied()).collect();
    let roots: Vec<_> = newcomers.iter().filter(|newcomer| newcomer.main_chat.is_none()).collect();
    let own_part = |newcomer: &NewTimeline| {
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
        // A chat that others name as their parent certainly has forks, so it is placed first.
        let is_named = |n: &usize| is_dead(n) && parent.contains(&Some(*n));
        // Renames can make the names form a cycle. In this case the first waiting chat is placed.
        let first = |is: &dyn Fn(&usize) -> bool| waiting.iter().position(is);
        let next =
            first(&is_next).or_else(|| first(&is_named)).or_else(|| first(&is_dead)).unwrap_or(0);
        let n = waiting.remove(next);
        placed[n] = true;
        order.push(n);
    }
    order
}
