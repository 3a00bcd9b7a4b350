//! Why a request to a server failed. A failure passes through OpenDAL as the source of its errors.

use std::error::Error as StdError;
use std::io;

use chrono::DateTime;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, LOCATION};

use super::Error;
use crate::words;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{self:?}")]
pub enum Failure {
    WrongPassword,
    NoSuchPlace(String),
    Forbidden(String),
    UnknownHost,
    Unreachable(String),
    Timeout,
    Certificate(String),
    Expired(String),
    Clock(String),
    Proxy {
        proxy: String,
        why: String,
    },
    ProxyLogin {
        proxy: String,
    },
    Full,
    UploadLimit,
    RateLimited,
    /// The server asks to wait for a long time.
    Blocked,
    TooLarge,
    WrongServer(String),
    Redirected(String),
    WrongRegion(String),
    /// The folder of a new object does not exist.
    NoFolder,
    /// The server cannot answer now.
    Busy(String),
    Other(String),
}

/// The protocol decides what a status means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    WebDav,
    S3,
}

/// S3 servers refuse requests whose time differs by more seconds from theirs.
const MOST_SKEW: u64 = 15 * 60;
const UNKNOWN_PROXY: &str = "in this network";

/// The subjects of an error message.
pub struct Subject<'s> {
    pub place: &'s str,
    pub host: &'s str,
    pub name: &'s str,
    pub limit: u64,
    pub has_password: bool,
    pub patience: std::time::Duration,
}

