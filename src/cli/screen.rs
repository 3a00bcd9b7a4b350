//! What the one who reads can see: how wide, how high, and which signs.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

/// Wider than anything that is printed, and small enough to calculate with.
const ENDLESS: usize = 1 << 40;

/// Where standard output goes.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// How wide it is; none: another program reads it, and nothing is cut.
    columns: Option<usize>,
    /// How many lines it shows, if somebody looks at it.
    pub rows: Option<usize>,
    /// Whether it can show no more than ASCII.
    pub is_ascii: bool,
}

impl Screen {
    /// It does not change while the program runs.
    pub fn get() -> &'static Self {
        static SCREEN: OnceLock<Screen> = OnceLock::new();
        SCREEN.get_or_init(Self::look)
    }

    fn look() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
        let is_terminal = io::stdout().is_terminal();
        let seen = terminal_size::terminal_size().filter(|_| is_terminal);
        // Some shells export how wide they are, also to what is piped elsewhere.
        let said = number("COLUMNS").filter(|_| is_terminal);
        let columns = number("STVC_COLUMNS").or(said).or(seen.map(|(width, _)| width.0.into()));
        // A test has no terminal and is none.
        let columns = columns.or(cfg!(test).then_some(100));
        Self {
            columns: columns.map(|columns| columns.clamp(20, 200)),
            rows: seen.map(|(_, height)| number("LINES").unwrap_or(height.0.into())),
            is_ascii: is_ascii(|name| std::env::var(name).ok()),
        }
    }

    /// How many columns there are; as good as endless if another program reads.
    pub fn columns(&self) -> usize {
        self.columns.unwrap_or(ENDLESS)
    }

    /// Whether another program reads it: then it gets everything, uncut, one record a line.
    pub fn is_pipe(&self) -> bool {
        self.columns.is_none()
    }
}

/// Whether the locale says that there is no Unicode. Where none is set, nothing is known, and nearly every terminal has it.
fn is_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// The drawing and the typographic signs of this program in ASCII, each as wide as it was.
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
    fn signs_by_locale() {
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
