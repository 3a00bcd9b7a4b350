//! A language model: it answers every prompt with the next number, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// It speaks the chat-completion protocol on loopback until the test's process ends.
pub struct Model {
    port: u16,
    prompts: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let prompts = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&prompts);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&asked);
                // A connection that breaks is the browser's business; the test sees that no answer came.
                thread::spawn(move || answer(stream, &asked));
            }
        });
        Self { port, prompts }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Everything that was said to it the last time.
    pub fn last_prompt(&self) -> String {
        self.prompts.lock().unwrap().last().map(ToString::to_string).unwrap_or_default()
    }
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut kind = "application/json";
    let body = if first.contains("/chat/completions") {
        let prompt: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut asked = asked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = format!("Answer {}.", asked.len() + 1);
        let streamed = prompt["stream"] == true;
        asked.push(prompt);
        if streamed {
            kind = "text/event-stream";
            let piece = json!({"choices": [{"delta": {"content": text}}]});
            format!("data: {piece}\n\ndata: [DONE]\n\n")
        } else {
            json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string()
        }
    } else {
        json!({"object": "list", "data": [{"id": "counting", "object": "model"}]}).to_string()
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
