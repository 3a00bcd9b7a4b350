//! Characters: SillyTavern shows a chat only under one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Code, Finding};

#[derive(Clone, Debug, Default)]
pub struct CharacterFacts {
    /// The cards, by the names of their files without the ending.
    pub cards: BTreeSet<String>,
    /// The folders of chats, and how many are in each.
    pub chats: BTreeMap<String, usize>,
    /// Cards that are in the store.
    pub stored: BTreeSet<String>,
    /// Lorebooks that cards name and that are not there: card and lorebook.
    pub missing_books: Vec<(String, String)>,
}

pub fn characters(facts: &CharacterFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A library without any card is only a part of one of SillyTavern's.
    let folders = facts.chats.iter().filter(|_| !facts.cards.is_empty());
    for (folder, chats) in folders.filter(|(folder, _)| !facts.cards.contains(*folder)) {
        let them_are = if *chats == 1 { "1 chat is".into() } else { format!("{chats} chats are") };
        let message = format!(
            "{them_are} not shown by SillyTavern: there is no character whose card is {folder}.png"
        );
        let remedy = if facts.stored.contains(folder) {
            format!("`stvc restore \"characters/{folder}\"` brings it back")
        } else {
            "import the character again, and rename its card or the folder so that both are called the same".to_owned()
        };
        let finding = Finding::new(Code::CharacterMissing, format!("chats/{folder}"), message);
        findings.push(finding.remedy(remedy));
    }
    for (card, book) in &facts.missing_books {
        let message = format!("it names the lorebook {book:?}, which does not exist");
        let subject = format!("characters/{card}.png");
        let finding = Finding::new(Code::CardLorebookMissing, subject, message);
        let remedy = format!(
            "`stvc restore \"worlds/{book}\"` brings it back if it was ever stored; or choose another in SillyTavern"
        );
        findings.push(finding.remedy(remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_missed_is_told() {
        let mut facts = CharacterFacts {
            cards: ["Mira".to_owned()].into(),
            chats: [("Mira".to_owned(), 3), ("Bo".to_owned(), 1), ("Zoë 雪".to_owned(), 2)].into(),
            stored: ["Bo".to_owned()].into(),
            missing_books: vec![("Mira".into(), "Lore".into())],
        };
        let told = characters(&facts);
        let subjects: Vec<_> = told.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(subjects, ["chats/Bo", "chats/Zoë 雪", "characters/Mira.png"]);
        assert!(told[0].message.starts_with("1 chat is not shown"), "{}", told[0].message);
        assert!(told[0].remedy.as_ref().unwrap().contains("stvc restore \"characters/Bo\""));
        facts.cards.clear();
        facts.missing_books.clear();
        assert!(characters(&facts).is_empty());
    }
}
