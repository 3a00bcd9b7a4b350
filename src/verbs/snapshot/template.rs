//! Names of checkpoints by a template.

use crate::engine::{Result, TagError};

/// The default name of a scene's checkpoint.
pub const TEMPLATE: &str = "Scene {scene_number} - {scene_name}";

const WORDS: [&str; 5] = ["scene_number", "scene_name", "chat", "character", "message"];

pub(super) fn check(template: &str) -> Result<()> {
    let words = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    match words.map(|(word, _)| word).find(|word| !WORDS.contains(word)) {
        None => Ok(()),
        Some(_) => Err(TagError::BadName {
            name: template.to_owned(),
            why: "only {scene_number}, {scene_name}, {chat}, {character} and {message} are filled in",
        }
        .into()),
    }
}

/// Fills in all `{words}` in one pass, so values are never read as templates.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
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
    // A tag is a short name.
    out.chars().take(100).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn req_42_templates() {
        let values = [("scene_number", "3"), ("scene_name", "The {chat} duel"), ("chat", "Main")];
        assert_eq!(fill(TEMPLATE, &values), "Scene 3 - The {chat} duel");
        assert_eq!(fill("{chat}: {scene_number} {unknown} {", &values), "Main: 3 {unknown} {");
    }
}
