//! Trims a chat's metadata to an earlier message: removes later versions from the running recap,
//! and later entries from the cached registry.

use std::collections::HashSet;

use serde::Serialize;

use crate::auto_recap::written::{combined_recap, running_recap};
use crate::st::{Edits, Raw, item_spans, member_spans};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trimmed {
    /// Number of versions of the running recap before trimming.
    pub versions_before: usize,
    pub versions_after: usize,
    /// Number of the version in use after trimming; `None` if no version is left.
    pub current_version: Option<i64>,
    /// Message count of the combined recap, if the recap was removed because it covers later
    /// messages.
    #[serde(skip)]
    pub combined_dropped: Option<i64>,
    /// Number of entries removed from the cached registry because they did not exist at that
    /// message.
    pub cache_dropped: usize,
}

/// Returns `text` (a header line or a group's file, which contains `metadata`) as of message
/// `last`. `uids` are the UIDs of the lorebook's entries at that message, if known.
///
/// A version of the running recap existed at that message if its last scene had ended by then. Old
/// versions do not name their last scene, so they are kept.
pub fn trim_metadata(
    text: &[u8],
    metadata: Raw<'_>,
    last: usize,
    uids: Option<&HashSet<String>>,
) -> (Vec<u8>, Trimmed) {
    let mut edits = Edits::new(text);
    let mut trimmed = Trimmed::default();
    if let Some(recap) = running_recap(metadata)
        && let (Some(versions), Some(list)) = (&recap.versions, recap.raw.get("versions"))
    {
        let existed = |index: Option<i64>| index.is_none_or(|index| index <= last as i64);
        let kept: Vec<_> =
            versions.iter().map(|version| existed(version.new_scene_index)).collect();
        trimmed.versions_before = versions.len();
        trimmed.versions_after = kept.iter().filter(|kept| **kept).count();
        trimmed.current_version = recap.current_version;
        if trimmed.versions_after < trimmed.versions_before {
            edits.retain(&item_spans(list, text), |n| kept[n]);
            let numbers = versions.iter().zip(&kept).filter(|(_, kept)| **kept);
            let numbers: Vec<_> = numbers.filter_map(|(version, _)| version.version).collect();
            let current = recap.current_version.filter(|number| numbers.contains(number));
            let current = current.or_else(|| numbers.iter().max().copied()).unwrap_or(0);
            trimmed.current_version = (trimmed.versions_after > 0).then_some(current);
            edits.set(recap.raw, "current_version", &current.to_string());
        }
    }
    let combined = combined_recap(metadata).and_then(|combined| combined.message_count);
    trimmed.combined_dropped = combined.filter(|count| *count > last as i64 + 1);
    if trimmed.combined_dropped.is_some()
        && let Some(owner) = metadata.get("auto_recap")
    {
        let members = owner.members().unwrap_or_default();
        edits
            .retain(&member_spans(owner, text), |n| members[n].key.as_bytes() != b"combined_recap");
    }
    if let (Some(uids), Some(index)) =
        (uids, metadata.path(&["auto_lorebooks", "registry", "index"]))
    {
        let members = index.members().unwrap_or_default();
        let kept: Vec<_> =
            members.iter().map(|member| uids.contains(&member.key.to_string_lossy())).collect();
        trimmed.cache_dropped = kept.iter().filter(|kept| !**kept).count();
        edits.retain(&member_spans(index, text), |n| kept[n]);
    }
    (edits.apply(), trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"chat_metadata":{"x":1,"auto_recap_running_scene_recaps":{"chat_id":"c","current_version":2,"versions":[{"version":0,"new_scene_index":4},{"version":1,"new_scene_index":9}, {"version":2,"new_scene_index":14}]},"auto_lorebooks":{"registry":{"index":{"7":{"uid":7},"9":{"uid":9}}}}},"user_name":"unused"}"#;

    fn at(last: usize) -> (String, Trimmed) {
        let metadata = Raw::parse_str(HEADER).unwrap().get("chat_metadata").unwrap();
        let uids = HashSet::from(["7".to_owned()]);
        let (text, trimmed) = trim_metadata(HEADER.as_bytes(), metadata, last, Some(&uids));
        (String::from_utf8(text).unwrap(), trimmed)
    }

    #[test]
    fn req_49_trim_keeps_only_recap_versions_up_to_the_message() {
        let (text, trimmed) = at(9);
        assert!(text.contains(
            r#""current_version":1,"versions":[{"version":0,"new_scene_index":4},{"version":1,"new_scene_index":9}]}"#
        ));
        assert!(text.contains(r#""index":{"7":{"uid":7}}"#));
        assert_eq!((trimmed.versions_before, trimmed.versions_after), (3, 2));
        assert_eq!(trimmed.current_version, Some(1));
        assert_eq!(trimmed.cache_dropped, 1);

        let (text, trimmed) = at(3);
        assert!(text.contains(r#""current_version":0,"versions":[]}"#));
        assert_eq!(trimmed.current_version, None);
        let text = HEADER.replace(
            r#""x":1"#,
            r#""auto_recap":{"enabled":true,"combined_recap":{"message_count":10}}"#,
        );
        let metadata = Raw::parse_str(&text).unwrap().get("chat_metadata").unwrap();
        let trim = |last| trim_metadata(text.as_bytes(), metadata, last, None);
        assert_eq!(trim(9).1.combined_dropped, None);
        let (without, trimmed) = trim(8);
        assert_eq!(trimmed.combined_dropped, Some(10));
        let without = String::from_utf8(without).unwrap();
        assert!(without.contains(r#""auto_recap":{"enabled":true},"#), "{without}");
        let (text, _) = at(99);
        assert_eq!(text, HEADER.replace(r#","9":{"uid":9}"#, ""));
    }
}
