//! `s3://bucket/prefix/name` taken apart.

use crate::Fault;

/// What every address begins with.
pub const SCHEME: &str = "s3://";

/// A bucket, and what the names of objects in it begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The bucket's name.
    pub bucket: String,
    /// Empty, or it ends with a slash.
    pub prefix: String,
    /// What stands behind the last slash: the name of an object, or of a folder that lacks its
    /// slash.
    pub name: String,
}

impl Address {
    /// Whether a text is an address at all.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Takes a text apart.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |why| Err(Fault::Address(text.to_owned(), why));
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return wrong("it does not begin with s3://");
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let known = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.len() < 3 || bucket.len() > 63 || !bucket.chars().all(known) {
            return wrong("a bucket's name has 3 to 63 letters, digits, and - . _");
        }
        if key.chars().any(char::is_control) {
            return wrong("it holds a control character");
        }
        // Servers and programs between take these for something else.
        let mut parts = key.strip_suffix('/').unwrap_or(key).split('/');
        if !key.is_empty() && parts.any(|part| matches!(part, "" | "." | "..")) {
            return wrong("a part of it between two slashes is empty, or . or ..");
        }
        let (prefix, name) = match key.rfind('/') {
            Some(at) => key.split_at(at + 1),
            None => ("", key),
        };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The same with the whole text as the folder.
    pub fn as_folder(mut self) -> Self {
        if !self.name.is_empty() {
            self.prefix.push_str(&self.name);
            self.prefix.push('/');
            self.name.clear();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, prefix, name, folder) in [
            ("s3://abc", "", "", ""),
            ("s3://abc/", "", "", ""),
            ("s3://abc/x", "", "x", "x/"),
            ("s3://abc/x/", "x/", "", "x/"),
            ("s3://abc/x/y z", "x/", "y z", "x/y z/"),
        ] {
            let address = Address::parse(text).unwrap();
            let found = (address.prefix.as_str(), address.name.as_str());
            assert_eq!(found, (prefix, name), "{text}");
            assert_eq!(address.as_folder().prefix, folder, "{text}");
        }
        for text in [
            "abc/x",
            "s3://",
            "s3:///x",
            "s3://ab/x",
            "s3://abc@host/x",
            "s3://abc:80/x",
            "s3://abc//x",
            "s3://abc/../x",
            "s3://abc/x/./y",
            "s3://abc/x\n",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
