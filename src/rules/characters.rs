//! Findings about character cards. SillyTavern does not show the chats of a character without a
//! card.

use std::collections::{BTreeMap, BTreeSet};

use super::{Code, Finding};

#[derive(Clone, Debug, Default)]
pub struct CharacterFacts {
    /// File names of the cards in the library, without the extension.
    pub cards: BTreeSet<String>,
    /// Folders of chats in the library, with the number of chats in each folder.
    pub chats: BTreeMap<String, usize>,
    /// Names of the cards that the store has snapshots of.
    pub stored: BTreeSet<String>,
    /// Cards that name a lorebook that does not exist: name of the card, name of the lorebook.
    pub missing_books: Vec<(String, String)>,
}

pub fn characters(facts: &CharacterFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    // If a library has no cards at all, it is only a part of SillyTavern's data, and missing cards
    // are not reported.
    let folders = facts.chats.iter().filter(|_| !facts.cards.is_empty());
    for (folder, chats) in folders.filter(|(folder, _)| !facts.cards.contains(*folder)) {
        let them_are = if *chats == 1 { "1 chat is".into() } else { format!("{chats} chats are") };
        let message = format!(
            "{them_are} not shown by SillyTavern: the character card {folder}.png is missing"
        );
        let remedy = if facts.stored.contains(folder) {
            format!("run `stvc restore \"characters/{folder}\"` to restore the card")
        } else {
            "import the character again, then rename its card or the folder so that both have the same name".to_owned()
        };
        let finding = Finding::new(Code::CharacterMissing, format!("chats/{folder}"), message);
        findings.push(finding.remedy(remedy));
    }
    for (card, book) in &facts.missing_books {
        let message = format!("it names the lorebook {book:?}, which does not exist");
        let subject = format!("characters/{card}.png");
        let finding = Finding::new(Code::CardLorebookMissing, subject, message);
        let remedy = format!(
            "run `stvc restore \"worlds/{book}\"` to restore it if it was ever stored; or choose another lorebook in SillyTavern"
        );
        findings.push(finding.remedy(remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_characters_and_card_lorebooks_are_reported() {
        let mut facts = CharacterFacts {
            cards: ["Mira".to_owned()].into(),
            chats: [("Mira".to_owned(), 3), ("Bo".to_owned(), 1), ("Zoë 雪".to_owned(), 2)].into(),
            stored: ["Bo".to_owned()].into(),
            missing_books: vec![("Mira".into(), "Lore".into())],
        };
        let text = characters(&facts);
        let subjects: Vec<_> = text.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(subjects, ["chats/Bo", "chats/Zoë 雪", "characters/Mira.png"]);
        assert!(text[0].message.starts_with("1 chat is not shown"), "{}", text[0].message);
        assert!(text[0].remedy.as_ref().unwrap().contains("stvc restore \"characters/Bo\""));
        facts.cards.clear();
        facts.missing_books.clear();
        assert!(characters(&facts).is_empty());
    }
}
