//! Output: text or JSON, coloured or not, everything or only what was asked for.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use chrono::{DateTime, FixedOffset};

use super::args::GlobalArgs;
use super::clock::Clock;
use super::exit::FAILED;
use super::pager;
use super::progress_bar::Bar;
use super::screen::{Screen, in_ascii};
use super::wording::{clean, name, short};
use stvc::configuration::{Configuration, When};
use stvc::findings::{Finding, Level};
use stvc::library::TimelineName;
use stvc::lines::answers::Answer;
use stvc::lines::{Line, Summary};

pub struct Look {
    pub id: Style,
    pub name: Style,
    pub dim: Style,
    pub tag: Style,
    pub good: Style,
    pub bad: Style,
    pub warn: Style,
}

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}

/// Whether they reach the terminal is decided where text is written.
pub const LOOK: Look = Look {
    id: color(AnsiColor::Yellow),
    name: Style::new().bold(),
    dim: Style::new().dimmed(),
    tag: color(AnsiColor::Cyan),
    good: color(AnsiColor::Green),
    bad: color(AnsiColor::Red),
    warn: color(AnsiColor::Magenta),
};

pub fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

pub fn dim(text: impl Display) -> String {
    paint(LOOK.dim, text)
}

pub fn bold(text: impl Display) -> String {
    paint(LOOK.name, text)
}

pub fn short_id(id: impl Display) -> String {
    paint(LOOK.id, short(id))
}

pub fn bold_name(timeline: &TimelineName) -> String {
    bold(name(timeline))
}

/// Returns the word for a level, in its colour.
pub fn level_word(level: Level) -> String {
    match level {
        Level::Error => paint(LOOK.bad, "error"),
        Level::Warning => paint(LOOK.warn, "warning"),
        Level::Info => dim("note"),
    }
}

pub struct Out {
    json: bool,
    quiet: bool,
    color: ColorChoice,
    pub clock: Clock,
    summary: Option<Summary>,
    /// Why nothing can be written to standard output any more.
    cut_off: Option<io::Error>,
    /// Text that is written together with what follows it; `None` where each line is news.
    waiting: Option<String>,
    pager: Option<String>,
    /// Printed after the pager.
    errors: Vec<String>,
}

/// How much is written at once.
const MUCH: usize = 32 << 10;

impl Out {
    pub fn new(args: &GlobalArgs, settings: &Configuration, now: DateTime<FixedOffset>) -> Self {
        let color = match args.color.or(settings.color) {
            Some(When::Auto) | None => ColorChoice::Auto,
            Some(When::Always) => ColorChoice::AlwaysAnsi,
            Some(When::Never) => ColorChoice::Never,
        };
        Self {
            json: args.json,
            quiet: args.quiet,
            color,
            clock: Clock { now, style: args.date.or(settings.date) },
            summary: None,
            cut_off: None,
            waiting: None,
            pager: None,
            errors: Vec::new(),
        }
    }

    /// Collects an answer that may be long: for the pager, or to write much of it at once.
    pub fn collecting(mut self, args: &GlobalArgs, settings: &Configuration) -> Self {
        let is_paged = !args.no_pager && !args.json && Screen::get().rows.is_some();
        self.pager = is_paged.then(|| pager::command(settings.pager.as_deref())).flatten();
        self.waiting = Some(String::new());
        self
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a user is there to answer questions, also those of a program that is run.
    pub fn may_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    pub fn is_colored(&self) -> bool {
        match self.color {
            ColorChoice::Auto => anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        }
    }

    /// Prints a line of the answer.
    pub fn line(&mut self, text: impl AsRef<str>) {
        if !self.json {
            self.write(&format!("{}\n", text.as_ref()));
        }
    }

    pub fn text(&mut self, text: &str) {
        self.write(text);
    }

    /// Prints a line that `--quiet` leaves out.
    pub fn say(&mut self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// Prints a JSON line of a command that reports while it works.
    pub fn object(&mut self, line: Line<'_>) {
        if self.json {
            let text = serde_json::to_string(&line).unwrap_or_default();
            self.write_json(&text);
        }
    }

    /// Prints the answer of a command: its lines for programs, or `text` for people. Returns the
    /// exit code.
    pub fn answer(&mut self, answer: &impl Answer, text: impl FnOnce(&mut Self)) -> u8 {
        if self.json {
            answer.lines(&mut |line| self.object(line));
            self.summary = Some(answer.summary());
        } else {
            text(self);
        }
        answer.exit()
    }

    /// Escapes characters that serde_json leaves alone and a terminal may obey (DEL, C1, direction
    /// marks); they occur only inside strings. Characters below U+0020 are spacing of a raw value.
    fn write_json(&mut self, text: &str) {
        let mut line = String::with_capacity(text.len() + 1);
        for c in text.chars() {
            match c {
                '\0'..' ' => line.push(' '),
                '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    line.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => line.push(c),
            }
        }
        line.push('\n');
        self.put(&line);
    }

    /// Prints findings: warnings and errors on standard error. Equal ones about several subjects
    /// are printed once.
    pub fn findings(&mut self, findings: &[Finding]) {
        if self.json {
            findings.iter().for_each(|finding| self.object(Line::Finding(finding)));
            return;
        }
        let same = |a: &Finding, b: &Finding| {
            (a.code, a.level, &a.message, &a.remedy) == (b.code, b.level, &b.message, &b.remedy)
        };
        for (n, finding) in findings.iter().enumerate() {
            let said = findings[..n].iter().any(|other| same(other, finding));
            if said || finding.level < Level::Error && self.quiet {
                continue;
            }
            let (subject, message) = (clean(&finding.subject), clean(&finding.message));
            let mut text = format!("{}: {subject}: {message}", level_word(finding.level));
            let others: Vec<_> =
                findings[n + 1..].iter().filter(|other| same(other, finding)).collect();
            if !others.is_empty() {
                text.push_str(&format!("\n  {}", also(&others)));
            }
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("\n  {}", dim(clean(remedy))));
            }
            if finding.level == Level::Info {
                self.line(text);
            } else {
                self.error_line(&text);
            }
        }
    }

