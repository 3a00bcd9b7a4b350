//! The answer of a WebDAV server to PROPFIND, reduced to names and lengths.
//!
//! Servers write it in many ways, and a hostile one may write anything. OpenDAL fails on a folder
//! with one entry that it cannot read, accepts names outside the folder, and stops after the first
//! page of 坚果云, which has 750 entries. So [`parse`] extracts the entries of the requested folder,
//! and [`write()`] writes them in the form that OpenDAL reads.

use super::{LONGEST_LIST, TOO_LONG, xml};
use crate::file_names;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in the folder. Empty for the folder itself, or the requested file.
    pub name: String,
    pub is_folder: bool,
    pub bytes: u64,
}

#[derive(Default)]
struct Response {
    href: String,
    is_folder: bool,
    length: String,
}

/// Returns the entries of the folder with this decoded path. Entries with other paths are left out.
/// The host in an absolute path is ignored: behind a proxy, a server may not know its own name, and
/// requests go only to the server of the address. Fails if the answer does not concern the folder.
pub fn parse(list: &[u8], folder: &[u8]) -> Result<Vec<Entry>, &'static str> {
    let mut entries = Vec::new();
    let mut response = Response::default();
    let mut responses = 0_usize;
    xml::read(list, Some("DAV:"), |element| {
        let is_property = || element.parents.iter().any(|parent| parent == "prop");
        match element.name {
            "href" if element.parent() == "response" => element.text.clone_into(&mut response.href),
            "collection" if is_property() => response.is_folder = true,
            // A server that does not know the length may answer with an empty one, too.
            "getcontentlength" if is_property() && !element.text.is_empty() => {
                element.text.clone_into(&mut response.length);
            }
            "response" => {
                responses += 1;
                entries.extend(entry(&std::mem::take(&mut response), folder));
            }
            _ => {}
        }
    })?;
    if responses > LONGEST_LIST {
        return Err(TOO_LONG);
    }
    if entries.is_empty() && responses > 0 {
        return Err("its list of files does not belong to the requested folder");
    }
    Ok(entries)
}

fn entry(response: &Response, folder: &[u8]) -> Option<Entry> {
    let href = response.href.as_str();
    let path = match href.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').map_or("/", |at| &rest[at..])
        }
        _ => href,
    };
    let path = file_names::undo(path.split(['?', '#']).next().unwrap_or_default());
    let name = trim(&path).strip_prefix(trim(folder))?;
    let name = match name {
        [] => "",
        [b'/', name @ ..] => str::from_utf8(name).ok()?,
        // The root is the only folder that ends with a slash.
        name if trim(folder).is_empty() => str::from_utf8(name).ok()?,
        _ => return None,
    };
    let is_plain = !name.contains(['/', '\\']) && !name.chars().any(char::is_control);
    if !is_plain || name == "." || name == ".." {
        return None;
    }
    let is_folder = response.is_folder || name.is_empty() && path.ends_with(b"/");
    let bytes = if is_folder { 0 } else { response.length.parse().unwrap_or(0) };
    Some(Entry { name: name.to_owned(), is_folder, bytes })
}

/// Removes slashes from the end.
fn trim(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    &path[..end]
}

/// Writes entries in the form that OpenDAL reads.
pub fn write(entries: &[Entry], folder: &[u8]) -> Vec<u8> {
    let escape = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            if byte.is_ascii_alphanumeric() || b"-_./".contains(byte) {
                out.push(char::from(*byte));
            } else {
                file_names::push_byte(out, *byte);
            }
        }
    };
    let mut out = String::from("<multistatus>");
    for entry in entries {
        out.push_str("<response><href>");
        escape(&mut out, trim(folder));
        if !entry.name.is_empty() {
            out.push('/');
            escape(&mut out, entry.name.as_bytes());
        }
        if entry.is_folder {
            out.push('/');
        }
        let kind = if entry.is_folder { "<collection/>" } else { "" };
        out.push_str(&format!(
            "</href><propstat><prop><getlastmodified>Thu, 01 Jan 1970 00:00:00 GMT</getlastmodified>\
             <getcontentlength>{}</getcontentlength><resourcetype>{kind}</resourcetype></prop>\
             <status>HTTP/1.1 200 OK</status></propstat></response>",
            entry.bytes
        ));
    }
    out.push_str("</multistatus>");
    out.into_bytes()
}

