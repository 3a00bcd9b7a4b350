//! Admits or denies HTTP requests. Pages of other origins can send requests to servers on this
//! machine, even under host names of their own (DNS rebinding). Each rule prevents an attack that
//! succeeded against another server.

use std::sync::{Mutex, PoisonError};

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Uri};

use crate::api::random_hex;

/// Checks requests. The viewer's files are public. Requests for data need the secret, which a
/// client receives in exchange for an unused code. The secret is not in a cookie, because a browser
/// would send the cookie to every other server on this machine.
#[derive(Debug)]
pub struct Gate {
    /// 256 random bits in hexadecimal.
    secret: String,
    /// Codes that were not used yet. Each code can be exchanged for the secret once.
    codes: Mutex<Vec<String>>,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmittedRequest {
    /// A request for a public file, with its path.
    Page(String),
    /// An exchange of a code for the secret.
    Enter,
    /// A request for the state, which tells the viewer whether the store changed.
    State,
    Api,
}

impl AdmittedRequest {
    /// Returns whether the client has sent the secret or an unused code.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Page(_))
    }
}

/// The reason for denying a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    ForeignHost,
    ForeignOrigin,
    NoSecret,
    BadMethod,
    /// The content type is not JSON. A form on another website could send any other type without a
    /// CORS preflight.
    NotJson,
}

impl Denied {
    /// Returns the HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::ForeignHost => 421,
            Self::ForeignOrigin | Self::NoSecret => 403,
            Self::BadMethod => 405,
            Self::NotJson => 415,
        }
    }

    /// Returns the text of the HTTP answer.
    pub fn words(self) -> &'static str {
        match self {
            Self::ForeignHost => "Use 127.0.0.1 or localhost to reach this server.",
            Self::ForeignOrigin => "Requests from other websites are not allowed.",
            Self::NoSecret => {
                "Open the address that `stvc view` printed. It works only once. If you have used it, run `stvc view` again."
            }
            Self::BadMethod => "This method is not allowed here.",
            Self::NotJson => "A request must be JSON, with the content type application/json.",
        }
    }
}

/// The header that contains the secret. Only a page of this origin can set the header.
pub const SECRET_HEADER: &str = "x-stvc";
pub const CODE_HEADER: &str = "x-stvc-code";

impl Gate {
    pub fn new(port: u16) -> std::io::Result<Self> {
        Ok(Self { secret: random_hex::<32>()?, codes: Mutex::default(), port })
    }

    /// Returns an address that opens the viewer once. The code follows the `#`, because browsers do
    /// not send that part of an address to servers.
    pub fn new_address(&self) -> std::io::Result<String> {
        let code = random_hex::<32>()?;
        let address = format!("http://127.0.0.1:{}/#code={code}", self.port);
        self.codes.lock().unwrap_or_else(PoisonError::into_inner).push(code);
        Ok(address)
    }