impl Failure {
    /// Whether a retry within a minute may succeed.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::RateLimited | Self::Busy(_))
    }

    /// Returns the failure that a status means. `None` if OpenDAL shall handle the answer. `proxy`
    /// is the proxy that may have answered in place of the server.
    pub fn of_status(
        protocol: Protocol,
        method: &str,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        proxy: Option<&str>,
    ) -> Option<Self> {
        let text = String::from_utf8_lossy(&body[..body.len().min(1 << 16)]);
        let code = between(&text, "Code");
        let why = || explain(status, &text);
        if status.is_success() {
            return None;
        }
        if protocol == Protocol::S3 {
            match code.as_deref().unwrap_or_default() {
                "RequestTimeTooSkewed" | "RequestExpired" => return Some(Self::Clock(why())),
                "InvalidAccessKeyId"
                | "InvalidAccessKeyID"
                | "SignatureDoesNotMatch"
                | "InvalidToken"
                | "ExpiredToken"
                | "InvalidSecurity" => {
                    return Some(Self::WrongPassword);
                }
                "NoSuchBucket" => return Some(Self::NoSuchPlace(why())),
                "PermanentRedirect"
                | "TemporaryRedirect"
                | "AuthorizationHeaderMalformed"
                | "IllegalLocationConstraintException" => return Some(Self::WrongRegion(why())),
                "SlowDown"
                | "RequestLimitExceeded"
                | "TooManyRequests"
                | "TooManyRequestsException" => {
                    return Some(Self::RateLimited);
                }
                "QuotaExceeded"
                | "InsufficientCapacity"
                | "XMinioStorageFull"
                | "InsufficientStorage"
                | "StorageFull" => return Some(Self::Full),
                _ => {}
            }
        }
        let lower = text.to_lowercase();
        let is_of_proxy =
            matches!(status.as_u16(), 502 | 504) || headers.contains_key("x-squid-error");
        if let Some(proxy) = proxy.filter(|_| is_of_proxy) {
            return Some(Self::Proxy { proxy: proxy.to_owned(), why: why() });
        }
        Some(match status.as_u16() {
            401 => Self::WrongPassword,
            403 if lower.contains("quota") => Self::Full,
            403 => Self::Forbidden(why()),
            407 => Self::ProxyLogin { proxy: proxy.unwrap_or(UNKNOWN_PROXY).to_owned() },
            413 if lower.contains("quota") || lower.contains("insufficient") => Self::Full,
            413 => Self::UploadLimit,
            507 => Self::Full,
            503 if lower.contains("maintenance") => Self::Busy(why()),
            // A part of a distributed storage does not answer.
            503 if code.as_deref() == Some("ServiceUnavailable") => Self::Busy(why()),
            429 | 503 => Self::RateLimited,
            300..=399 => {
                let target = headers.get(LOCATION).and_then(|target| target.to_str().ok());
                let target = target.unwrap_or("an unknown address").split('?').next();
                Self::Redirected(words::clean(target.unwrap_or_default()))
            }
            404 | 409 if protocol == Protocol::WebDav && method == "PUT" => Self::NoFolder,
            404 | 410 => return None,
            405 if method == "MKCOL" => return None,
            405 | 501 => Self::WrongServer(why()),
            408 | 423 | 425 | 500 | 502 | 504 => Self::Busy(why()),
            _ => Self::Other(why()),
        })
    }

    /// Returns the failure that a difference of the clocks explains better, if the server of the
    /// answer has another time.
    pub fn or_clock(self, headers: &HeaderMap, now: i64) -> Self {
        let is_refusal = matches!(self, Self::WrongPassword | Self::Forbidden(_) | Self::Other(_));
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let server = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        match server.map(|server| server.timestamp()) {
            Some(server) if is_refusal && server.abs_diff(now) > MOST_SKEW => {
                Self::Clock(format!("there it is {}, here {}", time(server), time(now)))
            }
            _ => self,
        }
    }

    /// `proxy` is the proxy to which the request was sent.
    pub fn of_request(error: &reqwest::Error, proxy: Option<&str>) -> Self {
        let mut reason = String::new();
        let mut timed_out = error.is_timeout();
        let mut is_unknown = false;
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(failure) = tls_error(cause).and_then(Self::of_tls) {
                return failure;
            }
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                timed_out |= io.kind() == io::ErrorKind::TimedOut;
            }
            reason = cause.to_string();
            let lower = reason.to_lowercase();
            is_unknown |= lower.contains("dns error") || lower.contains("lookup address");
            next = cause.source();
        }
        let Some(proxy) = proxy.map(str::to_owned) else {
            return match (is_unknown, timed_out) {
                (true, _) => Self::UnknownHost,
                (_, true) => Self::Timeout,
                _ => Self::Unreachable(words::clean(&reason)),
            };
        };
        let why = match &*reason {
            "tunnel error: proxy authorization required" => return Self::ProxyLogin { proxy },
            "tunnel error: unsuccessful" => "it refuses to connect to this server".into(),
            _ if is_unknown => "no server has the name of the proxy".into(),
            _ if timed_out && error.is_connect() => "it does not answer".into(),
            _ if timed_out => return Self::Timeout,
            reason => words::clean(reason),
        };
        Self::Proxy { proxy, why }
    }

    fn of_tls(error: &rustls::Error) -> Option<Self> {
        use rustls::CertificateError::*;
        let certificate = |why: &str| Some(Self::Certificate(why.to_owned()));
        match error {
            rustls::Error::InvalidCertificate(problem) => match problem {
                NotValidYetContext { not_before, .. } => {
                    let begin = time(not_before.as_secs().cast_signed());
                    Some(Self::Clock(format!("its certificate is valid from {begin}")))
                }
                NotValidYet => Some(Self::Clock("its certificate is not valid yet".into())),
                ExpiredContext { not_after, .. } => {
                    let end = time(not_after.as_secs().cast_signed());
                    Some(Self::Expired(format!("it was valid until {end}")))
                }
                Expired => Some(Self::Expired("its last day has passed".into())),
                UnknownIssuer => {
                    certificate("it was not issued by an authority that this system knows")
                }
                NotValidForName | NotValidForNameContext { .. } => {
                    certificate("it was issued for another server name")
                }
                other if other.to_string().contains("CaUsedAsEndEntity") => {
                    certificate("the server issued it itself")
                }
                other => certificate(&words::clean(&other.to_string())),
            },
            rustls::Error::InvalidMessage(_) => {
                Some(Self::WrongServer("it does not use TLS on this port".into()))
            }
            rustls::Error::AlertReceived(alert) => {
                Some(Self::WrongServer(format!("TLS failed with the alert {alert:?}")))
            }
            _ => None,
        }
    }

    /// Finds the failure in an error of OpenDAL.
    pub fn find(error: &opendal::Error) -> Option<Self> {
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(failure) = cause.downcast_ref::<Self>() {
                return Some(failure.clone());
            }
            next = cause.source();
        }
        None
    }

    pub fn into_opendal(self) -> opendal::Error {
        let is_temporary = self.is_temporary();
        opendal::Error::new(opendal::ErrorKind::Unexpected, "the request failed")
            .with_temporary(is_temporary)
            .set_source(self)
    }

    pub fn into_error(self, subject: &Subject) -> Error {
        let (place, host) = (subject.place.to_owned(), subject.host.to_owned());
        let name = subject.name.to_owned();
        match self {
            Self::WrongPassword if !subject.has_password => Error::NoPassword { host },
            Self::WrongPassword => Error::WrongPassword { host },
            Self::NoSuchPlace(why) => Error::NoSuchPlace { place, why },
            Self::Forbidden(why) => Error::Forbidden { place, why },
            Self::UnknownHost => Error::UnknownHost { host },
            Self::Unreachable(why) => Error::Unreachable { host, why },
            Self::Timeout => Error::Timeout { host, seconds: subject.patience.as_secs() },
            Self::Certificate(why) => Error::Certificate { host, why },
            Self::Expired(why) => Error::CertificateExpired { host, why },
            Self::Clock(why) => Error::Clock { host, why },
            Self::Proxy { proxy, why } => {
                Error::Proxy { host, proxy: format!("the proxy {proxy}"), why }
            }
            Self::ProxyLogin { proxy } => Error::ProxyLogin { proxy: format!("the proxy {proxy}") },
            Self::Full => Error::Full { place },
            Self::UploadLimit => Error::UploadLimit { place, name },
            Self::RateLimited | Self::Blocked => Error::RateLimited { host },
            Self::TooLarge => Error::TooLarge { place, name, limit: subject.limit },
            Self::WrongServer(why) => Error::WrongServer { place, why },
            Self::Redirected(target) => Error::Redirected { place, target },
            Self::WrongRegion(why) => Error::WrongRegion { place, why },
            Self::NoFolder => {
                let why = "its folder could not be created".into();
                Error::NoSuchPlace { place, why }
            }
            Self::Busy(why) | Self::Other(why) => Error::Failed { place, why },
        }
    }
}

