//! The output of a command, and assertions about it.

use std::process::Output;

use serde_json::Value;

#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// Asserts the exit code and returns the answer.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Parses stdout as JSON lines.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Returns the JSON lines of type `kind` whose timeline is a chat.
    #[track_caller]
    pub fn chat_lines(&self, kind: &str) -> Vec<Value> {
        let mut lines = self.of_type(kind);
        lines.retain(|line| line["timeline"].as_str().unwrap().contains("chats/"));
        lines
    }

    /// Returns the JSON lines of type `kind`.
    #[track_caller]
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == kind).collect()
    }
}

pub fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("the answer is UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Asserts that the program did not panic and was not killed.
#[track_caller]
pub fn assert_no_panic(answer: Answer) -> Answer {
    assert!(!matches!(answer.code, 101 | -1), "{answer:?}");
    assert!(!answer.stderr.contains("panicked"), "{answer:?}");
    answer
}

/// Asserts that no control character of a name or message reached the terminal.
#[track_caller]
pub fn assert_no_control_characters(answer: &Answer) {
    for text in [&answer.stdout, &answer.stderr] {
        let live = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(live, None, "{text:?}");
    }
}

/// Returns stdout with each snapshot id replaced by `ID`.
pub fn output_without_ids(answer: &Answer) -> String {
    let is_id = |word: &&str| word.len() == 10 && word.bytes().all(|c| c.is_ascii_hexdigit());
    let line = |line: &str| {
        let words: Vec<_> =
            line.split(' ').map(|word| Some(word).filter(is_id).map_or(word, |_| "ID")).collect();
        words.join(" ") + "\n"
    };
    answer.stdout.lines().map(line).collect()
}

pub fn finding_codes(answer: &Answer) -> Vec<String> {
    let findings = answer.of_type("finding");
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}
