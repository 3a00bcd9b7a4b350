//! Names in a message: the first few of them, however many there are.

use std::fmt::Display;

/// How many names a message lists.
pub const SHOWN: usize = 5;

/// Returns the first few of a list, and how many more there are.
pub fn listed<T: Display>(items: &[T]) -> String {
    let shown: Vec<_> = items.iter().take(SHOWN).map(T::to_string).collect();
    format!("{}{}", shown.join(", "), more(items.len(), shown.len()))
}

/// Returns ` and 3 more`, if there are more than are shown.
pub fn more(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let names: Vec<_> = (0..500).collect();
        assert_eq!(listed(&names), "0, 1, 2, 3, 4 and 495 more");
        assert_eq!(listed(&names[..5]), "0, 1, 2, 3, 4");
        assert_eq!(listed::<u8>(&[]), "");
    }
}
