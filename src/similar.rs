//! Finds existing names that are similar to a name with a typing error, for suggestions.

const NEAR: f64 = 0.75;
const MAX_SUGGESTIONS: usize = 3;
/// Longer text is not a mistyped name, and the comparison would take long.
const MAX_COMPARED_BYTES: usize = 600;

/// Returns the items whose text is similar to `typed`, the most similar first. `typed` may also be
/// a part of the text with a typing error.
pub(crate) fn similar<'t, T>(
    typed: &str,
    candidates: impl IntoIterator<Item = (&'t str, T)>,
) -> Vec<T> {
    if typed.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let typed = typed.to_lowercase();
    let typed_words = words(&typed);
    let nearness = |text: &str| {
        let text = text.to_lowercase();
        let whole = nearness(&typed, text.rsplit('/').next().unwrap_or(&text));
        let there = words(&text);
        let nearest = |word: &&str| there.iter().map(|it| nearness(word, it)).fold(0.0, f64::max);
        let by_words = typed_words.iter().map(nearest).fold(1.0, f64::min);
        if typed_words.is_empty() { whole } else { whole.max(by_words) }
    };
    let candidates = candidates.into_iter().map(|(text, item)| (nearness(text), item));
    let mut near: Vec<_> = candidates.filter(|(nearness, _)| *nearness >= NEAR).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(MAX_SUGGESTIONS).map(|(_, item)| item).collect()
}

/// Returns the similarity of two words, from 0 to 1. Chinese and Japanese words are so short that
/// one wrong character of three is a typing error.
fn nearness(a: &str, b: &str) -> f64 {
    let is_short = |text: &str| !text.is_ascii() && text.chars().count() == 3;
    if is_short(a) && is_short(b) && strsim::damerau_levenshtein(a, b) == 1 {
        return NEAR;
    }
    strsim::normalized_damerau_levenshtein(a, b)
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn similar_names_are_sorted_by_distance_and_others_omitted() {
        let of = |typed, names: &[&'static str]| -> Vec<&str> {
            similar(typed, names.iter().map(|name| (*name, *name)))
        };
        let names = ["chats/Mira/Harbour nights", "chats/Mira/Harbour night", "chats/Mira/Snow"];
        assert_eq!(of("Harbor night", &names), [names[1], names[0]]);
        assert_eq!(of("Kestrl", &["Kestrel", "Harbour"]), ["Kestrel"]);
        assert_eq!(of("葬花咏", &["chats/黛玉/葬花吟", "chats/黛玉/问菊"]), ["chats/黛玉/葬花吟"]);
        assert!(of("一二三", &["一四五"]).is_empty());
    }
}
