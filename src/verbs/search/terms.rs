//! Search terms and their positions in a text. Case is ignored in every script, and a sequence of
//! white space equals one space.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use serde::Serialize;

#[derive(Clone, Debug)]
pub(super) enum Terms {
    /// All of these words must occur in the text. A word may be a part of a longer word.
    Words(Vec<String>),
    Pattern(Regex),
}

/// The part of a text around a match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The excerpt on one line, with `…` where text was omitted.
    pub text: String,
    /// Byte ranges of the matches in `text`, sorted and not overlapping.
    #[serde(skip)]
    pub marks: Vec<Range<usize>>,
}

/// Maximum length of an excerpt in characters. `LEAD` is the number of characters before the match.
const LENGTH: usize = 160;
const LEAD: usize = 30;
/// Maximum number of occurrences of a word that are considered when the best excerpt is chosen.
const PLACES: usize = 100;

impl Terms {
    pub(super) fn words(text: &str) -> Self {
        let folded = fold(text);
        let mut words: Vec<_> = folded.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        Self::Words(words)
    }

    pub(super) fn phrase(text: &str) -> Self {
        let folded = fold(text);
        Self::Words(
            Some(folded.trim().to_owned()).filter(|text| !text.is_empty()).into_iter().collect(),
        )
    }

    /// Compiles a regular expression that ignores case. The error is a description of the syntax
    /// error.
    pub(super) fn pattern(text: &str) -> Result<Self, String> {
        let pattern = RegexBuilder::new(text).case_insensitive(true).build();
        let why =
            |error: regex::Error| error.to_string().lines().last().unwrap_or_default().to_owned();
        pattern.map(Self::Pattern).map_err(why)
    }

    /// Returns whether a text matches. An empty list of words never matches.
    pub(super) fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Words(words) => {
                // `fold` is cheaper than [`FoldedText`], and most texts do not match.
                let folded = fold(text);
                !words.is_empty() && words.iter().all(|word| folded.contains(word.as_str()))
            }
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }

    /// Returns texts that occur in every matching text, all in the form of [`fold`].
    pub(super) fn required(&self) -> Vec<String> {
        match self {
            Self::Words(words) => words.clone(),
            Self::Pattern(pattern) => {
                let mut literals = Vec::new();
                if let Ok(parsed) = regex_syntax::parse(pattern.as_str()) {
                    add_literals(&parsed, &mut literals);
                }
                literals
            }
        }
    }

    /// Returns the excerpt of `text` that contains the most words.
    pub(super) fn excerpt(&self, text: &str) -> Excerpt {
        let mut places: Vec<(usize, usize)> = Vec::new();
        match self {
            Self::Words(words) => {
                let folded = FoldedText::of(text);
                for (n, word) in words.iter().enumerate() {
                    let found = folded.text.match_indices(word.as_str()).take(PLACES);
                    places.extend(found.map(|(at, _)| (folded.source[at], n)));
                }
            }
            Self::Pattern(pattern) => {
                places.extend(pattern.find_iter(text).take(PLACES).map(|found| (found.start(), 0)));
            }
        }
        places.sort_unstable();
        let words_from = |start: usize| {
            let near = places[start..].iter();
            let near = near.take_while(|(at, _)| at - places[start].0 < LENGTH - LEAD);
            near.map(|(_, word)| word).collect::<std::collections::HashSet<_>>().len()
        };
        let best = (0..places.len()).rev().max_by_key(|start| words_from(*start));
        let at = best.map_or(0, |best| places[best].0);

        let begin =
            text[..at].char_indices().rev().take(LEAD).last().map_or(at, |(begin, _)| begin);
        // Start at the beginning of a word, if a word begins before the match.
        let next = text[begin..at].find(char::is_whitespace).filter(|_| begin > 0);
        let begin = next.map_or(begin, |next| begin + next);
        let end = text[begin..].char_indices().nth(LENGTH).map_or(text.len(), |(n, _)| begin + n);
        let piece = text[begin..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let before = if text[..begin].trim().is_empty() { "" } else { "…" };
        let after = if text[end..].trim().is_empty() { "" } else { "…" };
        let text = format!("{before}{piece}{after}");
        Excerpt { marks: self.marks(&text), text }
    }

    fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let words = match self {
            Self::Words(words) => words,
            Self::Pattern(pattern) => {
                let marks = pattern.find_iter(text).map(|found| found.range());
                return marks.filter(|mark| !mark.is_empty()).collect();
            }
        };
        let folded = FoldedText::of(text);
        let mut marks: Vec<Range<usize>> = Vec::new();
        for word in words {
            for (at, _) in folded.text.match_indices(word.as_str()) {
                let last = folded.source[at + word.len() - 1];
                let end = text[last..].chars().next().map_or(last, |c| last + c.len_utf8());
                marks.push(folded.source[at]..end);
            }
        }
        marks.sort_unstable_by_key(|mark| (mark.start, mark.end));
        let mut apart: Vec<Range<usize>> = Vec::new();
        for mark in marks {
            match apart.last_mut() {
                Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
                _ => apart.push(mark),
            }
        }
        apart
    }
}

