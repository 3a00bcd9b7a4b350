//! Splits texts into words, and searched text into the words that a text must have to contain it.
//!
//! A text is split at every character that is neither a letter nor a digit. Scripts without spaces
//! have no such words: their characters are indexed in pairs, and long words, such as encoded data,
//! in triples. So the number of different words is limited.

/// Maximum length of a word in characters. A longer word is indexed in triples.
const LONGEST: usize = 32;
const PAIR: usize = 2;
const TRIPLE: usize = 3;

/// The end of each word in a dictionary, and the first character of a triple. Words contain
/// neither.
pub const END: u8 = b'\n';
const IN_LONG_WORD: char = '\u{1}';

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Letters and digits of scripts that separate words by spaces.
    Spaced,
    /// Characters of other scripts, and symbols such as emoji.
    Unspaced,
    /// White space, punctuation, and marks.
    None,
}

fn script(c: char) -> Script {
    match c {
        _ if c.is_ascii_alphanumeric() => Script::Spaced,
        '\0'..='\x7f' => Script::None,
        // Thai and Lao, Burmese, Khmer, symbols.
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
            Script::Unspaced
        }
        '\u{2190}'..='\u{2bff}' | '\u{10000}'.. => Script::Unspaced,
        '\u{2e80}'.. if c.is_alphanumeric() => Script::Unspaced,
        _ if c.is_alphanumeric() => Script::Spaced,
        _ => Script::None,
    }
}

/// Calls `each` with every longest sequence of characters of one script, and whether something
/// precedes and follows it in `text`.
fn each_run(text: &str, each: &mut dyn FnMut(&str, Script, bool, bool)) {
    let mut start = 0;
    let mut current = Script::None;
    for (at, c) in text.char_indices() {
        let next = script(c);
        if next != current {
            if current != Script::None {
                each(&text[start..at], current, start > 0, true);
            }
            (start, current) = (at, next);
        }
    }
    if current != Script::None {
        each(&text[start..], current, start > 0, false);
    }
}

fn each_gram(run: &str, length: usize, each: &mut dyn FnMut(&str)) {
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(length - 1);
    let starts = run.char_indices().map(|(at, _)| at);
    starts.zip(ends).for_each(|(start, end)| each(&run[start..end]));
}

fn is_longer_than(run: &str, length: usize) -> bool {
    run.len() > length && run.chars().nth(length).is_some()
}

/// Regular expressions that ignore case treat this letter as an `s`.
fn with_plain_s(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('ſ') { text.replace('ſ', "s").into() } else { text.into() }
}

/// Calls `each` with the words of a text, whose case must have been folded.
pub fn each_word(folded: &str, each: &mut dyn FnMut(&str)) {
    each_run(&with_plain_s(folded), &mut |run, script, _, _| match script {
        Script::Unspaced if is_longer_than(run, PAIR) => each_gram(run, PAIR, each),
        Script::Spaced if is_longer_than(run, LONGEST) => {
            each_gram(run, TRIPLE, &mut |triple| each(&format!("{IN_LONG_WORD}{triple}")));
        }
        _ => each(run),
    });
}

/// A part of the searched text, and the words of a text that contains it.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Text that occurs in a dictionary with such a word. It includes the ends of the word where
    /// they are known.
    pub word: Option<Vec<u8>>,
    /// If `word` does not occur, all of these must.
    pub grams: Vec<Vec<u8>>,
}

/// The words that a text must have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan(pub Vec<Part>);

impl Plan {
    /// Returns the plan for texts that contain all of `required`, whose case must have been folded.
    pub fn of(required: &[String]) -> Self {
        let mut parts = Vec::new();
        for text in required {
            each_run(&with_plain_s(text), &mut |run, script, begins, ends| {
                parts.push(part(run, script, begins, ends));
            });
        }
        Self(parts)
    }
}

fn part(run: &str, script: Script, begins: bool, ends: bool) -> Part {
    let between = |begins: bool, text: &str, ends: bool| {
        let end = |is_there: bool| is_there.then_some(END);
        end(begins).into_iter().chain(text.bytes()).chain(end(ends)).collect::<Vec<u8>>()
    };
    let mut grams = Vec::new();
    if script == Script::Unspaced {
        if !is_longer_than(run, PAIR - 1) {
            return Part { word: Some(between(false, run, false)), grams };
        }
        each_gram(run, PAIR, &mut |pair| grams.push(between(true, pair, true)));
        return Part { word: None, grams };
    }
    if begins && ends && !is_longer_than(run, LONGEST) {
        return Part { word: Some(between(true, run, true)), grams };
    }
    if !is_longer_than(run, TRIPLE - 1) {
        // It may be a part of a triple.
        return Part { word: Some(between(false, run, false)), grams };
    }
    each_gram(run, TRIPLE, &mut |triple| {
        grams.push(between(true, &format!("{IN_LONG_WORD}{triple}"), true));
    });
    let word = (!is_longer_than(run, LONGEST)).then(|| between(begins, run, ends));
    Part { word, grams }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_split_at_punctuation_and_between_scripts() {
        assert_eq!(words("don't ask 3.14—ärger"), ["don", "t", "ask", "3", "14", "ärger"]);
        assert_eq!(words("夜の雨rain、雨 🌧"), ["夜の", "の雨", "rain", "雨", "🌧"]);
        assert_eq!(words(&"ab".repeat(17)).len(), 32);
        assert_eq!(words(&"ab".repeat(16)).len(), 1);
        assert_eq!(words("ſea"), ["sea"]);
        assert!(words(" …*?! ").is_empty());
    }

    #[test]
    fn plan_requires_the_ends_of_words_that_the_searched_text_shows() {
        let plan = |text: &str| {
            let show = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).replace('\n', "|");
            let Plan(parts) = Plan::of(&[text.to_owned()]);
            let words = parts.iter().map(|part| part.word.as_ref().map(show).unwrap_or_default());
            let grams = parts.iter().map(|part| part.grams.len());
            words.zip(grams).collect::<Vec<_>>()
        };
        let part = |word: &str, grams| (word.to_owned(), grams);
        assert_eq!(plan("ormora"), [part("ormora", 4)]);
        assert_eq!(
            plan("the tide office"),
            [part("the|", 1), part("|tide|", 0), part("|office", 4)]
        );
        assert_eq!(plan("-tide"), [part("|tide", 2)]);
        assert_eq!(plan("x y"), [part("x", 0), part("y", 0)]);
        assert_eq!(plan("雨が降"), [part("", 2)]);
        assert_eq!(plan("雨"), [part("雨", 0)]);
        assert_eq!(plan("…"), []);
    }
}
