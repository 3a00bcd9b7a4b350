//! Who is let in. Each rule stands because somebody's server lacked it: pages of other origins reach servers on this machine, too, under names of their own.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Uri};

/// What a visitor must know and say.
#[derive(Clone, Debug)]
pub struct Gate {
    /// 256 bits, in hexadecimal.
    token: String,
    port: u16,
}

/// What is asked for, once somebody is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The address that was printed: the visitor gets a cookie and is sent on.
    Welcome,
    /// Something to read: its path.
    Get(String),
    /// A request of the API.
    Api,
}

/// Why nobody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Another host's name leads here.
    ForeignHost,
    /// Another origin's page asks.
    ForeignOrigin,
    /// No token.
    NoToken,
    /// Neither to read nor a request of the API.
    BadMethod,
    /// A form of another page could say that, too.
    NotJson,
}

impl Denied {
    pub fn status(self) -> u16 {
        match self {
            Self::ForeignHost => 421,
            Self::ForeignOrigin | Self::NoToken => 403,
            Self::BadMethod => 405,
            Self::NotJson => 415,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::ForeignHost => "This server is only called 127.0.0.1 or localhost.",
            Self::ForeignOrigin => "Another page may not ask.",
            Self::NoToken => "Open the address that `stvc view` printed.",
            Self::BadMethod => "This cannot be done here.",
            Self::NotJson => "A request is JSON and says so.",
        }
    }
}

/// The header that only a page of this origin can set without being asked for it.
pub const OWN_HEADER: &str = "x-stvc";
const COOKIE: &str = "stvc";

impl Gate {
    /// A new token for a server on this port.
    pub fn new(port: u16) -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { token, port })
    }

    /// The address to open.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The cookie that a visitor gets.
    pub fn cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.token)
    }

    /// Cookies do not know ports: two servers must not take each other's away.
    fn cookie_name(&self) -> String {
        format!("{COOKIE}{}", self.port)
    }

    /// Let somebody in, or say why not. The host's name comes before all else.
    pub fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Admitted, Denied> {
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
        let has_cookie = self.has_cookie(headers);
        match *method {
            Method::GET | Method::HEAD if uri.path() == "/" && self.has_token(uri) => {
                Ok(Admitted::Welcome)
            }
            Method::GET | Method::HEAD if has_cookie => Ok(Admitted::Get(uri.path().to_owned())),
            Method::POST if uri.path() == "/api" => {
                // Whoever does not say where he comes from is not let in.
                if origin.is_none() {
                    return Err(Denied::ForeignOrigin);
                }
                let json = single(headers, header::CONTENT_TYPE.as_str());
                let is_json = json.is_some_and(|json| json.trim() == "application/json");
                match (has_cookie, is_json && headers.contains_key(OWN_HEADER)) {
                    (false, _) => Err(Denied::NoToken),
                    (true, false) => Err(Denied::NotJson),
                    (true, true) => Ok(Admitted::Api),
                }
            }
            Method::GET | Method::HEAD => Err(Denied::NoToken),
            _ => Err(Denied::BadMethod),
        }
    }

    fn has_token(&self, uri: &Uri) -> bool {
        let query = uri.query().unwrap_or_default();
        query.split('&').filter_map(|part| part.strip_prefix("token=")).any(|it| self.is_it(it))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs =
            cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.any(|(key, value)| key == name && self.is_it(value))
    }

    /// In the same time whatever is wrong about it.
    fn is_it(&self, token: &str) -> bool {
        let (own, other) = (self.token.as_bytes(), token.as_bytes());
        let differs = own.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
        own.len() == other.len() && differs == 0
    }
}

/// What the browser itself says of where a request comes from. A link on another page may lead here; nothing else may.
fn is_cross_site(headers: &HeaderMap, method: &Method) -> bool {
    let from = single(headers, "sec-fetch-site");
    let is_visit = *method == Method::GET
        && single(headers, "sec-fetch-mode").is_none_or(|mode| mode == "navigate");
    match from {
        None | Some("same-origin" | "none") => false,
        Some(_) => !is_visit,
    }
}

