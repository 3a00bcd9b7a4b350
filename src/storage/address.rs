//! Addresses of remotes, parsed once. An address never contains a password.

use std::fmt;
use std::path::PathBuf;

use super::{Error, Result};
use crate::file_names::{self, push_char};

/// Where a remote is. When printed, it can be parsed again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the parts describe them")]
pub enum Address {
    Folder(PathBuf),
    WebDav(WebDav),
    S3(S3),
    Rclone(Rclone),
}

/// `webdav://user@host:port/path`, or `webdav+http://` without encryption of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the parts describe them")]
pub struct WebDav {
    pub server: Server,
    pub user: Option<String>,
    /// The folders below the server's root.
    pub path: Vec<String>,
}

/// `s3://key@bucket/prefix?endpoint=https://host&region=name&style=virtual`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the parts describe them")]
pub struct S3 {
    pub bucket: String,
    /// The id of the access key.
    pub user: Option<String>,
    pub prefix: Vec<String>,
    /// The server, if it is not that of Amazon.
    pub endpoint: Option<Server>,
    pub region: Option<String>,
    pub style: BucketStyle,
}

/// How requests name the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketStyle {
    /// In the path: `https://host/bucket/`.
    #[default]
    Path,
    /// In the name of the server: `https://bucket.host/`.
    Virtual,
}

/// `rclone:remote:path`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the parts describe them")]
pub struct Rclone {
    pub remote: String,
    pub path: String,
}

/// A server and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the parts describe them")]
pub struct Server {
    pub is_encrypted: bool,
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    pub port: Option<u16>,
}

impl Server {
    /// Returns the URL of the server's root.
    pub fn url(&self) -> String {
        format!("{}://{self}", if self.is_encrypted { "https" } else { "http" })
    }

    fn parse(text: &str, is_encrypted: bool) -> Option<Self> {
        // The brackets of an IPv6 address contain colons.
        let after_host = text.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match text[after_host..].rfind(':') {
            Some(colon) => {
                let at = after_host + colon;
                (&text[..at], Some(text[at + 1..].parse().ok()?))
            }
            None => (text, None),
        };
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_valid = match inside {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let is_plain = |c: char| c.is_alphanumeric() || c == '-' || c == '.' || c == '_';
                !host.is_empty() && !host.starts_with(['-', '.']) && host.chars().all(is_plain)
            }
        };
        is_valid.then(|| Self { is_encrypted, host: host.to_lowercase(), port })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

const DOTS: &str = "it contains a part that is . or ..";
const NO_SERVER: &str = "it does not name a valid server";
const NOT_TEXT: &str = "it contains escapes that are not UTF-8 text, or control characters";

impl Address {
    /// Parses an address. Text without a scheme is the path of a folder.
    pub fn parse(text: &str) -> Result<Self> {
        match Self::parse_server(text)? {
            Some(address) => Ok(address),
            None if text.contains("://") => Err(refuse(text, "stvc does not know its protocol")),
            None if text.is_empty() => Err(refuse(text, "it is empty")),
            None => Ok(Self::Folder(PathBuf::from(text))),
        }
    }

    /// Parses the address of a WebDAV server, an S3 bucket or a remote of rclone. Returns `None`
    /// for other text, for example a path or the address of a git server.
    pub fn parse_server(text: &str) -> Result<Option<Self>> {
        let why = |why| refuse(text, why);
        let scheme = |name: &str| {
            let (start, rest) = text.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some(rest)
        };
        let address = if let Some(rest) = scheme("webdav://") {
            parse_webdav(text, rest, true).map(Self::WebDav)
        } else if let Some(rest) = scheme("webdav+http://") {
            parse_webdav(text, rest, false).map(Self::WebDav)
        } else if let Some(rest) = scheme("s3://") {
            parse_s3(text, rest).map(Self::S3)
        } else if let Some(rest) = scheme("rclone:") {
            parse_rclone(rest).map(Self::Rclone).map_err(why)
        } else {
            return Ok(None);
        };
        address.map(Some)
    }

    /// Returns the user name in the address.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::WebDav(address) => address.user.as_deref(),
            Self::S3(address) => address.user.as_deref(),
            Self::Folder(_) | Self::Rclone(_) => None,
        }
    }

    /// Whether the storage can ask for a password that stvc must know.
    pub fn may_need_password(&self) -> bool {
        matches!(self, Self::WebDav(_) | Self::S3(_))
    }
}

/// Returns whether a text is the address of a server and not a path. The address may be invalid.
pub fn names_server(text: &str) -> bool {
    !matches!(Address::parse_server(text), Ok(None))
}

fn refuse(address: &str, why: &'static str) -> Error {
    Error::Address { address: without_password(address), why }
}

