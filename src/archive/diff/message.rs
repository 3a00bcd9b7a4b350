//! Classifies the change of one message: for example, edited, hidden, another swipe, or a new
//! recap.

use super::ChangeKind::{self, Edited, Hidden, Link, Recap, Rewritten, Shown, Swipe};
use super::value::{Field, PathStep, Rules, fields};
use crate::auto_recap::MEMORY;
use crate::st::Message;

const RULES: Rules = Rules { lists: &["swipes", "swipe_info"], opened: &["extra"] };

/// Returns the kinds of change, the most important first, and the fields that differ.
pub(super) fn compare<'a>(before: &'a [u8], after: &'a [u8]) -> (Vec<ChangeKind>, Vec<Field<'a>>) {
    let (Some(old), Some(new)) = (Message::read(before), Message::read(after)) else {
        return (vec![Edited], Vec::new());
    };
    let mut fields = fields(old.raw(), new.raw(), RULES);
    let context = Context::of(&old, &new, &fields);
    for field in &mut fields {
        field.kind = context.kind(&field.path);
    }
    let mut kinds: Vec<ChangeKind> = fields.iter().map(|field| field.kind).collect();
    if kinds.is_empty() {
        kinds.push(Rewritten);
    }
    // An edit comes after more specific kinds, unless the text or the speaker changed.
    let said = fields
        .iter()
        .any(|field| field.kind == Edited && (field.is(&["mes"]) || field.is(&["name"])));
    kinds.sort_by_key(|kind| (*kind == Edited && !said, *kind));
    kinds.dedup();
    (kinds, fields)
}

struct Context {
    /// Whether another swipe is shown than before. If true, changed fields that belong to the shown
    /// swipe are not edits.
    switched: bool,
    swiped: bool,
    mirror: Option<usize>,
    flip: ChangeKind,
}

impl Context {
    fn of(old: &Message<'_>, new: &Message<'_>, fields: &[Field<'_>]) -> Self {
        let changed = |name: &str| fields.iter().any(|field| field.is_in(&[name]));
        let shown = new.swipe_id().and_then(|id| usize::try_from(id).ok());
        let text_is_shown = || {
            let swipes = new.swipes().unwrap_or_default();
            shown.and_then(|id| swipes.get(id)?.string()) == new.text()
        };
        let switched = changed("swipe_id") && text_is_shown();
        let mirror = shown.filter(|_| changed("mes") && !switched);
        let is_mirror = |field: &&Field<'_>| matches!(field.path.get(1), Some(PathStep::Item(item)) if Some(*item) == mirror);
        let others = fields.iter().filter(|field| field.is_in(&["swipes"]) && !is_mirror(field));
        let swiped = changed("swipe_id") || others.count() > 0;
        let flip = match (old.is_system(), new.is_system()) {
            (false, true) => Hidden,
            (true, false) => Shown,
            _ => Edited,
        };
        Self { switched, swiped, mirror, flip }
    }

    fn kind(&self, path: &[PathStep]) -> ChangeKind {
        let extra = match path {
            [first, key, ..] if first.is("extra") => Some(key),
            [first, PathStep::Item(_), extra, key, ..]
                if first.is("swipe_info") && extra.is("extra") =>
            {
                Some(key)
            }
            _ => None,
        };
        if let Some(key) = extra {
            if key.is(MEMORY) {
                return Recap;
            }
            if key.is("bookmark_link") || key.is("branches") {
                return Link;
            }
        }
        let Some(first) = path.first() else { return Edited };
        let of_shown = ["mes", "extra", "send_date", "gen_started", "gen_finished"];
        if first.is("is_system") {
            self.flip
        } else if first.is("swipe_id") {
            Swipe
        } else if first.is("swipes") || first.is("swipe_info") {
            let mirrors =
                matches!(path.get(1), Some(PathStep::Item(item)) if Some(*item) == self.mirror);
            if self.swiped && !mirrors { Swipe } else { Edited }
        } else if self.switched && of_shown.iter().any(|name| first.is(name)) {
            Swipe
        } else {
            Edited
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(before: &str, after: &str) -> Vec<ChangeKind> {
        compare(before.as_bytes(), after.as_bytes()).0
    }

    #[test]
    fn message_changes_are_classified_by_kind() {
        let message = r#"{"mes":"x","is_system":false,"extra":{"a":1}}"#;
        for (after, expected) in [
            (r#"{"mes":"x","is_system":true,"extra":{"a":1}}"#, vec![Hidden]),
            (r#"{"mes":"y","is_system":true,"extra":{"a":1}}"#, vec![Edited, Hidden]),
            (r#"{"mes":"x","is_system":true,"extra":{"a":2}}"#, vec![Hidden, Edited]),
            (r#"{"mes":"x","is_system":false,"extra":{"a":1,"bookmark_link":"c"}}"#, vec![Link]),
            (
                r#"{"mes":"x","is_system":false,"extra":{"a":1,"auto_recap_memory":{"b":1}}}"#,
                vec![Recap],
            ),
            (r#"{"extra":{"a":1},"mes":"x","is_system":false}"#, vec![Rewritten]),
            ("torn", vec![Edited]),
        ] {
            assert_eq!(kinds(message, after), expected, "{after}");
        }
        let hidden = r#"{"mes":"x","is_system":true,"extra":{"a":1}}"#;
        assert_eq!(kinds(hidden, message), [Shown]);
    }

    #[test]
    fn swipe_changes_and_edits_are_distinguished() {
        let one = r#"{"mes":"a","send_date":"1","swipe_id":0,"swipes":["a"],"extra":{"g":1}}"#;
        let added =
            r#"{"mes":"b","send_date":"2","swipe_id":1,"swipes":["a","b"],"extra":{"g":2}}"#;
        assert_eq!(kinds(one, added), [Swipe]);
        let back = r#"{"mes":"a","send_date":"1","swipe_id":0,"swipes":["a","b"],"extra":{"g":1}}"#;
        assert_eq!(kinds(added, back), [Swipe]);
        let edited = r#"{"mes":"A","send_date":"1","swipe_id":0,"swipes":["A"],"extra":{"g":1}}"#;
        assert_eq!(kinds(one, edited), [Edited]);
    }
}