/// A header that is there once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate { token: "ab".repeat(32), port: 4711 }
    }

    fn ask(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Result<Admitted, Denied> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        gate().admit(&method.parse().unwrap(), &uri.parse().unwrap(), &map)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:4711");
    const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:4711");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const OWN: (&str, &str) = (OWN_HEADER, "1");

    fn cookie() -> String {
        format!("other=1; stvc4711={}", "ab".repeat(32))
    }

    #[test]
    fn whoever_knows_the_token_is_let_in() {
        let token = format!("/?token={}", "ab".repeat(32));
        assert_eq!(ask("GET", &token, &[HOST]), Ok(Admitted::Welcome));
        assert_eq!(ask("GET", &token, &[("host", "localhost:4711")]), Ok(Admitted::Welcome));
        let cookie = cookie();
        let known = ("cookie", cookie.as_str());
        assert_eq!(ask("GET", "/page.js", &[HOST, known]), Ok(Admitted::Get("/page.js".into())));
        let api = [HOST, known, ORIGIN, JSON, OWN];
        assert_eq!(ask("POST", "/api", &api), Ok(Admitted::Api));
        // A link in a mail or on another page may lead here.
        let link = [HOST, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(ask("GET", &token, &link), Ok(Admitted::Welcome));
    }

    #[test]
    fn nobody_else_is() {
        let cookie = cookie();
        let known = ("cookie", cookie.as_str());
        let foreign = ("origin", "http://evil.example");
        for (method, uri, headers, why) in [
            ("GET", "/", &[HOST][..], Denied::NoToken),
            ("GET", "/?token=ab", &[HOST], Denied::NoToken),
            ("GET", "/", &[HOST, ("cookie", "stvc4711=ab")], Denied::NoToken),
            ("GET", "/", &[HOST, ("cookie", "stvc4712=ab")], Denied::NoToken),
            // Another name for this machine.
            ("GET", "/", &[("host", "evil.example:4711"), known], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1"), known], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1:80"), known], Denied::ForeignHost),
            ("GET", "/", &[("host", "127.0.0.1:4711.evil.example"), known], Denied::ForeignHost),
            ("GET", "/", &[known], Denied::ForeignHost),
            ("GET", "/", &[HOST, HOST, known], Denied::ForeignHost),
            ("GET", "http://evil.example/", &[HOST, known], Denied::ForeignHost),
            // Another origin's page.
            ("GET", "/", &[HOST, known, foreign], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, known, foreign, JSON, OWN], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, known, ("origin", "null"), JSON, OWN], Denied::ForeignOrigin),
            ("POST", "/api", &[HOST, known, JSON, OWN], Denied::ForeignOrigin),
            (
                "GET",
                "/x.js",
                &[HOST, known, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
                Denied::ForeignOrigin,
            ),
            // A form of another page, which the browser sends without asking.
            ("POST", "/api", &[HOST, ORIGIN, JSON, OWN], Denied::NoToken),
            ("POST", "/api", &[HOST, known, ORIGIN, OWN], Denied::NotJson),
            (
                "POST",
                "/api",
                &[HOST, known, ORIGIN, ("content-type", "text/plain"), OWN],
                Denied::NotJson,
            ),
            ("POST", "/api", &[HOST, known, ORIGIN, JSON], Denied::NotJson),
            ("POST", "/", &[HOST, known, ORIGIN, JSON, OWN], Denied::BadMethod),
            ("PUT", "/api", &[HOST, known, ORIGIN, JSON, OWN], Denied::BadMethod),
            ("OPTIONS", "/api", &[HOST, known, ORIGIN], Denied::BadMethod),
        ] {
            assert_eq!(ask(method, uri, headers), Err(why), "{method} {uri} {headers:?}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (Gate::new(1).unwrap(), Gate::new(1).unwrap());
        assert_eq!(one.token.len(), 64);
        assert_ne!(one.token, other.token);
        assert!(one.cookie().contains("HttpOnly; SameSite=Strict"));
    }
}