    /// Returns the secret, which each request for data must contain.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Checks a request. The host name is checked first, to prevent DNS rebinding.
    pub fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<AdmittedRequest, Denied> {
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = single(headers, header::HOST.as_str());
        let named_by = uri.authority().map(|authority| authority.as_str());
        let is_ours = |name: &str| names.iter().any(|own| own == name);
        if !host.is_some_and(is_ours) || named_by.is_some_and(|name| !is_ours(name)) {
            return Err(Denied::ForeignHost);
        }
        let origin = headers.get(header::ORIGIN);
        let is_own = |origin: &HeaderValue| {
            names.iter().any(|name| origin.as_bytes() == format!("http://{name}").as_bytes())
        };
        if origin.is_some_and(|origin| !is_own(origin)) || is_cross_site(headers, method) {
            return Err(Denied::ForeignOrigin);
        }
        let has_secret = || {
            let secret = single(headers, SECRET_HEADER);
            secret.is_some_and(|secret| is_equal(&self.secret, secret))
        };
        match (method, uri.path()) {
            (&Method::GET, "/state") if has_secret() => Ok(AdmittedRequest::State),
            (&Method::GET, "/state") => Err(Denied::NoSecret),
            (&Method::GET | &Method::HEAD, path) => Ok(AdmittedRequest::Page(path.to_owned())),
            // Browsers send an origin with every POST request, so a POST request without one is
            // denied.
            (&Method::POST, "/api" | "/enter") if origin.is_none() => Err(Denied::ForeignOrigin),
            (&Method::POST, "/api") if !has_secret() => Err(Denied::NoSecret),
            (&Method::POST, "/api" | "/enter") if !is_json(headers) => Err(Denied::NotJson),
            (&Method::POST, "/api") => Ok(AdmittedRequest::Api),
            (&Method::POST, "/enter") => match single(headers, CODE_HEADER) {
                Some(code) if self.use_code(code) => Ok(AdmittedRequest::Enter),
                _ => Err(Denied::NoSecret),
            },
            _ => Err(Denied::BadMethod),
        }
    }

    /// Removes a code from the unused codes. Returns whether the code was unused.
    fn use_code(&self, code: &str) -> bool {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = codes.len();
        codes.retain(|own| !is_equal(own, code));
        codes.len() < unused
    }
}

/// Compares secrets in constant time.
fn is_equal(own: &str, other: &str) -> bool {
    let (own, other) = (own.as_bytes(), other.as_bytes());
    let differs = own.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
    own.len() == other.len() && differs == 0
}

fn is_json(headers: &HeaderMap) -> bool {
    let json = single(headers, header::CONTENT_TYPE.as_str());
    json.is_some_and(|json| json.trim() == "application/json")
}

/// Returns whether a page of another site sent the request. Following a link on another site is
/// allowed.
fn is_cross_site(headers: &HeaderMap, method: &Method) -> bool {
    let from = single(headers, "sec-fetch-site");
    let is_visit = *method == Method::GET
        && single(headers, "sec-fetch-mode").is_none_or(|mode| mode == "navigate");
    match from {
        None | Some("same-origin" | "none") => false,
        Some(_) => !is_visit,
    }
}

