//! Limits open connections. A client is known once it has sent the secret or an unused code. A
//! connection that sends or reads too slowly is closed. Connections of unknown clients cannot crowd
//! out those of known clients.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// The maximum number of connections of known clients. A browser opens about six.
const KNOWN: usize = 64;
/// The maximum number of connections of unknown clients. A new connection replaces the oldest.
const UNKNOWN: usize = 32;
const LONGEST_HEAD: usize = 16 << 10;
/// The time after which a server notices that it must end.
const TICK: Duration = Duration::from_millis(250);
/// The maximum time for a client to send a request or to read an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the settings with which all servers read requests.
pub(super) fn patient_http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(LONGEST_HEAD)
        // hyper's date header panics if the clock shows a time before 1970.
        .auto_date_header(false);
    http
}

#[derive(Default)]
pub(super) struct Connections(Mutex<Vec<Connection>>);

struct Connection {
    number: u64,
    task: AbortHandle,
    /// The time when the connection is closed, or `None` while the server prepares an answer.
    due: Option<Instant>,
    is_known: bool,
}

impl Connections {
    /// Accepts connections until `is_over` returns true, and passes each with its number to
    /// `visit`.
    pub(super) async fn accept<V: Future<Output = ()> + Send + 'static>(
        &self,
        listener: TcpListener,
        is_over: impl Fn() -> bool,
        visit: impl Fn(u64, TokioIo<TcpStream>) -> V,
    ) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut number = 0;
        while !is_over() {
            self.end_overdue();
            // No client connected, or a client disconnected before it was accepted.
            let Ok(Ok((stream, _))) = tokio::time::timeout(TICK, listener.accept()).await else {
                continue;
            };
            number += 1;
            let visit = tokio::task::spawn(visit(number, TokioIo::new(stream)));
            // The new task starts only when this task waits again, so the connection is registered
            // first.
            self.add(number, visit.abort_handle());
        }
        Ok(())
    }

    fn add(&self, number: u64, task: AbortHandle) {
        let due = Some(Instant::now() + PATIENCE);
        let mut all = self.lock();
        let unknown = all.iter().filter(|connection| !connection.is_known).count();
        if unknown >= UNKNOWN
            && let Some(oldest) = all.iter().position(|connection| !connection.is_known)
        {
            all.remove(oldest).task.abort();
        }
        all.push(Connection { number, task, due, is_known: false });
    }

    pub(super) fn asked(&self, number: u64) {
        self.change(number, |connection, _| connection.due = None);
    }

    /// Records that the client of a connection has sent the secret or an unused code.
    pub(super) fn recognise(&self, number: u64) {
        self.change(number, |connection, known| connection.is_known |= known < KNOWN);
    }

    pub(super) fn answered(&self, number: u64) {
        self.change(number, |connection, _| connection.due = Some(Instant::now() + PATIENCE));
    }

    /// Changes a connection, given the number of connections of known clients.
    fn change(&self, number: u64, change: impl FnOnce(&mut Connection, usize)) {
        let mut all = self.lock();
        let known = all.iter().filter(|connection| connection.is_known).count();
        if let Some(connection) = all.iter_mut().find(|connection| connection.number == number) {
            change(connection, known);
        }
    }

    pub(super) fn remove(&self, number: u64) {
        self.lock().retain(|connection| connection.number != number);
    }

    fn end_overdue(&self) {
        let now = Instant::now();
        self.lock().retain(|connection| {
            let is_overdue = connection.due.is_some_and(|due| due <= now);
            if is_overdue {
                connection.task.abort();
            }
            !is_overdue
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