/// Returns the target of `rel="next"` in a `Link` header.
pub fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel") && value.eq_ignore_ascii_case("next")
        });
        is_next.then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(href: &str, properties: &str) -> String {
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    }

    fn listed(responses: &[String]) -> Result<Vec<(String, bool, u64)>, &'static str> {
        let xml = format!(
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{}</D:multistatus>",
            responses.concat()
        );
        let entries = parse(xml.as_bytes(), "/dav/聊天/".as_bytes())?;
        Ok(entries.into_iter().map(|entry| (entry.name, entry.is_folder, entry.bytes)).collect())
    }

    const FOLDER: &str = "<D:resourcetype><D:collection/></D:resourcetype>";
    const FILE: &str = "<D:resourcetype/><D:getcontentlength>7</D:getcontentlength>";

    #[test]
    fn entries_of_different_servers_are_read() {
        let root = "/dav/%E8%81%8A%E5%A4%A9";
        let found = listed(&[
            response(&format!("{root}/"), FOLDER),
            // Apache writes escapes in lower case, others write absolute addresses.
            response("/dav/%e8%81%8a%e5%a4%a9/a", FILE),
            response(&format!("http://10.0.0.1:8080{root}/b"), FILE),
            response("/dav/聊天/c&amp;d", FILE),
            response(&format!("{root}/packs"), FOLDER),
            response(&format!("{root}/empty"), "<D:getcontentlength/>"),
        ]);
        let file = |name: &str, bytes| (name.to_owned(), false, bytes);
        let folder = |name: &str| (name.to_owned(), true, 0);
        let expected = [
            folder(""),
            file("a", 7),
            file("b", 7),
            file("c&d", 7),
            folder("packs"),
            file("empty", 0),
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn entries_outside_the_folder_are_left_out() {
        let found = listed(&[
            response("/dav/聊天/", FOLDER),
            response("/dav/聊天/../secret", FILE),
            response("/dav/聊天/%2e%2e/secret", FILE),
            response("/dav/聊天/..", FILE),
            response("/dav/聊天/a%2F..%2Fb", FILE),
            response("/dav/聊天/a%5Cb", FILE),
            response("/dav/聊天/a%00", FILE),
            response("/dav/聊天/%FF", FILE),
            response("/dav/聊天x", FILE),
            response("/etc/passwd", FILE),
            response("file:///etc/passwd", FILE),
            response("https://evil.example/dav/%E8%81%8A%E5%A4%A9x/a", FILE),
            response("", FILE),
        ]);
        assert_eq!(found.unwrap(), [(String::new(), true, 0)]);
        assert!(listed(&[response("/other/", FOLDER), response("/other/a", FILE)]).is_err());
    }

    #[test]
    fn other_xml_lists_nothing() {
        let parse = |xml: &str| parse(xml.as_bytes(), b"/");
        assert!(parse("<multistatus xmlns=\"DAV:\"><response><href>/a</href>").is_err());
        assert!(parse("</a>").is_err());
        assert!(parse("<html><body>Log in</body></html>").unwrap().is_empty());
        // Elements of another namespace, or outside `prop`.
        let other = "<x:multistatus xmlns:x=\"DAV:\" xmlns:o=\"o\"><x:response><x:href>/a</x:href>\
                     <o:collection/><x:propstat><x:prop><o:getcontentlength>3</o:getcontentlength>\
                     </x:prop></x:propstat></x:response></x:multistatus>";
        assert_eq!(parse(other).unwrap(), [Entry { name: "a".into(), is_folder: false, bytes: 0 }]);
    }

    #[test]
    fn next_page_is_found() {
        let link = "<https://a/x?p=1>; rel=\"prev\", <https://a/x?p=3>; title=x; rel=\"next\"";
        assert_eq!(next_page(link), Some("https://a/x?p=3"));
        assert_eq!(next_page("<https://a/x>; rel=self"), None);
        assert_eq!(next_page("nonsense"), None);
    }
}
