//! Ids as hexadecimal digits in JSON.

use serde::{Deserialize, Deserializer, Serializer};

use super::ObjectId;

pub fn serialize<S: Serializer>(id: &ObjectId, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(id)
}

pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<ObjectId, D::Error> {
    let text = String::deserialize(input)?;
    ObjectId::from_hex(text.as_bytes()).map_err(|_| serde::de::Error::custom("not an object id"))
}

/// Ids that may be absent.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ObjectId;

    pub fn serialize<S: Serializer>(id: &Option<ObjectId>, out: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<ObjectId>, D::Error> {
        #[derive(Deserialize)]
        struct Hex(#[serde(with = "super")] ObjectId);
        Ok(Option::<Hex>::deserialize(input)?.map(|Hex(id)| id))
    }
}
