//! The viewer's HTTP server. It accepts only connections from this machine, and stops when no
//! viewer is open.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request as HttpRequest, Response, StatusCode};

use super::connections::{Connections, PATIENCE, patient_http};
use super::gate::{AdmittedRequest, Denied, Gate};
use super::redirect::Redirect;
use crate::api::{Answer, BackgroundJobs, Request, Rights, page, security_policy, serve};
use crate::engine::Workspace;
use crate::system_clock;

const LONGEST_REQUEST: usize = 64 << 10;

/// The idle times after which the server stops.
#[derive(Clone, Copy, Debug)]
pub struct IdleTimeout {
    /// The time since the last request of a viewer.
    pub after: Duration,
    /// The time since the start, if no viewer was opened.
    pub unvisited: Duration,
}

impl Default for IdleTimeout {
    fn default() -> Self {
        Self { after: Duration::from_secs(60), unvisited: Duration::from_secs(15 * 60) }
    }
}

/// A server that listens on its port but does not serve requests yet.
pub struct Server {
    listener: TcpListener,
    shared: Arc<ServerState>,
}

pub(super) struct ServerState {
    gate: Gate,
    workspace: Workspace,
    rights: Rights,
    seen: Mutex<Option<Instant>>,
    connections: Connections,
    jobs: BackgroundJobs,
    redirect: Mutex<Option<Redirect>>,
}

impl Server {
    /// Listens on `port`, or on a free port if `port` is `None`.
    pub fn bind(workspace: Workspace, rights: Rights, port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        listener.set_nonblocking(true)?;
        let gate = Gate::new(listener.local_addr()?.port())?;
        let shared = ServerState::new(gate, workspace, rights);
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Returns an address that opens the viewer once.
    pub fn new_address(&self) -> io::Result<String> {
        self.shared.gate.new_address()
    }

    /// Keeps the redirecting file until a viewer has been opened.
    pub fn keep(&self, redirect: Redirect) {
        *self.shared.redirect.lock().unwrap_or_else(PoisonError::into_inner) = Some(redirect);
    }

    /// Serves requests until no viewer is open or `stop` is set.
    pub fn run(self, linger: IdleTimeout, stop: &AtomicBool) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // Each thread has memory of its own, which it keeps.
            .max_blocking_threads(3)
            .build()?;
        let begin = Instant::now();
        let shared = Arc::clone(&self.shared);
        runtime.block_on(async move {
            let is_over = || stop.load(Ordering::Relaxed) || shared.is_over(begin, linger);
            let visit = |number, stream| visit(Arc::clone(&shared), number, stream);
            shared.connections.accept(self.listener, is_over, visit).await
        })
    }
}

pub(super) async fn visit<S: hyper::rt::Read + hyper::rt::Write + Unpin>(
    shared: Arc<ServerState>,
    number: u64,
    stream: S,
) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, number, request).await) }
    });
    let _ = patient_http().serve_connection(stream, service).await;
    shared.connections.remove(number);
}

impl ServerState {
    pub(super) fn new(gate: Gate, workspace: Workspace, rights: Rights) -> Self {
        let (seen, connections, jobs, redirect) = Default::default();
        Self { gate, workspace, rights, seen, connections, jobs, redirect }
    }

    fn is_over(&self, begin: Instant, linger: IdleTimeout) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Some(seen) => seen.elapsed() > linger.after,
            None => begin.elapsed() > linger.unvisited,
        }
    }

    fn note(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns JSON with a value that changes whenever the store changes, and whether the viewer
    /// may write.
    fn state(&self) -> String {
        let state = self.workspace.find_store().ok().flatten().and_then(|store| {
            let heads = store.refs("refs/heads/").ok()?;
            let tags = store.refs("refs/tags/").ok()?;
            let mut hash = blake3::Hasher::new();
            for (name, id) in heads.refs.iter().chain(&tags.refs) {
                hash.update(name.as_str().as_bytes());
                hash.update(id.as_slice());
            }
            Some(hash.finalize().to_hex()[..16].to_owned())
        });
        let write = self.rights == Rights::Change;
        serde_json::json!({ "state": state, "write": write }).to_string()
    }
}

type Body = Full<Bytes>;

async fn answer(
    shared: &Arc<ServerState>,
    number: u64,
    request: HttpRequest<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let admitted = shared.gate.admit(&parts.method, &parts.uri, &parts.headers);
    shared.connections.asked(number);
    if admitted.as_ref().is_ok_and(AdmittedRequest::is_known) {
        shared.connections.recognise(number);
        shared.note();
    }
    let mut response = match admitted {
        Err(denied) => deny(denied),
        Ok(AdmittedRequest::Page(path)) => file(&path),
        Ok(AdmittedRequest::Enter) => enter(shared),
        Ok(AdmittedRequest::State) => state(shared).await,
        Ok(AdmittedRequest::Api) => api(shared, body).await,
    };
    for (name, value) in SAFE {
        response.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    shared.connections.answered(number);
    response
}

/// Headers of every answer. They forbid caching, framing, guessing the content type, and loading
/// from other origins.
const SAFE: &[(&str, &str)] = &[
    ("content-security-policy", security_policy::SERVED),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

fn plain(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

fn deny(denied: Denied) -> Response<Body> {
    plain(denied.status(), TEXT, denied.words())
}

/// Answers with the secret, after the code was accepted.
fn enter(shared: &ServerState) -> Response<Body> {
    shared.redirect.lock().unwrap_or_else(PoisonError::into_inner).take();
    let secret = serde_json::json!({ "secret": shared.gate.secret() });
    plain(200, JSON, secret.to_string())
}

async fn state(shared: &Arc<ServerState>) -> Response<Body> {
    let shared = Arc::clone(shared);
    let state = tokio::task::spawn_blocking(move || shared.state()).await;
    plain(200, JSON, state.unwrap_or_default())
}

fn file(path: &str) -> Response<Body> {
    match page::at(path) {
        Some((kind, text)) => plain(200, kind, text),
        None => plain(404, TEXT, "Not found."),
    }
}

async fn api(shared: &Arc<ServerState>, body: Incoming) -> Response<Body> {
    let body = tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST_REQUEST).collect());
    let bytes = match body.await {
        Err(_) => return plain(408, TEXT, "The request took too long."),
        Ok(Err(_)) => return plain(413, TEXT, "The request is too long."),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let shared = Arc::clone(shared);
    let answered = tokio::task::spawn_blocking(move || {
        let answer = match Request::read(&bytes) {
            Ok(request) => {
                // Each request uses the current time, not the time when the server started.
                let now = system_clock::now_or_1970();
                let command = request.command("view");
                let workspace = Workspace { now, command, ..shared.workspace.clone() };
                serve(&workspace, &request, shared.rights, &shared.jobs)
            }
            Err(refusal) => Answer::refused(&refusal),
        };
        serde_json::to_vec(&answer).unwrap_or_default()
    });
    match answered.await {
        Ok(answer) => plain(200, JSON, answer),
        Err(_) => plain(500, TEXT, "An internal error occurred. The server is still running."),
    }
}