    /// Prints a line on standard error that `--quiet` leaves out, where standard output is taken.
    pub fn note(&mut self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(text);
        }
    }

    pub fn error_line(&mut self, text: &str) {
        let text = on_screen(text);
        if self.pager.is_some() {
            return self.errors.push(text.into_owned());
        }
        self.write_out();
        let _ = writeln!(anstream::AutoStream::new(io::stderr(), self.color), "{text}");
    }

    pub fn warn(&mut self, text: &str) {
        if !self.json {
            self.error_line(text);
        }
    }

    pub fn end_with(&mut self, summary: Summary) {
        self.summary = Some(summary);
    }

    pub fn broken<'b>(&mut self, broken: impl IntoIterator<Item = &'b String>) {
        for why in broken {
            self.error_line(&format!("{}: {}", level_word(Level::Error), clean(why)));
        }
    }

    /// Prints the summary now; another one follows.
    pub fn end_summary(&mut self) {
        if let Some(summary) = self.summary.take() {
            self.object(Line::Summary(summary));
        }
    }

    pub fn columns(&self) -> usize {
        Screen::get().columns()
    }

    /// Prints lines about one thing: below each other, or as one line for another program.
    pub fn record(&mut self, lines: &[String]) {
        if Screen::get().is_pipe() {
            self.line(lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("  "))
        } else {
            lines.iter().for_each(|line| self.line(line))
        }
    }

    pub fn progress(&self) -> Bar {
        Bar::new(!self.json && !self.quiet && io::stderr().is_terminal())
    }

    /// Prints what is left, and returns the exit code. `stvc log | head` closes the pipe, which is
    /// not an error.
    pub fn finish(mut self, code: u8) -> u8 {
        self.end_summary();
        self.show_paged();
        self.write_out();
        match self.cut_off.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.error_line(&format!("{}: standard output: {error}", level_word(Level::Error)));
                code.max(FAILED)
            }
            _ => code,
        }
    }

    fn show_paged(&mut self) {
        let Some(pager) = self.pager.take() else { return };
        let mut text = self.waiting.take().unwrap_or_default();
        if !self.is_colored() {
            text = anstream::adapter::strip_str(&text).to_string();
        }
        let is_long = pager::is_longer(&text, Screen::get());
        let shown = if is_long { pager::show(&text, &pager) } else { Ok(false) };
        if !matches!(shown, Ok(true)) {
            self.write_now(&text);
        }
        if let Err(error) = shown {
            let why = format!("the pager {pager:?} cannot be used: {error}");
            self.error_line(&format!("{}: {why}", level_word(Level::Warning)));
        }
        std::mem::take(&mut self.errors).iter().for_each(|line| self.error_line(line));
    }

    fn write(&mut self, text: &str) {
        self.put(&on_screen(text));
    }

    fn put(&mut self, text: &str) {
        let Some(waiting) = &mut self.waiting else { return self.write_now(text) };
        waiting.push_str(text);
        if waiting.len() >= MUCH && self.pager.is_none() {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        if let Some(text) = self.waiting.as_mut().map(std::mem::take) {
            self.write_now(&text);
        }
    }

    /// JSON does not go through the stream that strips escapes: that drops DEL.
    fn write_now(&mut self, text: &str) {
        if self.cut_off.is_some() || text.is_empty() {
            return;
        }
        let mut plain = io::stdout();
        let mut stripped = anstream::AutoStream::new(io::stdout(), self.color);
        let stdout: &mut dyn Write = if self.json { &mut plain } else { &mut stripped };
        self.cut_off = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).err();
    }
}

fn on_screen(text: &str) -> Cow<'_, str> {
    if Screen::get().is_ascii { in_ascii(text).into() } else { text.into() }
}

fn also(others: &[&Finding]) -> String {
    const NAMED: usize = 3;
    let named: Vec<_> = others.iter().take(NAMED).map(|other| clean(&other.subject)).collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let one = if others.len() == 1 { "1 other".into() } else { format!("{} others", others.len()) };
    format!("the same for {one}: {}{more}", named.join(", "))
}

/// Asks a question. The end of the input is an empty answer.
pub fn ask(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> String {
    let mut answer = String::new();
    let asked = output.write_all(question.as_bytes()).and_then(|()| output.flush());
    let read = asked.and_then(|()| input.read_line(&mut answer));
    read.map(|_| answer.trim().to_owned()).unwrap_or_default()
}