/// Returns the error of the TLS library in this error. `source` skips the error inside an I/O
/// error.
fn tls_error<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    while let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        error = inner;
    }
    error.downcast_ref()
}

fn time(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// Returns the text of an XML element, whatever its namespace prefix.
fn between(text: &str, element: &str) -> Option<String> {
    let end = format!("{element}>");
    let start = text.match_indices(&end).map(|(at, _)| at + end.len()).next()?;
    let found = text[start..].split('<').next()?.trim();
    (!found.is_empty()).then(|| words::clean(found))
}

/// Returns the message in the answer, or the name of the status.
fn explain(status: StatusCode, text: &str) -> String {
    let message = between(text, "Message").or_else(|| between(text, ":message"));
    match message {
        Some(message) => message.chars().take(200).collect(),
        None => format!("HTTP status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webdav(method: &str, status: u16, body: &str) -> Option<Failure> {
        of(Protocol::WebDav, method, status, body)
    }

    fn of(protocol: Protocol, method: &str, status: u16, body: &str) -> Option<Failure> {
        let status = StatusCode::from_u16(status).unwrap();
        Failure::of_status(protocol, method, status, &HeaderMap::new(), body.as_bytes(), None)
    }

    #[test]
    fn statuses_of_webdav_servers_are_told_apart() {
        for (method, status, body, failure) in [
            ("GET", 401, "", Failure::WrongPassword),
            ("PUT", 507, "", Failure::Full),
            ("PUT", 413, "", Failure::UploadLimit),
            ("PUT", 413, "Quota exceeded", Failure::Full),
            ("PUT", 409, "", Failure::NoFolder),
            ("PUT", 404, "", Failure::NoFolder),
            ("GET", 429, "", Failure::RateLimited),
            ("GET", 503, "BlockedTemporarily", Failure::RateLimited),
        ] {
            assert_eq!(webdav(method, status, body), Some(failure), "{method} {status}");
        }
        for (method, status) in [("GET", 404), ("DELETE", 404), ("MKCOL", 405), ("PROPFIND", 207)] {
            assert_eq!(webdav(method, status, ""), None, "{method} {status}");
        }
        let body = "<d:error><s:exception>X</s:exception><s:message>No \u{1b}[1m</s:message>";
        let failure = webdav("GET", 403, body);
        assert_eq!(failure, Some(Failure::Forbidden("No \\u{1b}[1m".into())));
        let maintenance = webdav("GET", 503, "System is in maintenance mode");
        assert!(matches!(maintenance, Some(Failure::Busy(_))));
    }

    #[test]
    fn problems_of_certificates_are_told_apart() {
        use rustls::CertificateError::*;
        let of = |problem| Failure::of_tls(&rustls::Error::InvalidCertificate(problem));
        assert!(matches!(of(NotValidYet), Some(Failure::Clock(_))));
        assert!(matches!(of(Expired), Some(Failure::Expired(_))));
        for problem in [UnknownIssuer, NotValidForName, Revoked] {
            assert!(matches!(of(problem), Some(Failure::Certificate(_))));
        }
    }

    #[test]
    fn failure_is_explained_by_clocks_that_differ() {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, "Thu, 19 Nov 2026 10:10:10 GMT".parse().unwrap());
        let server = DateTime::parse_from_rfc3339("2026-11-19T10:10:10Z").unwrap().timestamp();
        let refusal = || Failure::Forbidden("m".into());
        for near in [server, server + 15 * 60, server - 15 * 60] {
            assert_eq!(refusal().or_clock(&headers, near), refusal());
        }
        let why = "there it is 2026-11-19 10:10 UTC, here 2026-11-19 09:55 UTC";
        let now = server - 15 * 60 - 1;
        assert_eq!(refusal().or_clock(&headers, now), Failure::Clock(why.into()));
        assert_eq!(Failure::Full.or_clock(&headers, 0), Failure::Full);
        assert_eq!(refusal().or_clock(&HeaderMap::new(), 0), refusal());
    }

    #[test]
    fn error_codes_of_s3_servers_are_told_apart() {
        let body = |code: &str| format!("<Error><Code>{code}</Code><Message>m</Message></Error>");
        for (code, status, failure) in [
            ("RequestTimeTooSkewed", 403, Failure::Clock("m".into())),
            ("SignatureDoesNotMatch", 403, Failure::WrongPassword),
            ("AccessDenied", 403, Failure::Forbidden("m".into())),
            ("NoSuchBucket", 404, Failure::NoSuchPlace("m".into())),
            ("AuthorizationHeaderMalformed", 400, Failure::WrongRegion("m".into())),
            ("SlowDown", 503, Failure::RateLimited),
            ("ServiceUnavailable", 503, Failure::Busy("m".into())),
            ("XMinioStorageFull", 507, Failure::Full),
        ] {
            assert_eq!(of(Protocol::S3, "PUT", status, &body(code)), Some(failure), "{code}");
        }
        assert_eq!(of(Protocol::S3, "GET", 404, &body("NoSuchKey")), None);
    }
}