/// Separates `user@` from the server. A password is refused.
fn split_user<'t>(text: &str, server: &'t str) -> Result<(Option<String>, &'t str)> {
    // A user name may be an e-mail address.
    let Some((user, host)) = server.rsplit_once('@') else { return Ok((None, server)) };
    if user.contains(':') {
        return Err(Error::PasswordInAddress { address: without_password(text) });
    }
    let user = decode(user).filter(|user| !user.is_empty() && !user.contains(':'));
    Ok((Some(user.ok_or_else(|| refuse(text, "its user name is not valid"))?), host))
}

fn parse_webdav(text: &str, rest: &str, is_encrypted: bool) -> Result<WebDav> {
    let why = |why| refuse(text, why);
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = split_user(text, server)?;
    if path.contains(['?', '#']) {
        return Err(why("it contains ? or #; write %3F or %23 if that is part of a name"));
    }
    let server = Server::parse(host, is_encrypted).ok_or_else(|| why(NO_SERVER))?;
    Ok(WebDav { server, user, path: parse_path(path).map_err(why)? })
}

fn parse_s3(text: &str, rest: &str) -> Result<S3> {
    let why = |why| refuse(text, why);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let (user, bucket) = split_user(text, bucket)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if bucket.is_empty() || bucket.starts_with('.') || !bucket.bytes().all(is_plain) {
        return Err(why("it does not name a valid bucket"));
    }
    let mut address = S3 {
        bucket: bucket.to_owned(),
        user,
        prefix: parse_path(prefix).map_err(why)?,
        endpoint: None,
        region: None,
        style: BucketStyle::Path,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).ok_or_else(|| why(NOT_TEXT))?;
        match name {
            "endpoint" => {
                let (scheme, host) = value.split_once("://").unwrap_or(("https", &value));
                if host.contains('@') {
                    return Err(Error::PasswordInAddress { address: without_password(text) });
                }
                let is_encrypted = scheme.eq_ignore_ascii_case("https");
                let is_known = is_encrypted || scheme.eq_ignore_ascii_case("http");
                let server = Server::parse(host.trim_end_matches('/'), is_encrypted);
                let server = server.filter(|_| is_known);
                address.endpoint =
                    Some(server.ok_or_else(|| why("its endpoint is not a valid server"))?);
            }
            "region" => {
                let is_region = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                if value.is_empty() || !value.chars().all(is_region) {
                    return Err(why("its region is not valid"));
                }
                address.region = Some(value);
            }
            "style" => {
                address.style = match &*value {
                    "path" => BucketStyle::Path,
                    "virtual" => BucketStyle::Virtual,
                    _ => return Err(why("its style is neither path nor virtual")),
                }
            }
            _ => return Err(why("after ? only endpoint, region and style are allowed")),
        }
    }
    Ok(address)
}

fn parse_rclone(rest: &str) -> std::result::Result<Rclone, &'static str> {
    const USAGE: &str = "it needs a remote and a path: rclone:REMOTE:PATH";
    if rest.starts_with(':') {
        return Err("a remote must be in rclone's configuration; add it with `rclone config`");
    }
    let (remote, path) = rest.split_once(':').ok_or(USAGE)?;
    if remote.contains(',') {
        return Err("options after the name of the remote are not allowed");
    }
    let is_plain = |c: char| c.is_alphanumeric() || " _-.+@".contains(c);
    if remote.is_empty() || remote.starts_with(['-', ' ']) || !remote.chars().all(is_plain) {
        return Err("it does not name a valid remote of rclone");
    }
    if path.chars().any(char::is_control) {
        return Err("it contains control characters");
    }
    if path.split('/').any(|part| part == ".." || part == ".") {
        return Err(DOTS);
    }
    Ok(Rclone { remote: remote.to_owned(), path: path.trim_end_matches('/').to_owned() })
}

fn parse_path(path: &str) -> std::result::Result<Vec<String>, &'static str> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let part = decode(part).ok_or(NOT_TEXT)?;
        if part == "." || part == ".." {
            return Err(DOTS);
        }
        if part.contains(['/', '\\']) {
            return Err("a part of its path contains a slash");
        }
        parts.push(part);
    }
    Ok(parts)
}

fn decode(text: &str) -> Option<String> {
    let text = String::from_utf8(file_names::undo(text)).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

/// Escapes the characters that separate parts of an address.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_whitespace() || "%/?#&@:".contains(c) {
            push_char(&mut out, c);
        } else {
            out.push(c);
        }
    }
    out
}