/// Adds the texts that occur in every match of a pattern that ignores case. A character with a case
/// is added only if it is ASCII: regular expressions fold the case of others differently.
fn add_literals(pattern: &Hir, literals: &mut Vec<String>) {
    match pattern.kind() {
        HirKind::Literal(literal) => {
            let is_safe =
                |c: char| c.is_ascii() || c.to_lowercase().chain(c.to_uppercase()).eq([c, c]);
            let text = String::from_utf8_lossy(&literal.0);
            let parts = text.split(|c| !is_safe(c)).filter(|part| !part.is_empty());
            literals.extend(parts.map(fold));
        }
        HirKind::Concat(parts) => parts.iter().for_each(|part| add_literals(part, literals)),
        HirKind::Capture(group) => add_literals(&group.sub, literals),
        HirKind::Repetition(repeated) if repeated.min > 0 => {
            add_literals(&repeated.sub, literals);
        }
        _ => {}
    }
}

struct FoldedText {
    text: String,
    /// For each byte of `text`: the position of its character in the original text.
    source: Vec<usize>,
}

impl FoldedText {
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), source: Vec::new() };
        each_folded(text, |at, c| {
            folded.text.push(c);
            folded.source.resize(folded.text.len(), at);
        });
        folded
    }
}

/// Returns the form of a text in which texts that differ only in case and white space are equal.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    each_folded(text, |_, c| folded.push(c));
    folded
}

fn each_folded(text: &str, mut each: impl FnMut(usize, char)) {
    let mut after_space = false;
    for (at, c) in text.char_indices() {
        let is_space = c.is_whitespace();
        match c {
            _ if is_space && after_space => {}
            _ if is_space => each(at, ' '),
            _ if c.is_ascii() => each(at, c.to_ascii_lowercase()),
            // Sigma is the only letter with two lower-case forms.
            'ς' => each(at, 'σ'),
            _ => c.to_lowercase().for_each(|c| each(at, c)),
        }
        after_space = is_space;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(terms: Terms, text: &str) -> String {
        if !terms.is_in(text) {
            return "not found".into();
        }
        let excerpt = terms.excerpt(text);
        let mut out = String::new();
        let mut at = 0;
        for mark in excerpt.marks {
            out.push_str(&format!(
                "{}[{}]",
                &excerpt.text[at..mark.start],
                &excerpt.text[mark.clone()]
            ));
            at = mark.end;
        }
        out + &excerpt.text[at..]
    }

    #[test]
    fn words_are_found_in_any_case_and_script() {
        assert_eq!(
            marked(Terms::words("TIDE office"), "The Office of tides"),
            "The [Office] of [tide]s"
        );
        assert_eq!(marked(Terms::words("ärger"), "ÄRGER\n\nim Büro"), "[ÄRGER] im Büro");
        assert_eq!(marked(Terms::words("οδοσ"), "ΟΔΟΣ, οδος"), "[ΟΔΟΣ], [οδος]");
        assert_eq!(marked(Terms::words("雨"), "夜の雨が降る"), "夜の[雨]が降る");
        assert_eq!(marked(Terms::words("i"), "İstanbul"), "[İ]stanbul");
        assert_eq!(marked(Terms::words("tide ferry"), "The tide."), "not found");
        assert_eq!(marked(Terms::words("aa"), "xaaaax"), "x[aaaa]x");
    }

    #[test]
    fn phrase_matches_adjacent_words_with_any_whitespace() {
        assert_eq!(marked(Terms::phrase("the  Tide"), "Of the\n tide"), "Of [the tide]");
        assert_eq!(marked(Terms::phrase("the tide"), "tide the"), "not found");
        assert_eq!(marked(Terms::words("the tide"), "tide the"), "[tide] [the]");
    }

    #[test]
    fn excerpt_with_the_most_matching_words_is_shown() {
        let text =
            format!("tide {} the ferry left with the tide {}", "x ".repeat(200), "y ".repeat(200));
        let shown = marked(Terms::words("tide ferry"), &text);
        assert!(shown.starts_with("…x x") && shown.ends_with("y…"), "{shown}");
        assert!(shown.contains("the [ferry] left with the [tide] y"), "{shown}");
    }

    #[test]
    fn literals_of_a_pattern_occur_in_every_match() {
        let required = |text| Terms::pattern(text).unwrap().required();
        assert_eq!(required("Tide.*(?:OFFICE)+ [a-z]"), ["tide", "office", " "]);
        assert_eq!(required("a(bc)?d|x"), [""; 0]);
        assert_eq!(required("夜の雨 Ärger"), ["夜の雨 ", "rger"]);
        assert_eq!(required("(?i)tide x{0,3}"), [" "]);
    }

    #[test]
    fn empty_query_finds_nothing() {
        assert_eq!(marked(Terms::words(" \n "), "anything"), "not found");
        assert_eq!(marked(Terms::phrase(""), "anything"), "not found");
    }
}