/// Returns the value of a header, or `None` unless the header occurs exactly once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "abababababababababababababababababababababababababababababababab";
    const CODE: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

    fn gate() -> Gate {
        Gate { secret: SECRET.into(), codes: Mutex::new(vec![CODE.into()]), port: 4711 }
    }

    fn ask_at(
        gate: &Gate,
        method: &str,
        uri: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<AdmittedRequest, Denied> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        gate.admit(&method.parse().unwrap(), &uri.parse().unwrap(), &map)
    }

    fn ask(
        method: &str,
        uri: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<AdmittedRequest, Denied> {
        ask_at(&gate(), method, uri, headers)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:4711");
    const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:4711");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const KNOWN: (&str, &str) = (SECRET_HEADER, SECRET);

    #[test]
    fn gate_admits_page_requests_and_requests_with_the_secret() {
        assert_eq!(ask("GET", "/page.js", &[HOST]), Ok(AdmittedRequest::Page("/page.js".into())));
        assert_eq!(
            ask("GET", "/", &[("host", "localhost:4711")]),
            Ok(AdmittedRequest::Page("/".into()))
        );
        assert_eq!(ask("GET", "/state", &[HOST, KNOWN]), Ok(AdmittedRequest::State));
        assert_eq!(ask("POST", "/api", &[HOST, KNOWN, ORIGIN, JSON]), Ok(AdmittedRequest::Api));
        // The user may follow a link in an email or on another site.
        let link = [HOST, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(ask("GET", "/", &link), Ok(AdmittedRequest::Page("/".into())));
    }

    #[test]
    fn address_code_is_accepted_only_once() {
        let gate = gate();
        let enter = [HOST, ORIGIN, JSON, (CODE_HEADER, CODE)];
        assert_eq!(ask_at(&gate, "POST", "/enter", &enter), Ok(AdmittedRequest::Enter));
        assert_eq!(ask_at(&gate, "POST", "/enter", &enter), Err(Denied::NoSecret));
        // A code does not work as the secret, and the secret does not work as a code.
        let api = [HOST, ORIGIN, JSON, (SECRET_HEADER, CODE)];
        assert_eq!(ask("POST", "/api", &api), Err(Denied::NoSecret));
        let enter = [HOST, ORIGIN, JSON, (CODE_HEADER, SECRET)];
        assert_eq!(ask("POST", "/enter", &enter), Err(Denied::NoSecret));
    }

    #[test]
    fn gate_refuses_requests_without_secret_or_from_other_origins() {
        let foreign = ("origin", "http://evil.example");
        let code = (CODE_HEADER, CODE);
        for (method, uri, headers, why) in [
            ("GET", "/state", &[HOST][..], Denied::NoSecret),
            ("GET", "/state", &[HOST, (SECRET_HEADER, "ab")], Denied::NoSecret),
            ("GET", "/state", &[HOST, KNOWN, KNOWN], Denied::NoSecret),
            // A cookie is not accepted instead of the secret.
            ("GET", "/state", &[HOST, ("cookie", "stvc4711=abab")], Denied::NoSecret),
            // A host name that is not one of the server's two names.
            ("GET", "/", &[("host", "evil.example:4711")], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1")], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1:80")], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1:4711.evil.example")], Denied::ForeignHost),
            ("GET", "/", &[], Denied::ForeignHost),
            ("GET", "/", &[HOST, HOST], Denied::ForeignHost),
            ("GET", "http://evil.example/", &[HOST], Denied::ForeignHost),
            // A page of another origin.
            ("GET", "/", &[HOST, foreign], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, KNOWN, foreign, JSON], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, KNOWN, ("origin", "null"), JSON], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, KNOWN, JSON], Denied::ForeignOrigin),
            ("POST", "/enter", &[HOST, code, foreign, JSON], Denied::ForeignOrigin),
            ("POST", "/enter", &[HOST, code, JSON], Denied::ForeignOrigin),
            (
                "GET",
                "/x.js",
                &[HOST, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
                Denied::ForeignOrigin,
            ),
            // A form on another site, which the browser submits without a CORS preflight.
            ("POST", "/api", &[HOST, ORIGIN, JSON], Denied::NoSecret),
            ("POST", "/enter", &[HOST, ORIGIN, JSON], Denied::NoSecret),
            ("POST", "/enter", &[HOST, ORIGIN, code], Denied::NotJson),
            ("POST", "/api", &[HOST, KNOWN, ORIGIN], Denied::NotJson),
            (
                "POST",
                "/api",
                &[HOST, KNOWN, ORIGIN, ("content-type", "text/plain")],
                Denied::NotJson,
            ),
            ("POST", "/", &[HOST, KNOWN, ORIGIN, JSON], Denied::BadMethod),
            ("PUT", "/api", &[HOST, KNOWN, ORIGIN, JSON], Denied::BadMethod),
            ("OPTIONS", "/api", &[HOST, KNOWN, ORIGIN], Denied::BadMethod),
        ] {
            assert_eq!(ask(method, uri, headers), Err(why), "{method} {uri} {headers:?}");
        }
    }

    #[test]
    fn every_secret_is_long_and_unique() {
        let (one, other) = (Gate::new(1).unwrap(), Gate::new(1).unwrap());
        assert_eq!(one.secret.len(), 64);
        assert_ne!(one.secret, other.secret);
        let addresses = [one.new_address().unwrap(), one.new_address().unwrap()];
        assert_ne!(addresses[0], addresses[1]);
        assert!(addresses.iter().all(|address| !address.contains(&one.secret)));
    }
}
