//! The answer of an S3 server to ListObjectsV2, reduced to keys below the prefix of the address.
//!
//! OpenDAL would panic on a key that does not begin with the prefix, and fail on dates that it
//! cannot parse. A list that is continued without a place to continue would never end.

use super::{LONGEST_LIST, TOO_LONG, xml};

struct Object {
    key: String,
    size: u64,
}

/// Returns the list in the form that OpenDAL reads, without objects outside `root`.
pub fn clean(list: &[u8], root: &str) -> Result<Vec<u8>, &'static str> {
    let mut objects = Vec::new();
    let (mut key, mut size) = (String::new(), 0);
    let (mut is_truncated, mut token, mut is_list) = (false, String::new(), false);
    xml::read(list, None, |element| match (element.parent(), element.name) {
        ("", "ListBucketResult") => is_list = true,
        ("ListBucketResult", "IsTruncated") => is_truncated = element.text == "true",
        ("ListBucketResult", "NextContinuationToken") => token = element.text.to_owned(),
        ("Contents", "Key") => key = element.text.to_owned(),
        ("Contents", "Size") => size = element.text.parse().unwrap_or(0),
        ("ListBucketResult", "Contents") => {
            objects.push(Object { key: std::mem::take(&mut key), size });
        }
        _ => {}
    })?;
    if !is_list {
        return Err("it does not list objects");
    }
    if objects.len() > LONGEST_LIST {
        return Err(TOO_LONG);
    }
    if is_truncated && token.is_empty() {
        return Err("its list of files is incomplete");
    }
    objects.retain(|object| object.key.len() > root.len() && object.key.starts_with(root));
    let escape = |text: &str| quick_xml::escape::escape(text).into_owned();
    let mut out = format!("<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>");
    if is_truncated {
        out.push_str(&format!("<NextContinuationToken>{}</NextContinuationToken>", escape(&token)));
    }
    for Object { key, size } in objects {
        out.push_str(&format!(
            "<Contents><Key>{}</Key><Size>{size}</Size>\
             <LastModified>1970-01-01T00:00:00Z</LastModified></Contents>",
            escape(&key)
        ));
    }
    out.push_str("</ListBucketResult>");
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(list: &str) -> Result<String, &'static str> {
        clean(list.as_bytes(), "聊天/").map(|list| String::from_utf8(list).unwrap())
    }

    #[test]
    fn only_keys_below_the_prefix_are_listed() {
        let keys = ["聊天/a", "聊", "聊天", "聊天/", "x", "../聊天/a", "/聊天/a", "聊天/b&amp;c"];
        let contents =
            keys.map(|key| format!("<Contents><Key>{key}</Key><Size>3</Size></Contents>"));
        let list = format!(
            "<ListBucketResult xmlns=\"http://s3\"><Contents/><IsTruncated>true</IsTruncated>\
             <NextContinuationToken>a&lt;b</NextContinuationToken>{}</ListBucketResult>",
            contents.concat()
        );
        let list = cleaned(&list).unwrap();
        assert_eq!(list.matches("<Key>").count(), 2, "{list}");
        assert!(list.contains("<Key>聊天/a</Key><Size>3</Size>"), "{list}");
        assert!(list.contains("<Key>聊天/b&amp;c</Key>"), "{list}");
        assert!(list.contains("<NextContinuationToken>a&lt;b</"), "{list}");
    }

    #[test]
    fn lists_without_an_end_are_refused() {
        let list = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        assert!(cleaned(list).is_err());
        assert!(cleaned("<html>Log in</html>").is_err());
        assert!(cleaned("").is_err());
    }
}
