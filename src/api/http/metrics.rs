//! A server that answers every request for `/metrics` with one text, for monitoring. It limits open
//! connections like the viewer's server, and never reads the body of a request.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};

use super::connections::{Connections, patient_http};

/// Returns the present text.
type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// A server that listens on its address but does not serve requests yet.
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
}

struct State {
    text: Text,
    /// Whether only this machine can connect. Then the host name in a request must be that of this
    /// machine, because pages of other origins can send requests under host names of their own.
    is_loopback: bool,
    connections: Connections,
}

impl MetricsServer {
    /// Listens on an address. Port 0 means a free port.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `stop` is set.
    pub fn run(self, text: Text, stop: &AtomicBool) -> io::Result<()> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let is_loopback = self.address.ip().is_loopback();
        let state = Arc::new(State { text, is_loopback, connections: Connections::default() });
        runtime.block_on(async move {
            let visit = |number, stream| {
                let state = Arc::clone(&state);
                async move {
                    let service = service_fn(|request| {
                        state.connections.asked(number);
                        let response = answer(&state, &request);
                        state.connections.answered(number);
                        async move { Ok::<_, Infallible>(response) }
                    });
                    let _ = patient_http().serve_connection(stream, service).await;
                    state.connections.remove(number);
                }
            };
            let is_over = || stop.load(Ordering::Relaxed);
            state.connections.accept(self.listener, is_over, visit).await
        })
    }
}

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn answer(state: &State, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, text) = if state.is_loopback && !is_for_loopback(request) {
        (StatusCode::MISDIRECTED_REQUEST, "Use 127.0.0.1 or localhost to reach this server.".into())
    } else if request.method() != Method::GET {
        (StatusCode::METHOD_NOT_ALLOWED, "This method is not allowed here.".into())
    } else if request.uri().path() != "/metrics" {
        (StatusCode::NOT_FOUND, "The metrics are at /metrics.".into())
    } else {
        (StatusCode::OK, (state.text)())
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn is_for_loopback(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host else { return false };
    // The port follows the last colon. The colons of an IPv6 address are in brackets.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
