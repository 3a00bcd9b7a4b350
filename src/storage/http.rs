//! HTTP for OpenDAL: bounded, polite, and with one kind of failure.
//!
//! Every request of a storage passes through [`Transport`]. OpenDAL's own layers count the time of
//! a whole call, so a long upload over a slow line would fail; here, only a transfer that makes no
//! progress fails. Answers are read into memory up to a limit. Redirects are not followed, because
//! their target might be another server.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper_util::client::proxy::matcher::Matcher;
use opendal::{Buffer, HttpBody, HttpTransport};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, LINK, RETRY_AFTER};
use reqwest::{Client, Method, Request, StatusCode, Url};

use super::failure::{Failure, Protocol};
use super::request_rate::RequestRate;
use super::{LONGEST_LIST, TOO_LONG, s3_list, webdav_list};
use crate::words;

/// Maximum length of an answer that is not an object, in bytes: a list, or an error.
const LONGEST_ANSWER: u64 = 32 << 20;
/// Maximum number of requests of one call, so that a list without an end ends.
pub const MOST_REQUESTS: u64 = 20_000;
const MOST_PAGES: usize = 2_000;
/// Maximum time that a server may ask to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(90);
/// Uploads are sent in parts of this length, to see their progress.
const PART: usize = 32 << 10;

tokio::task_local! {
    /// The limits of the call that sends the requests.
    pub static CALL: Call;
}

/// The limits of one call of a storage.
pub struct Call {
    /// Maximum length of an object that is read, in bytes.
    pub longest_object: u64,
    pub requests: AtomicU64,
}

