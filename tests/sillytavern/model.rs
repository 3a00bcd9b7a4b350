//! A fake language model that answers each prompt with a number and records the prompts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A server of the chat-completion protocol on loopback. It runs until the test process ends.
#[derive(Clone)]
pub struct Model {
    port: u16,
    requests: Arc<Requests>,
}

#[derive(Default)]
struct Requests {
    prompts: Mutex<Vec<Value>>,
    /// The bodies of the requests, byte for byte.
    bodies: Mutex<Vec<Vec<u8>>>,
    /// Answers wait while a test holds this lock.
    held: Mutex<()>,
}

impl Model {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Requests::default());
        let shared = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&shared);
                // Errors of a connection are ignored: the test sees that the answer is missing.
                thread::spawn(move || answer(stream, &requests));
            }
        });
        Self { port, requests }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Returns the last prompt as JSON.
    pub fn last_prompt(&self) -> String {
        self.requests.prompts.lock().unwrap().last().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the bodies of all requests, byte for byte.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests.bodies.lock().unwrap().clone()
    }

    /// Delays all answers until the guard is dropped.
    pub fn hold_answers(&self) -> MutexGuard<'_, ()> {
        self.requests.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(stream: TcpStream, requests: &Requests) -> std::io::Result<()> {
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
        let lock = || requests.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let streamed = prompt["stream"] == true;
        lock().push(prompt);
        let text = format!("Answer {}.", lock().len());
        requests.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        drop(requests.held.lock());
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
