//! Where words go: text or JSON, coloured or not, all or only what was asked for.

use std::borrow::Cow;
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
use super::wording::clean;
use stvc::engine::configuration::{Configuration, When};
use stvc::lines::answers::Answer;
use stvc::lines::{Line, Summary};
use stvc::rules::{Finding, Level};

/// The styles that words can have.
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

/// Plain styles; whether they reach the terminal is decided where the words leave.
pub const LOOK: Look = Look {
    id: color(AnsiColor::Yellow),
    name: Style::new().bold(),
    dim: Style::new().dimmed(),
    tag: color(AnsiColor::Cyan),
    good: color(AnsiColor::Green),
    bad: color(AnsiColor::Red),
    warn: color(AnsiColor::Magenta),
};

/// `text` in a style.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The way out.
pub struct Out {
    json: bool,
    quiet: bool,
    color: ColorChoice,
    pub clock: Clock,
    summary: Option<Summary>,
    /// Why nothing can be written to standard output any more.
    cut_off: Option<io::Error>,
    /// What waits for the pager, and that pager.
    paged: Option<Paged>,
    /// What waits to be written with what follows it, where all is said at once; none where each line is news.
    waiting: Option<String>,
}

/// So much is written at once.
const MUCH: usize = 32 << 10;

/// What is printed at the end, at once: the answer, and then what is wrong.
struct Paged {
    command: String,
    text: String,
    errors: Vec<String>,
}

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
            paged: None,
            waiting: None,
        }
    }

    /// Collects an answer that may be long: for the pager, or to write much of it at once.
    pub fn collecting(mut self, args: &GlobalArgs, settings: &Configuration) -> Self {
        let is_paged = !args.no_pager && !args.json && Screen::get().rows.is_some();
        let pager = is_paged.then(|| pager::command(settings.pager.as_deref())).flatten();
        let paged = |command| Paged { command, text: String::new(), errors: Vec::new() };
        self.paged = pager.map(paged);
        self.waiting = Some(String::new());
        self
    }

    /// Whether the answer is JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether somebody is there to answer, should a program that is run have a question.
    pub fn may_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether colours reach the reader: where they do not, signs must say what they would.
    pub fn is_colored(&self) -> bool {
        match self.color {
            ColorChoice::Auto => anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        }
    }

    /// One line of what was asked for.
    pub fn line(&mut self, text: impl AsRef<str>) {
        if !self.json {
            self.write(&format!("{}\n", text.as_ref()));
        }
    }

    /// A text that was asked for, as it is.
    pub fn text(&mut self, text: &str) {
        self.write(text);
    }

    /// One line that tells how it went.
    pub fn say(&mut self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// One JSON object, of a command that tells what it does while it is at it.
    pub fn object<'a>(&mut self, line: impl Into<Line<'a>>) {
        if self.json {
            let text = serde_json::to_string(&line.into()).unwrap_or_default();
            self.write_json(&text);
        }
    }

    /// Prints the answer of a command: its lines for programs, or `text` for people. Returns the exit code.
    pub fn answer(&mut self, answer: &impl Answer, text: impl FnOnce(&mut Self)) -> u8 {
        if self.json {
            answer.lines(&mut |line| self.object(line));
            self.summary = Some(answer.summary());
        } else {
            text(self);
        }
        answer.exit()
    }

    /// What serde_json leaves alive (DEL, C1, marks of direction) is escaped; such characters stand only inside strings. What is below U+0020 is spacing of a raw value.
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

    /// What was noticed. Warnings and errors go to standard error, as errors do. What holds for several is said once.
    pub fn findings(&mut self, findings: &[Finding]) {
        if self.json {
            findings.iter().for_each(|finding| self.object(finding));
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
            let (style, word) = match finding.level {
                Level::Error => (LOOK.bad, "error"),
                Level::Warning => (LOOK.warn, "warning"),
                Level::Info => (LOOK.dim, "note"),
            };
            let subject = clean(&finding.subject);
            let mut text =
                format!("{}: {subject}: {}", paint(style, word), clean(&finding.message));
            let others: Vec<_> =
                findings[n + 1..].iter().filter(|other| same(other, finding)).collect();
            if !others.is_empty() {
                text.push_str(&format!("\n  {}", also(&others)));
            }
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("\n  {}", paint(LOOK.dim, clean(remedy))));
            }
            if finding.level == Level::Info {
                self.line(text);
            } else {
                self.error_line(&text);
            }
        }
    }

    /// One line that tells how it went, where standard output is taken.
    pub fn note(&mut self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(text);
        }
    }

    /// One line on standard error.
    pub fn error_line(&mut self, text: &str) {
        let text = on_screen(text);
        if let Some(paged) = &mut self.paged {
            return paged.errors.push(text.into_owned());
        }
        self.write_out();
        let _ = writeln!(anstream::AutoStream::new(io::stderr(), self.color), "{text}");
    }

    /// One line about something that went wrong but stops nothing.
    pub fn warn(&mut self, text: &str) {
        if !self.json {
            self.error_line(text);
        }
    }

    /// The last line of the JSON answer.
    pub fn end_with(&mut self, summary: Summary) {
        self.summary = Some(summary);
    }

    /// What could not be read.
    pub fn broken<'b>(&mut self, broken: impl IntoIterator<Item = &'b String>) {
        for why in broken {
            self.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(why)));
        }
    }

    /// Print the summary now; another one follows.
    pub fn end_summary(&mut self) {
        if let Some(summary) = self.summary.take() {
            self.object(summary);
        }
    }

    /// How wide the screen is; as good as endless if another program reads.
    pub fn columns(&self) -> usize {
        Screen::get().columns()
    }

    /// Several lines about one thing: below each other, or one line where another program reads.
    pub fn record(&mut self, lines: &[String]) {
        if Screen::get().is_pipe() {
            self.line(lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("  "))
        } else {
            lines.iter().for_each(|line| self.line(line))
        }
    }

    /// A progress bar for long work, on a terminal only.
    pub fn progress(&self) -> Bar {
        Bar::new(!self.json && !self.quiet && io::stderr().is_terminal())
    }

    /// Print what is left. The exit code, unless the answer could not be written. `stvc log | head` closes the pipe; that is no error.
    pub fn finish(mut self, code: u8) -> u8 {
        self.end_summary();
        self.show_paged();
        self.write_out();
        match self.cut_off.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.error_line(&format!("{}: standard output: {error}", paint(LOOK.bad, "error")));
                code.max(FAILED)
            }
            _ => code,
        }
    }

    /// Show what waits, in the pager if it is long.
    fn show_paged(&mut self) {
        let Some(paged) = self.paged.take() else { return };
        let text = if self.is_colored() {
            paged.text
        } else {
            anstream::adapter::strip_str(&paged.text).to_string()
        };
        let shown = if pager::is_longer(&text, Screen::get()) {
            pager::show(&text, &paged.command)
        } else {
            Ok(false)
        };
        match shown {
            Ok(true) => {}
            Ok(false) => self.write(&text),
            Err(error) => {
                self.write(&text);
                let why = format!("the pager {:?} cannot be used: {error}", paged.command);
                self.error_line(&format!("{}: {why}", paint(LOOK.warn, "warning")));
            }
        }
        paged.errors.iter().for_each(|line| self.error_line(line));
    }

    fn write(&mut self, text: &str) {
        let text = on_screen(text);
        match &mut self.paged {
            Some(paged) => paged.text.push_str(&text),
            None => self.put(&text),
        }
    }

    /// Write now, or with what follows.
    fn put(&mut self, text: &str) {
        match &mut self.waiting {
            Some(waiting) => {
                waiting.push_str(text);
                if waiting.len() >= MUCH {
                    self.write_out();
                }
            }
            None => self.write_now(text),
        }
    }

    /// Write what waits.
    fn write_out(&mut self) {
        if let Some(text) = self.waiting.as_mut().map(std::mem::take) {
            self.write_now(&text);
        }
    }

    /// JSON goes not through the stream that takes escapes out: it drops DEL.
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

/// A text in signs that the screen has.
fn on_screen(text: &str) -> Cow<'_, str> {
    if Screen::get().is_ascii { in_ascii(text).into() } else { text.into() }
}

/// The others of which the same is said.
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

/// Asks one question. The end of the input is an empty answer.
pub fn ask(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> String {
    let mut answer = String::new();
    let asked = output.write_all(question.as_bytes()).and_then(|()| output.flush());
    let read = asked.and_then(|()| input.read_line(&mut answer));
    read.map(|_| answer.trim().to_owned()).unwrap_or_default()
}