pub struct Transport {
    pub client: Client,
    /// The proxies that the client uses. `None` if it uses none.
    pub proxies: Option<Matcher>,
    pub protocol: Protocol,
    /// The prefix of all keys in an S3 bucket.
    pub root: String,
    pub rate: RequestRate,
    /// The longest time without progress.
    pub patience: Duration,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl HttpTransport for Transport {
    async fn fetch(
        &self,
        request: hyper::Request<Buffer>,
    ) -> opendal::Result<hyper::Response<HttpBody>> {
        self.answer(request).await.map_err(Failure::into_opendal)
    }
}

impl Transport {
    async fn answer(
        &self,
        request: hyper::Request<Buffer>,
    ) -> Result<hyper::Response<HttpBody>, Failure> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| Failure::Other(error.to_string()))?;
        let (method, headers) = (parts.method, parts.headers);
        let request = Asked { method, url, headers, body: body.to_bytes() };
        let mut answer = self.send(&request).await?;
        let method = request.method.as_str();
        let protocol = self.protocol;
        if let Some(failure) = self.failure(&request, &answer) {
            return Err(failure);
        }
        match (method, answer.status.as_u16()) {
            ("PROPFIND", 207) => answer.body = self.clean_list(&request, &answer).await?,
            ("PROPFIND", 200..300) => {
                return Err(Failure::WrongServer("it does not list folders".into()));
            }
            ("GET", 200) if is_s3_list(&request.url) && protocol == Protocol::S3 => {
                answer.body = s3_list::clean(&answer.body, &self.root)
                    .map_err(|why| Failure::WrongServer(why.into()))?;
            }
            // OpenDAL accepts fewer statuses.
            ("DELETE", 200..300 | 410) => answer.status = StatusCode::NO_CONTENT,
            ("PUT", 200..300) if protocol == Protocol::S3 => answer.status = StatusCode::OK,
            ("PUT" | "MKCOL", 200..300) => answer.status = StatusCode::CREATED,
            _ => {}
        }
        let mut response = hyper::Response::builder().status(answer.status);
        // OpenDAL fails on headers that it cannot parse, such as dates, and needs only these.
        for name in [CONTENT_RANGE, ETAG] {
            if let Some(value) = answer.headers.get(&name) {
                response = response.header(name, value);
            }
        }
        // A server may send the length after the body.
        response = response.header(CONTENT_LENGTH, answer.body.len());
        let body = futures_util::stream::iter([Ok(Buffer::from(answer.body))]);
        response.body(HttpBody::new(body, None)).map_err(|error| Failure::Other(error.to_string()))
    }

    /// Reduces a list to what OpenDAL reads, with all its pages.
    async fn clean_list(&self, request: &Asked, first: &Answer) -> Result<Vec<u8>, Failure> {
        let wrong = |why: &str| Failure::WrongServer(why.to_owned());
        let folder = crate::file_names::undo(request.url.path());
        let mut entries = webdav_list::parse(&first.body, &folder).map_err(wrong)?;
        let mut next = next_page(request, first)?;
        let mut pages = 1;
        while let Some(url) = next {
            pages += 1;
            if pages > MOST_PAGES {
                return Err(wrong("its list of files has no end"));
            }
            let request = Asked { url, ..request.clone() };
            let page = self.send(&request).await?;
            if let Some(failure) = self.failure(&request, &page) {
                return Err(failure);
            }
            entries.extend(webdav_list::parse(&page.body, &folder).map_err(wrong)?);
            if entries.len() > LONGEST_LIST {
                return Err(wrong(TOO_LONG));
            }
            next = next_page(&request, &page)?;
        }
        Ok(webdav_list::write(&entries, &folder))
    }

    /// Returns the failure that an answer reports.
    fn failure(&self, asked: &Asked, answer: &Answer) -> Option<Failure> {
        let Answer { status, headers, body } = answer;
        let method = asked.method.as_str();
        // An answer that is encrypted is never one of the proxy.
        let proxy = self.proxy(&asked.url).filter(|_| asked.url.scheme() == "http");
        let proxy = proxy.as_deref();
        let failure = Failure::of_status(self.protocol, method, *status, headers, body, proxy)?;
        Some(match self.protocol {
            Protocol::S3 => failure.or_clock(headers, chrono::Utc::now().timestamp()),
            Protocol::WebDav => failure,
        })
    }

    /// Returns the proxy through which requests to this address are sent, without its password.
    fn proxy(&self, url: &Url) -> Option<String> {
        let found = self.proxies.as_ref()?.intercept(&url.as_str().parse().ok()?)?;
        found.uri().authority()?.as_str().rsplit('@').next().map(words::clean)
    }

    async fn send(&self, asked: &Asked) -> Result<Answer, Failure> {
        let sent = CALL.try_with(|call| call.requests.fetch_add(1, Ordering::Relaxed));
        if sent.is_ok_and(|sent| sent >= MOST_REQUESTS) {
            return Err(Failure::WrongServer("its list of files has no end".into()));
        }
        tokio::time::sleep(self.rate.reserve(Instant::now())).await;
        let progress = Arc::new(AtomicU64::new(0));
        let mut request = Request::new(asked.method.clone(), asked.url.clone());
        *request.headers_mut() = asked.headers.clone();
        if !asked.body.is_empty() {
            let upload = Upload { rest: asked.body.clone(), progress: Arc::clone(&progress) };
            *request.body_mut() = Some(reqwest::Body::wrap(upload));
        }
        let sent = self.unless_stalled(&progress, self.client.execute(request)).await?;
        let mut response =
            sent.map_err(|error| Failure::of_request(&error, self.proxy(&asked.url).as_deref()))?;
        let status = response.status();
        let is_object =
            asked.method == Method::GET && status.is_success() && !is_s3_list(&asked.url);
        let object = CALL.try_with(|call| call.longest_object).ok().filter(|_| is_object);
        let limit = object.unwrap_or(LONGEST_ANSWER);
        let is_head = asked.method == Method::HEAD;
        if !is_head && response.content_length().is_some_and(|length| length > limit) {
            return Err(Failure::TooLarge);
        }
        let mut body = Vec::new();
        loop {
            let chunk = self.unless_stalled(&progress, response.chunk()).await?;
            let chunk = chunk.map_err(|error| match Failure::of_request(&error, None) {
                Failure::Unreachable(_) => Failure::Busy("the connection was interrupted".into()),
                failure => failure,
            })?;
            let Some(chunk) = chunk else { break };
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(Failure::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        if matches!(status.as_u16(), 429 | 503) {
            let wait = retry_after(response.headers());
            if wait > LONGEST_WAIT {
                return Err(Failure::Blocked);
            }
            self.rate.block(Instant::now(), wait);
        }
        Ok(Answer { status, headers: response.headers().clone(), body })
    }

    /// Runs `work` until it ends, or until there was no progress for some time.
    async fn unless_stalled<T>(
        &self,
        progress: &AtomicU64,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        loop {
            let before = progress.load(Ordering::Relaxed);
            match tokio::time::timeout(self.patience, &mut work).await {
                Ok(done) => return Ok(done),
                Err(_) if progress.load(Ordering::Relaxed) == before => {
                    return Err(Failure::Timeout);
                }
                Err(_) => {}
            }
        }
    }
}

#[derive(Clone)]
struct Asked {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

/// Returns the address of the next page. It must be on the same server, because the request has the
/// password.
fn next_page(request: &Asked, answer: &Answer) -> Result<Option<Url>, Failure> {
    let links = answer.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
    let Some(target) = links.filter_map(webdav_list::next_page).next() else { return Ok(None) };
    match request.url.join(target) {
        Ok(url) if url.origin() == request.url.origin() => Ok(Some(url)),
        _ => Err(Failure::WrongServer("the next page of its list is on another server".into())),
    }
}

/// Objects are read without a query.
fn is_s3_list(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| name == "list-type")
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// The body of a request. Counts the parts that were sent.
struct Upload {
    rest: Bytes,
    progress: Arc<AtomicU64>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PART);
        if length == 0 {
            return Poll::Ready(None);
        }
        self.progress.fetch_add(1, Ordering::Relaxed);
        let part = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
