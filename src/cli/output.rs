//! Prints text or JSON, and applies the options for colours, the pager and `--quiet`.

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
use stvc::json_output::answers::Answer;
use stvc::json_output::{Line, Summary};
use stvc::library::TimelineName;

pub struct Styles {
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

/// The colours. They are removed from the output if the terminal does not support them.
pub const STYLES: Styles = Styles {
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
    paint(STYLES.dim, text)
}

pub fn bold(text: impl Display) -> String {
    paint(STYLES.name, text)
}

pub fn short_id(id: impl Display) -> String {
    paint(STYLES.id, short(id))
}

pub fn bold_name(timeline: &TimelineName) -> String {
    bold(name(timeline))
}

/// Returns the word for a level, in the level's colour.
pub fn level_word(level: Level) -> String {
    match level {
        Level::Error => paint(STYLES.bad, "error"),
        Level::Warning => paint(STYLES.warn, "warning"),
        Level::Info => dim("note"),
    }
}

pub struct Output {
    json: bool,
    quiet: bool,
    /// Whether notes are printed, and lists in full.
    pub verbose: bool,
    color: ColorChoice,
    pub clock: Clock,
    summary: Option<Summary>,
    /// The first error of writing to standard output. After it, nothing more is written there.
    cut_off: Option<io::Error>,
    /// Text that is not written yet, or `None` if each line is written immediately.
    waiting: Option<String>,
    pager: Option<String>,
    /// Lines for standard error, which are printed after the pager has ended.
    errors: Vec<String>,
    /// Output that another [`Output`] prints later; `None` if it is printed here.
    captured: Option<Vec<Captured>>,
}

/// Output for another [`Output`].
enum Captured {
    Text(String),
    ErrorLine(String),
}

/// The number of bytes that are collected before they are written.
const BUFFER_BYTES: usize = 32 << 10;

impl Output {
    pub fn new(args: &GlobalArgs, settings: &Configuration, now: DateTime<FixedOffset>) -> Self {
        let color = match args.color.or(settings.color) {
            Some(When::Auto) | None => ColorChoice::Auto,
            Some(When::Always) => ColorChoice::AlwaysAnsi,
            Some(When::Never) => ColorChoice::Never,
        };
        Self {
            json: args.json,
            quiet: args.quiet,
            verbose: args.verbose,
            color,
            clock: Clock { now, style: args.date.or(settings.date) },
            summary: None,
            cut_off: None,
            waiting: None,
            pager: None,
            errors: Vec::new(),
            captured: None,
        }
    }

    /// Returns an output with the same settings that only collects, for [`replay`](Self::replay).
    pub fn captured(&self) -> Self {
        Self {
            json: self.json,
            quiet: self.quiet,
            verbose: self.verbose,
            color: self.color,
            clock: self.clock,
            summary: None,
            cut_off: None,
            waiting: None,
            pager: None,
            errors: Vec::new(),
            captured: Some(Vec::new()),
        }
    }

    /// Prints the output that `other` has collected.
    pub fn replay(&mut self, other: Self) {
        for piece in other.captured.into_iter().flatten() {
            match piece {
                Captured::Text(text) => self.put(&text),
                Captured::ErrorLine(text) => self.error_line(&text),
            }
        }
    }

    /// Collects the output, either for the pager or to write it in large blocks.
    pub fn collecting(mut self, args: &GlobalArgs, settings: &Configuration) -> Self {
        let is_paged = !args.no_pager && !args.json && Screen::get().rows.is_some();
        self.pager = is_paged.then(|| pager::command(settings.pager.as_deref())).flatten();
        self.waiting = Some(String::new());
        self
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether a user can answer questions, including those of programs that stvc starts.
    pub fn may_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    pub fn is_colored(&self) -> bool {
        match self.color {
            ColorChoice::Auto => anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        }
    }

    /// Prints a line of text, unless the output is JSON.
    pub fn line(&mut self, text: impl AsRef<str>) {
        if !self.json {
            self.write(&format!("{}\n", text.as_ref()));
        }
    }

    pub fn text(&mut self, text: &str) {
        self.write(text);
    }

    /// Prints a line of text that `--quiet` suppresses.
    pub fn say(&mut self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// Prints a JSON line, if the output is JSON.
    pub fn object(&mut self, line: Line<'_>) {
        if self.json {
            let text = serde_json::to_string(&line).unwrap_or_default();
            self.write_json(&text);
        }
    }

    /// Prints the answer of a command as JSON lines or as text, and returns the exit code.
    pub fn answer(&mut self, answer: &impl Answer, text: impl FnOnce(&mut Self)) -> u8 {
        if self.json {
            answer.lines(&mut |line| self.object(line));
            self.summary = Some(answer.summary());
        } else {
            text(self);
        }
        answer.exit()
    }

    /// Writes a JSON line. Escapes DEL, C1 control characters and direction marks, because
    /// serde_json does not escape them and a terminal may interpret them. They occur only inside
    /// strings. Characters below U+0020 occur only as whitespace in raw values, and become spaces.
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

    /// Prints findings. Many findings of one kind are printed as one line with their count, unless
    /// the user asked for everything, or no command could list them later: such a finding may name
    /// the only snapshot of lost text.
    pub fn findings(&mut self, findings: &[Finding]) {
        const FEW: usize = 3;
        if self.json || self.verbose {
            return self.all_findings(findings);
        }
        let mut kinds: Vec<Vec<&Finding>> = Vec::new();
        for finding in findings {
            let is_kind = |kind: &&mut Vec<&Finding>| {
                (kind[0].code, kind[0].level) == (finding.code, finding.level)
            };
            match kinds.iter_mut().find(is_kind) {
                Some(kind) => kind.push(finding),
                None => kinds.push(vec![finding]),
            }
        }
        for kind in kinds {
            match kind[0].code.listed_by() {
                Some(command) if kind.len() > FEW => {
                    self.finding_line(kind[0].level, &in_brief(&kind, command));
                }
                _ => self.all_findings(&kind.into_iter().cloned().collect::<Vec<_>>()),
            }
        }
    }

    /// Prints findings. Findings that differ only in their subject are printed once.
    pub fn all_findings(&mut self, findings: &[Finding]) {
        if self.json {
            findings.iter().for_each(|finding| self.object(Line::Finding(finding)));
            return;
        }
        let same = |a: &Finding, b: &Finding| {
            (a.code, a.level, &a.message, &a.remedy) == (b.code, b.level, &b.message, &b.remedy)
        };
        for (n, finding) in findings.iter().enumerate() {
            if findings[..n].iter().any(|other| same(other, finding)) {
                continue;
            }
            let mut text = format!("{}: {}", clean(&finding.subject), clean(&finding.message));
            let others: Vec<_> =
                findings[n + 1..].iter().filter(|other| same(other, finding)).collect();
            if !others.is_empty() {
                text.push_str(&format!("\n  {}", also(&others)));
            }
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("\n  {}", dim(clean(remedy))));
            }
            self.finding_line(finding.level, &text);
        }
    }

