//! Addresses of git servers. Addresses that would let git run another program are refused.

use std::fmt;

use crate::file_names;

/// The address of a git server, checked by [`Url::parse`]. When printed, its password is hidden.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(String);

pub(super) struct Login {
    pub user: String,
    pub password: String,
}

/// The protocols that git may use.
const SCHEMES: [&str; 6] = ["ssh", "git+ssh", "ssh+git", "https", "http", "git"];

impl Url {
    /// Parses an address. Returns `None` if the text is a path. The error is the reason why the
    /// address is refused.
    pub fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        if text.starts_with('-') {
            return Err("it begins with -, so git would read it as an option");
        }
        if text.chars().any(char::is_control) {
            return Err("it contains control characters");
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
                return Err("only ssh://, https://, http:// and git:// are supported");
            }
            // Git, too, refuses addresses like `ssh://-oProxyCommand=…`, which ssh would read as an
            // option.
            if rest.starts_with(['-', '/']) || rest.contains("@-") {
                return Err("it does not name a valid server");
            }
            // Git passes the address to its credential helpers line by line, so a line feed could
            // forge a line.
            if file_names::undo(rest).iter().any(u8::is_ascii_control) {
                return Err("it contains control characters");
            }
            return Ok(Some(Self(text.to_owned())));
        }
        let Some((host, path)) = text.split_once(':') else { return Ok(None) };
        if host.contains(['/', '\\']) || host.chars().count() < 2 {
            return Ok(None);
        }
        if path.starts_with(':') {
            return Err("git's remote helpers are not supported; use ssh:// or https://");
        }
        if path.is_empty() || host.contains("@-") {
            return Err("it does not name a valid server and path");
        }
        Ok(Some(Self(text.to_owned())))
    }

    /// Returns the address for the command line of git, and the login if the address has one for
    /// HTTP. The address has no password, because every user can read the arguments of a process.
    pub(super) fn split_login(&self) -> (String, Option<Login>) {
        let whole = || (self.0.clone(), None);
        let Some((scheme, rest)) = self.0.split_once("://") else { return whole() };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let Some((login, host)) = rest[..end].rsplit_once('@') else { return whole() };
        let Some((user, password)) = login.split_once(':') else { return whole() };
        let text = |part| String::from_utf8_lossy(&file_names::undo(part)).into_owned();
        // For SSH the user name belongs to the address, and a password is not used.
        let (kept, login) = if scheme.to_ascii_lowercase().starts_with("http") {
            ("", Some(Login { user: text(user), password: text(password) }))
        } else {
            (user, None)
        };
        let at = if kept.is_empty() { "" } else { "@" };
        (format!("{scheme}://{kept}{at}{host}{}", &rest[end..]), login)
    }

    pub(super) fn server(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{scheme}://{host}")
    }

    /// Returns `text` with the password of an address replaced by `***`, because others may read
    /// the output. Other text is returned unchanged.
    pub fn without_password(text: &str) -> String {
        let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
        let host = rest.split('/').next().unwrap_or_default();
        match host.rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
            Some((user, password)) => {
                let rest = &rest[user.len() + 1 + password.len()..];
                format!("{scheme}://{user}:***{rest}")
            }
            None => text.to_owned(),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::without_password(&self.0))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_server_addresses_are_urls_and_unsafe_ones_are_refused() {
        for address in [
            "ssh://host/chats.git",
            "https://user:secret@host/chats.git",
            "http://192.168.1.2:3000/u/chats.git",
            "me@host:chats.git",
            "host:chats.git",
            "SSH://me@host:2222/~/chats.git",
        ] {
            assert!(Url::parse(address).unwrap().is_some(), "{address}");
        }
        for path in ["/media/stick", "stick", "./a:b", "C:\\chats", "C:chats", "a/b:c"] {
            assert!(Url::parse(path).unwrap().is_none(), "{path}");
        }
        for bad in [
            "ext::sh -c evil",
            "fd::7",
            "-oProxyCommand=evil",
            "--upload-pack=evil",
            "ssh://-oProxyCommand=evil/x",
            "me@-oProxyCommand=evil:x",
            "ftp://host/x",
            "host:",
            "ssh://host/a\nb",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn password_is_not_passed_as_a_git_argument() {
        for (address, argument, login) in [
            (
                "https://me:s%40:cret@host:81/x.git",
                "https://host:81/x.git",
                Some(("me", "s@:cret")),
            ),
            ("http://:token@host/a@b", "http://host/a@b", Some(("", "token"))),
            ("https://me@host/x", "https://me@host/x", None),
            ("ssh://me:s3cret@host/x", "ssh://me@host/x", None),
            ("me@host:x", "me@host:x", None),
        ] {
            let url = Url::parse(address).unwrap().unwrap();
            let (found, given) = url.split_login();
            let given = given.as_ref().map(|it| (it.user.as_str(), it.password.as_str()));
            assert_eq!((&*found, given), (argument, login), "{address}");
        }
        let url = Url::parse("https://me:s3cret@host:81/x.git").unwrap().unwrap();
        assert_eq!(url.server(), "https://host:81");
        for bad in ["https://me:a%0Ahost=evil@host/x", "https://me%00:a@host/x"] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn password_is_hidden_in_output() {
        let url = Url::parse("https://me:s3cret@host/x.git").unwrap().unwrap();
        assert_eq!(url.to_string(), "https://me:***@host/x.git");
        assert_eq!(format!("{url:?}"), "\"https://me:***@host/x.git\"");
        assert_eq!(Url::without_password("https://me@host/a:b@c"), "https://me@host/a:b@c");
        assert_eq!(Url::without_password("snapshot"), "snapshot");
    }
}
