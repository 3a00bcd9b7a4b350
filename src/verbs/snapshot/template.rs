//! Builds tags of checkpoints from a template.

use super::scene_end::End;
use crate::engine::{Result, TagError};
use crate::st::TimelineName;

/// The default template for the tag of a scene's checkpoint.
pub const TEMPLATE: &str = "Scene {scene_number} - {scene_name}";

const WORDS: [&str; 5] = ["scene_number", "scene_name", "chat", "character", "message"];

pub(super) fn check(template: &str) -> Result<()> {
    let words = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    match words.map(|(word, _)| word).find(|word| !WORDS.contains(word)) {
        None => Ok(()),
        Some(_) => Err(TagError::BadName {
            name: template.to_owned(),
            why: "the only placeholders are {scene_number}, {scene_name}, {chat}, {character} and {message}",
        }
        .into()),
    }
}

/// Returns the tag for a checkpoint of a chat.
pub(super) fn of_scene(template: &str, chat: &TimelineName, end: &End) -> String {
    let scene = end.scene_name.as_deref().unwrap_or("Unnamed Scene");
    fill(
        template,
        &[
            ("scene_number", &end.scene.to_string()),
            ("scene_name", scene.trim()),
            ("chat", chat.chat()),
            ("character", chat.folder().unwrap_or("group")),
            ("message", &end.message.to_string()),
        ],
    )
}

/// Replaces all placeholders in one pass, so that a placeholder inside a value is not replaced.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(word, after)| {
            let (_, value) = values.iter().find(|(name, _)| *name == word)?;
            Some((value, after))
        });
        match known {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    // The length is limited, because a tag is a short name.
    out.chars().take(100).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn req_42_template_placeholders_are_filled_once() {
        let values = [("scene_number", "3"), ("scene_name", "The {chat} duel"), ("chat", "Main")];
        assert_eq!(fill(TEMPLATE, &values), "Scene 3 - The {chat} duel");
        assert_eq!(fill("{chat}: {scene_number} {unknown} {", &values), "Main: 3 {unknown} {");
    }
}
