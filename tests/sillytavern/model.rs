//! A language model: it answers every prompt with the next number, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// It speaks the chat-completion protocol on loopback until the test's process ends.
#[derive(Clone)]
pub struct Model {
    port: u16,
    asked: Arc<Asked>,
}

#[derive(Default)]
struct Asked {
    prompts: Mutex<Vec<Value>>,
    /// The bodies of these requests as they came.
    bodies: Mutex<Vec<Vec<u8>>>,
    /// Whoever has this keeps it from answering.
    silence: Mutex<()>,
}

impl Model {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = Arc::new(Asked::default());
        let asked = Arc::clone(&all);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&asked);
                // A connection that breaks is the browser's business; the test sees that no answer came.
                thread::spawn(move || answer(stream, &asked));
            }
        });
        Self { port, asked: all }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Everything that was said to it the last time.
    pub fn last_prompt(&self) -> String {
        self.asked.prompts.lock().unwrap().last().map(ToString::to_string).unwrap_or_default()
    }

    /// Everything that was said to it, byte for byte.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.asked.bodies.lock().unwrap().clone()
    }

    /// It thinks as long as this is kept.
    pub fn thinks(&self) -> MutexGuard<'_, ()> {
        self.asked.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(stream: TcpStream, asked: &Asked) -> std::io::Result<()> {
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
        let lock = || asked.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let streamed = prompt["stream"] == true;
        lock().push(prompt);
        let text = format!("Answer {}.", lock().len());
        asked.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        drop(asked.silence.lock());
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
