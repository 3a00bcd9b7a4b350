//! Going through an object's members without building anything.

use super::Raw;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Call `each` with the raw key (quotes included) and the value of every member of the object that `text` is.
/// None if `text` is not one JSON object; `each` may have seen members by then.
pub(in crate::st) fn for_members<'a>(
    text: &'a str,
    each: impl FnMut(&'a str, Raw<'a>),
) -> Option<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Members(each)).ok()?;
    json.end().ok()
}

struct Members<F>(F);

impl<'de, F: FnMut(&'de str, Raw<'de>)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            (self.0)(key.get(), Raw(value.get()));
        }
        Ok(())
    }
}
