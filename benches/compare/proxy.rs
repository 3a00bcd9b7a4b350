//! A proxy on loopback that counts HTTP requests and bytes. Servers do not log all their requests,
//! so the requests are recognized in the stream.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub struct Proxy {
    pub port: u16,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Bytes include the heads of requests and answers.
#[derive(Clone, Copy)]
pub struct Traffic {
    pub requests: u64,
    pub sent: u64,
    pub received: u64,
}

impl Proxy {
    /// Starts a proxy to a port of this machine.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind a port");
        let port = listener.local_addr().expect("look at the port").port();
        let counters = Arc::new(Counters::default());
        let counted = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counters = Arc::clone(&counted);
                let server = TcpStream::connect(("127.0.0.1", server)).expect("connect");
                thread::spawn(move || connect(&client, &server, &counters));
            }
        });
        Self { port, counters }
    }

    /// Returns the traffic since the last call.
    pub fn take(&self) -> Traffic {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::SeqCst);
        let Counters { requests, sent, received } = &*self.counters;
        Traffic { requests: take(requests), sent: take(sent), received: take(received) }
    }
}

/// Forwards both directions until one side ends the connection.
fn connect(client: &TcpStream, server: &TcpStream, counters: &Counters) {
    for stream in [client, server] {
        stream.set_nodelay(true).expect("send small parts at once");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut answers = BufReader::with_capacity(BUFFER, server);
            let _ = forward(&mut answers, client, u64::MAX, &counters.received);
            let _ = client.shutdown(Shutdown::Both);
        });
        let _ = forward_requests(client, server, counters);
        let _ = server.shutdown(Shutdown::Write);
    });
}

const BUFFER: usize = 64 << 10;

fn forward_requests(client: &TcpStream, server: &TcpStream, counters: &Counters) -> io::Result<()> {
    let mut client = BufReader::with_capacity(BUFFER, client);
    let send = |mut part: &[u8]| forward(&mut part, server, u64::MAX, &counters.sent);
    loop {
        let head = read_lines(&mut client, |line| line == b"\r\n")?;
        if head.is_empty() {
            return Ok(());
        }
        counters.requests.fetch_add(1, Ordering::SeqCst);
        send(&head)?;
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        assert!(head.contains(" http/1.1\r\n"), "only HTTP/1.1 can be counted: {head}");
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        if field("transfer-encoding:").is_some() {
            loop {
                let line = read_lines(&mut client, |_| true)?;
                send(&line)?;
                let digits = String::from_utf8_lossy(&line);
                let digits = digits.split(';').next().unwrap_or_default().trim();
                let length = u64::from_str_radix(digits, 16).expect("the length of a chunk");
                if length == 0 {
                    break;
                }
                // The line break after the chunk is counted too.
                forward(&mut client, server, length + 2, &counters.sent)?;
            }
            send(&read_lines(&mut client, |line| line == b"\r\n")?)?;
        } else if let Some(length) = field("content-length:") {
            let length = length.trim().parse().expect("the length of a body");
            forward(&mut client, server, length, &counters.sent)?;
        }
    }
}

/// Reads lines until one that `is_last`, or until the end.
fn read_lines(input: &mut impl BufRead, is_last: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    loop {
        let begin = lines.len();
        if input.read_until(b'\n', &mut lines)? == 0 || is_last(&lines[begin..]) {
            return Ok(lines);
        }
    }
}

/// Forwards up to `length` bytes, and counts them before they arrive.
fn forward(
    from: &mut impl BufRead,
    mut to: &TcpStream,
    length: u64,
    counter: &AtomicU64,
) -> io::Result<()> {
    let mut from = from.take(length);
    loop {
        let part = from.fill_buf()?;
        if part.is_empty() {
            return Ok(());
        }
        let taken = part.len();
        counter.fetch_add(taken as u64, Ordering::SeqCst);
        to.write_all(part)?;
        from.consume(taken);
    }
}