/// Replaces a password in text that may be an address.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let login = rest[..end].rsplit_once('@').and_then(|(login, host)| {
        let (user, _) = login.split_once(':')?;
        Some(format!("{user}:***@{host}"))
    });
    let start = login.unwrap_or_else(|| rest[..end].to_owned());
    let mut path = rest[end..].to_owned();
    // The endpoint of a bucket is an address, too.
    if let Some((before, endpoint)) = path.split_once("endpoint=") {
        let (value, after) = endpoint.split_once('&').unwrap_or((endpoint, ""));
        if let Some((_, host)) = value.rsplit_once('@') {
            let and = if after.is_empty() { "" } else { "&" };
            path = format!("{before}endpoint=***@{host}{and}{after}");
        }
    }
    format!("{scheme}://{start}{path}")
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = |f: &mut fmt::Formatter<'_>| {
            self.user().map_or(Ok(()), |user| write!(f, "{}@", encode(user)))
        };
        let path = |f: &mut fmt::Formatter<'_>, parts: &[String]| {
            parts.iter().try_for_each(|part| write!(f, "/{}", encode(part)))
        };
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::WebDav(address) => {
                let http = if address.server.is_encrypted { "" } else { "+http" };
                write!(f, "webdav{http}://")?;
                user(f)?;
                write!(f, "{}", address.server)?;
                path(f, &address.path)
            }
            Self::S3(address) => {
                f.write_str("s3://")?;
                user(f)?;
                f.write_str(&address.bucket)?;
                path(f, &address.prefix)?;
                let endpoint =
                    address.endpoint.as_ref().map(|server| format!("endpoint={}", server.url()));
                let region = address.region.as_ref().map(|region| format!("region={region}"));
                let style = (address.style == BucketStyle::Virtual).then(|| "style=virtual".into());
                for (n, option) in [endpoint, region, style].into_iter().flatten().enumerate() {
                    write!(f, "{}{option}", if n == 0 { '?' } else { '&' })?;
                }
                Ok(())
            }
            Self::Rclone(address) => write!(f, "rclone:{}:{}", address.remote, address.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_address_parses_to_the_same_address() {
        for (text, printed) in [
            ("webdav://host", "webdav://host"),
            ("WebDAV://Host:8443/a//b/", "webdav://host:8443/a/b"),
            ("webdav+http://192.168.1.2:5005/home", "webdav+http://192.168.1.2:5005/home"),
            ("webdav://[::1]:80/x", "webdav://[::1]:80/x"),
            (
                "webdav://me@example.com@dav.example.net/dav/聊天 记录/🌊%3F",
                "webdav://me%40example.com@dav.example.net/dav/聊天%20记录/🌊%3F",
            ),
            ("s3://chats", "s3://chats"),
            (
                "s3://KEY@chats/a/b?region=eu&endpoint=localhost:9000&style=virtual",
                "s3://KEY@chats/a/b?endpoint=https://localhost:9000&region=eu&style=virtual",
            ),
            (
                "s3://chats?endpoint=http%3A%2F%2F127.0.0.1:9000/",
                "s3://chats?endpoint=http://127.0.0.1:9000",
            ),
            ("rclone:My drive:聊天/a/", "rclone:My drive:聊天/a"),
            ("rclone:crypt:", "rclone:crypt:"),
            ("/mnt/nas/聊天", "/mnt/nas/聊天"),
            ("C:\\chats", "C:\\chats"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), printed);
            assert_eq!(Address::parse(printed).unwrap(), address, "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_reason() {
        for text in [
            "",
            "ftp://host/x",
            "https://host/x",
            "webdav://",
            "webdav:///path",
            "webdav://host:port/",
            "webdav://-host/",
            "webdav://ho st/",
            "webdav://[::1/x",
            "webdav://host/../x",
            "webdav://host/a/%2e%2e/x",
            "webdav://host/a%2Fb",
            "webdav://host/a?b",
            "webdav://host/a%00",
            "webdav://host/%FF",
            "webdav://@host/",
            "s3://",
            "s3:///x",
            "s3://bucket/../x",
            "s3://bucket?endpoint=ftp://x",
            "s3://bucket?endpoint=a/b",
            "s3://bucket?region=",
            "s3://bucket?password=x",
            "rclone:",
            "rclone:name",
            "rclone:-name:x",
            "rclone::webdav,url=x:y",
            "rclone:name,option=1:x",
            "rclone:name:../x",
            "rclone:name:a\nb",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn password_in_an_address_is_refused_and_not_repeated() {
        for text in [
            "webdav://me:s3cret@host/x",
            "webdav://me@mail:s3cret@host/x",
            "s3://key:s3cret@bucket",
            "s3://bucket?endpoint=https://me:s3cret@host&region=x",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(matches!(error, Error::PasswordInAddress { .. }), "{text}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let error = Address::parse("webdav://me:s3cret@host:x/x").unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn paths_and_git_servers_are_not_addresses_of_storages() {
        for text in ["/a/b", "a:b", "https://host/x.git", "me@host:x", "C:\\x", "s3", "rclone"] {
            assert!(Address::parse_server(text).unwrap().is_none(), "{text}");
        }
    }
}
