//! Merges two states of a chat file. The result has the messages of the side that changed them, and
//! the merged metadata of both sides.

use super::Side;
use super::entry_fields::{MergedFields, mix};
use crate::st::{Chat, Key, Raw};

/// Metadata that SillyTavern writes with every generated message. Different values of these fields
/// are never a conflict.
const WRITTEN_WITH_MESSAGES: [&str; 2] = ["lastInContextMessageId", "timedWorldInfo"];
const METADATA: &str = "chat_metadata";

/// Merges `theirs` into `ours`. Returns `None` if both sides changed messages, or if both changed
/// one value of the header differently.
///
/// If one side begins with all messages of the other side, the messages of the longer side are
/// used.
pub fn merge_chats(base: Option<&Chat<'_>>, ours: &Chat<'_>, theirs: &Chat<'_>) -> Option<Vec<u8>> {
    let was = |side: &Chat<'_>| base.is_some_and(|base| base.messages == side.messages);
    let prefer = if was(ours) || continues(&ours.messages, &theirs.messages) {
        Side::Theirs
    } else if was(theirs) || continues(&theirs.messages, &ours.messages) {
        Side::Ours
    } else {
        return None;
    };
    let base_header = base.map(|base| base.header);
    let header = match (ours.header, theirs.header) {
        (ours, theirs) if ours == theirs || base_header == Some(theirs) => ours.map(<[u8]>::to_vec),
        (ours, theirs) if base_header == Some(ours) => theirs.map(<[u8]>::to_vec),
        (ours, theirs) => Some(merge_headers(base_header??, ours?, theirs?, prefer)?),
    };
    let messages = match prefer {
        Side::Ours => &ours.messages,
        Side::Theirs => &theirs.messages,
    };
    Some(Chat { header: header.as_deref(), messages: messages.clone() }.join())
}

/// Returns whether `longer` begins with all of `messages`. An empty last line, which a trailing
/// newline causes, is ignored.
fn continues(messages: &[&[u8]], longer: &[&[u8]]) -> bool {
    let messages = match messages.split_last() {
        Some((&[], rest)) => rest,
        _ => messages,
    };
    longer.starts_with(messages)
}

fn merge_headers(base: &[u8], ours: &[u8], theirs: &[u8], prefer: Side) -> Option<Vec<u8>> {
    let [base, ours, theirs] = [base, ours, theirs].map(Raw::parse);
    let (base, ours, theirs) = (base?, ours?, theirs?);
    let is_metadata = |key: &Key| key.as_bytes() == METADATA.as_bytes();
    let header = merged(mix(Some(base), ours, theirs, prefer, is_metadata))?;
    let header = Raw::parse(&header)?;
    let [of_base, of_ours, of_theirs] = [base, ours, theirs].map(|side| side.get(METADATA));
    let (Some(of_ours), Some(of_theirs)) = (of_ours, of_theirs) else { return None };
    let metadata = merged(mix(of_base, of_ours, of_theirs, prefer, |_| false))?;
    let place = header.get(METADATA)?.span_in(header.as_bytes());
    let text = header.as_bytes();
    Some([&text[..place.start], &metadata, &text[place.end..]].concat())
}

fn merged(mixed: MergedFields) -> Option<Vec<u8>> {
    let is_settled = |field: &str| WRITTEN_WITH_MESSAGES.contains(&field);
    mixed.conflicts.iter().all(|conflict| is_settled(&conflict.field)).then_some(mixed.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::st::Category;

    fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let [base, ours, theirs] =
            [base, ours, theirs].map(|text| Chat::split(text.as_bytes(), Category::Chat));
        let merged = merge_chats(Some(&base), &ours, &theirs)?;
        Some(String::from_utf8(merged).unwrap())
    }

    const BASE: &str =
        "{\"a\":1, \"chat_metadata\":{\"world_info\":\"x\",\"n\": 1}}\n{\"mes\":\"0\"}";

    #[test]
    fn header_of_one_side_is_merged_with_messages_of_the_other() {
        let header = BASE.replace("\"x\"", "\"y\"");
        let messages = format!("{BASE}\n{{\"mes\":\"1\"}}");
        let both = format!("{header}\n{{\"mes\":\"1\"}}");
        assert_eq!(merge(BASE, &header, &messages).as_deref(), Some(&*both));
        assert_eq!(merge(BASE, &messages, &header).as_deref(), Some(&*both));
    }

    #[test]
    fn headers_are_merged_by_member_and_keep_their_bytes() {
        let header = BASE.replace("\"x\"", "\"y\"");
        let more = "{\"mes\":\"1\"}";
        let messages = format!("{}\n{more}", BASE.replace("\"n\": 1", "\"n\": 1e21,\"v\":{}"));
        let both = "{\"a\":1, \"chat_metadata\":{\"world_info\":\"y\",\"n\": 1e21,\"v\":{}}}";
        let both = format!("{both}\n{{\"mes\":\"0\"}}\n{more}");
        assert_eq!(merge(BASE, &header, &messages).as_deref(), Some(&*both));
    }

    #[test]
    fn message_metadata_is_taken_from_the_side_with_new_messages() {
        let with = |id: u8, name: &str| {
            let id = format!("\"lastInContextMessageId\":{id},\"n\"");
            BASE.replace("\"n\"", &id).replace("\"x\"", &format!("\"{name}\""))
        };
        let messages = format!("{}\n{{\"mes\":\"1\"}}", with(7, "x"));
        let both = format!("{}\n{{\"mes\":\"1\"}}", with(7, "y"));
        assert_eq!(merge(&with(1, "x"), &with(2, "y"), &messages).as_deref(), Some(&*both));
    }

    #[test]
    fn conflicting_members_or_messages_on_both_sides_are_not_merged() {
        assert_eq!(merge(BASE, &BASE.replace("\"x\"", "\"y\""), &BASE.replace("\"x\"", "0")), None);
        let say = |words: &str| format!("{BASE}\n{{\"mes\":\"{words}\"}}");
        assert_eq!(merge(BASE, &say("here"), &say("there")), None);
    }
}
