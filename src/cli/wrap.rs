//! Wraps long lines for a narrow screen.

use super::screen::Screen;

/// Wraps a text after a label, and indents the rows after the first to the start of the text. Does
/// not wrap if another program reads the output.
pub fn with_hanging_indent(label: &str, text: &str, indent: usize) -> Vec<String> {
    let screen = Screen::get();
    let room = screen.columns().saturating_sub(indent + 1);
    if screen.is_pipe() || room < 20 {
        return vec![format!("{label}{text}").trim_end().to_owned()];
    }
    let rows = each_painted(textwrap::wrap(text, room).into_iter().map(|row| row.into_owned()));
    let row = |(n, row): (usize, String)| match n {
        0 => format!("{label}{row}").trim_end().to_owned(),
        _ => format!("{}{row}", " ".repeat(indent)),
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// Resets the colour at the end of each row and sets it again at the start of the next row, because
/// pagers show each row separately.
fn each_painted(rows: impl Iterator<Item = String>) -> Vec<String> {
    const RESET: &str = "\u{1b}[0m";
    let mut open = String::new();
    let mut painted = Vec::new();
    for row in rows {
        let mut now = open.clone();
        for (at, _) in row.match_indices("\u{1b}[") {
            let end = row[at..].find('m').map_or(row.len(), |end| at + end + 1);
            match &row[at..end] {
                RESET => now.clear(),
                code => now.push_str(code),
            }
        }
        let end = if now.is_empty() { "" } else { RESET };
        painted.push(format!("{open}{row}{end}"));
        open = now;
    }
    painted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_indented_and_repeat_their_colours() {
        let red = "\u{1b}[31m";
        let text = format!("{red}{}\u{1b}[0m plain", "word ".repeat(30).trim_end());
        let lines = with_hanging_indent("  + ", &text, 4);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with(&format!("  + {red}word word")));
        assert!(lines[0].ends_with("word\u{1b}[0m"));
        assert!(lines[1].starts_with(&format!("    {red}word")));
        assert!(lines[1].ends_with("word\u{1b}[0m plain"));
        assert_eq!(with_hanging_indent("  + ", "", 4), ["  +"]);
        assert!(with_hanging_indent("", &"猫".repeat(120), 0).len() > 1, "no spaces between words");
    }
}
