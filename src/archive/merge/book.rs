//! A lorebook, if it is one that can be merged.

use std::collections::HashSet;

use crate::st::{Key, Member, Raw};

pub(super) struct Book<'a> {
    pub root: Raw<'a>,
    pub entries: Raw<'a>,
    /// The entries, in the order of the file. No key stands twice.
    pub list: Vec<(Key, Raw<'a>)>,
    /// Their keys as they are written.
    pub raw_keys: Vec<&'a [u8]>,
}

impl<'a> Book<'a> {
    /// Read it; why it cannot be merged.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let root = Raw::parse(bytes).ok_or("it is no JSON")?;
        let members = root.members().ok_or("it is no JSON object")?;
        let entries = members.iter().find(|member| is_entries(member));
        let entries = entries.ok_or("it has no entries")?.value;
        let list = entries.members().ok_or("its entries are no JSON object")?;
        if repeats(&members) || repeats(&list) {
            return Err("it repeats a key, and it is not certain which one counts");
        }
        let raw_keys = list.iter().map(|member| member.raw_key).collect();
        let list = list.into_iter().map(|member| (member.key, member.value)).collect();
        Ok(Self { root, entries, list, raw_keys })
    }

    pub(super) fn entry(&self, place: Option<usize>) -> Option<Raw<'a>> {
        Some(self.list.get(place?)?.1)
    }
}

pub(super) fn is_entries(member: &Member<'_>) -> bool {
    member.key.as_bytes() == b"entries"
}

fn repeats(members: &[Member<'_>]) -> bool {
    let mut seen = HashSet::with_capacity(members.len());
    !members.iter().all(|member| seen.insert(member.key.as_bytes()))
}
