//! Width, height and character set of the terminal.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

/// A width that no line reaches. It is small enough that sums do not overflow.
const ENDLESS: usize = 1 << 40;

#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The width of the terminal, or `None` if another program reads the output. In that case, no
    /// line is shortened.
    columns: Option<usize>,
    pub rows: Option<usize>,
    pub is_ascii: bool,
}

impl Screen {
    pub fn get() -> &'static Self {
        static SCREEN: OnceLock<Screen> = OnceLock::new();
        SCREEN.get_or_init(Self::look)
    }

    fn look() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
        let is_terminal = io::stdout().is_terminal();
        let seen = terminal_size::terminal_size().filter(|_| is_terminal);
        // `COLUMNS` is ignored in a pipe, because some shells export the variable.
        let said = number("COLUMNS").filter(|_| is_terminal);
        let columns = number("STVC_COLUMNS").or(said).or(seen.map(|(width, _)| width.0.into()));
        // Tests run without a terminal.
        let columns = columns.or(cfg!(test).then_some(100));
        Self {
            columns: columns.map(|columns| columns.clamp(20, 200)),
            rows: seen.map(|(_, height)| number("LINES").unwrap_or(height.0.into())),
            is_ascii: is_ascii(|name| std::env::var(name).ok()),
        }
    }

    pub fn columns(&self) -> usize {
        self.columns.unwrap_or(ENDLESS)
    }

    pub fn is_pipe(&self) -> bool {
        self.columns.is_none()
    }
}

/// Returns whether the locale has a character set other than UTF-8. If no locale is set, UTF-8 is
/// assumed.
fn is_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Replaces stvc's line-drawing and typographic characters with ASCII of the same width.
pub fn in_ascii(text: &str) -> String {
    let sign = |c: char| match c {
        '│' | '├' | '┤' | '┼' | '╷' | '╵' => '|',
        '─' | '┬' | '┴' | '—' | '–' => '-',
        '╭' | '╮' => '.',
        '╰' | '╯' | '└' => '\'',
        '◉' => '@',
        '○' => 'o',
        '…' => '~',
        '→' => '>',
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        '·' => '.',
        '×' => 'x',
        c => c,
    };
    text.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_without_utf8_selects_ascii_symbols() {
        let ascii = |set: &[(&str, &str)]| {
            is_ascii(|name| set.iter().find(|(set, _)| *set == name).map(|(_, v)| (*v).to_owned()))
        };
        assert!(!ascii(&[]));
        assert!(ascii(&[("LANG", "C")]));
        assert!(ascii(&[("LC_ALL", "POSIX"), ("LANG", "de_DE.UTF-8")]));
        assert!(ascii(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!ascii(&[("LC_ALL", ""), ("LANG", "de_DE.utf8")]));
        assert!(!ascii(&[("LC_ALL", "C.UTF-8")]));
        assert_eq!(in_ascii("├─╮ ○ a…b → 雨"), "|-. o a~b > 雨");
    }
}
