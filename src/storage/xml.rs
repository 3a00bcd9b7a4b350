//! Reads XML of servers, which may be hostile.

use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::name::{Namespace, ResolveResult};

/// Maximum length of the text of an element, in bytes.
const LONGEST_TEXT: usize = 16 << 10;
const DEEPEST: usize = 64;
/// The name of elements in other namespaces.
const OTHER: &str = "?";

const UNREADABLE: &str = "its list of files is not valid";

/// An element that has ended.
pub struct Element<'x> {
    pub name: &'x str,
    /// The text after the last element inside, without white space around it.
    pub text: &'x str,
    /// The elements around it, outermost first.
    pub parents: &'x [String],
}

impl Element<'_> {
    pub fn parent(&self) -> &str {
        self.parents.last().map_or("", String::as_str)
    }
}

/// Calls `visit` at the end of each element. With a namespace, elements of others have no name.
/// Fails on anything that is not complete XML, and on entities that the XML defines itself.
pub fn read(
    xml: &[u8],
    namespace: Option<&str>,
    mut visit: impl FnMut(&Element),
) -> Result<(), &'static str> {
    let xml = String::from_utf8_lossy(xml);
    let mut reader = NsReader::from_str(&xml);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<String> = Vec::new();
    let mut text = String::new();
    loop {
        let (found, event) = reader.read_resolved_event().map_err(|_| UNREADABLE)?;
        let found =
            matches!(found, ResolveResult::Bound(Namespace(found)) if Some(found) == namespace);
        match event {
            Event::Start(_) if open.len() >= DEEPEST => return Err(UNREADABLE),
            Event::Start(element) => {
                let is_known = found || namespace.is_none();
                let name = element.local_name();
                open.push(if is_known { name.as_ref().to_owned() } else { OTHER.to_owned() });
                text.clear();
            }
            Event::Text(part) => push(&mut text, &part)?,
            Event::CData(part) => push(&mut text, &part)?,
            Event::GeneralRef(reference) => {
                let number = reference.resolve_char_ref().map_err(|_| UNREADABLE)?;
                match (number, resolve_predefined_entity(&reference)) {
                    (Some(c), _) => push(&mut text, c.encode_utf8(&mut [0; 4]))?,
                    (None, Some(entity)) => push(&mut text, entity)?,
                    (None, None) => return Err(UNREADABLE),
                }
            }
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                visit(&Element { name: &name, text: text.trim(), parents: &open });
                text.clear();
            }
            Event::Eof if open.is_empty() => return Ok(()),
            Event::Eof => return Err("its list of files is incomplete"),
            _ => {}
        }
    }
}

fn push(text: &mut String, part: &str) -> Result<(), &'static str> {
    text.push_str(part);
    if text.len() <= LONGEST_TEXT { Ok(()) } else { Err(UNREADABLE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(xml: &str) -> Result<Vec<String>, &'static str> {
        let mut texts = Vec::new();
        read(xml.as_bytes(), None, |element| {
            texts.push(format!("{}={}", element.name, element.text));
        })?;
        Ok(texts)
    }

    #[test]
    fn text_is_read_with_its_escapes() {
        let xml = "<a><x:b xmlns:x=\"n\"> 1&amp;&#x96E8;<![CDATA[<2>]]> </x:b><c/></a>";
        assert_eq!(texts(xml).unwrap(), ["b=1&雨<2>", "c=", "a="]);
    }

    #[test]
    fn hostile_xml_is_refused() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
        for xml in [
            bomb,
            &"<a>".repeat(100_000),
            &format!("<a>{}", "a".repeat(1 << 20)),
            "<a><b></b>",
            "</a>",
            "<a></b>",
        ] {
            assert!(texts(xml).is_err(), "{:.40}", xml);
        }
    }
}