    /// Prints a finding. Warnings and errors go to standard error.
    fn finding_line(&mut self, level: Level, text: &str) {
        if level < Level::Error && self.quiet {
            return;
        }
        let text = format!("{}: {text}", level_word(level));
        if level == Level::Info { self.line(text) } else { self.error_line(&text) }
    }

    /// Prints a line to standard error, because standard output is for data. `--quiet` suppresses
    /// the line.
    pub fn note(&mut self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(text);
        }
    }

    pub fn error_line(&mut self, text: &str) {
        let text = on_screen(text);
        if let Some(captured) = &mut self.captured {
            return captured.push(Captured::ErrorLine(text.into_owned()));
        }
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

    /// Prints the pending summary. With `--all-users`, the summary of the next user follows.
    pub fn end_summary(&mut self) {
        if let Some(summary) = self.summary.take() {
            self.object(Line::Summary(summary));
        }
    }

    pub fn columns(&self) -> usize {
        Screen::get().columns()
    }

    /// Prints the lines of one item. In a pipe, the lines are joined to one line.
    pub fn record(&mut self, lines: &[String]) {
        if Screen::get().is_pipe() {
            self.line(lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("  "))
        } else {
            lines.iter().for_each(|line| self.line(line))
        }
    }

    pub fn progress(&self) -> Bar {
        let is_hidden = self.json || self.quiet || self.captured.is_some();
        Bar::visible_if(!is_hidden && io::stderr().is_terminal())
    }

    /// Prints the remaining output and returns the exit code. A closed pipe, as in `stvc log |
    /// head`, is not an error.
    pub fn finish(mut self, code: u8) -> u8 {
        self.end_summary();
        self.show_paged();
        self.write_out();
        match self.cut_off.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.error_line(&format!(
                    "{}: cannot write to standard output: {error}",
                    level_word(Level::Error)
                ));
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
            let why = format!("cannot run the pager {pager:?}: {error}");
            self.error_line(&format!("{}: {why}", level_word(Level::Warning)));
        }
        std::mem::take(&mut self.errors).iter().for_each(|line| self.error_line(line));
    }

    fn write(&mut self, text: &str) {
        self.put(&on_screen(text));
    }

    fn put(&mut self, text: &str) {
        if let Some(captured) = &mut self.captured {
            return captured.push(Captured::Text(text.to_owned()));
        }
        let Some(waiting) = &mut self.waiting else { return self.write_now(text) };
        waiting.push_str(text);
        if waiting.len() >= BUFFER_BYTES && self.pager.is_none() {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        if let Some(text) = self.waiting.as_mut().map(std::mem::take) {
            self.write_now(&text);
        }
    }

    /// Writes text without collecting it. JSON is not written through `AutoStream`, because it
    /// would remove DEL characters.
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

/// Returns the number of the findings, the first of them, and the command that lists all.
fn in_brief(kind: &[&Finding], command: &str) -> String {
    let first = kind[0];
    let more = format!("`stvc {command}` lists all");
    let (subject, message) = (clean(&first.subject), clean(&first.message));
    let (n, code) = (kind.len(), first.code);
    format!("{n} findings {code}, for example {subject}: {message} {}", dim(format!("({more})")))
}

fn also(others: &[&Finding]) -> String {
    const NAMED: usize = 3;
    let named: Vec<_> = others.iter().take(NAMED).map(|other| clean(&other.subject)).collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let one = if others.len() == 1 { "1 other".into() } else { format!("{} others", others.len()) };
    format!("also applies to {one}: {}{more}", named.join(", "))
}

/// Asks a question and returns the answer. The answer is empty at the end of the input.
pub fn ask(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> String {
    let mut answer = String::new();
    let asked = output.write_all(question.as_bytes()).and_then(|()| output.flush());
    let read = asked.and_then(|()| input.read_line(&mut answer));
    read.map(|_| answer.trim().to_owned()).unwrap_or_default()
}
