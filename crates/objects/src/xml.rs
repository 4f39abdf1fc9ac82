//! What the server says, as a small tree.
//!
//! Servers differ in namespaces and in what they add. Names are compared without their namespace,
//! and what is not known is passed over.

use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// Deeper than any answer of S3.
const DEPTH: usize = 16;

/// An element with the text and the elements in it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Element {
    /// Without namespace.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// The outermost element of a document; `None` if it is no whole document.
    pub(crate) fn parse(document: &[u8]) -> Option<Self> {
        let mut reader = Reader::from_str(str::from_utf8(document).ok()?);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => {
                    if open.len() > DEPTH {
                        return None;
                    }
                    open.push(Self::named(start.local_name().as_ref()));
                }
                Event::Empty(start) => {
                    let element = Self::named(start.local_name().as_ref());
                    open.last_mut()?.children.push(element);
                }
                Event::End(_) => {
                    let element = open.pop()?;
                    open.last_mut()?.children.push(element);
                }
                Event::Text(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
                Event::CData(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
                Event::GeneralRef(entity) => {
                    let text = &mut open.last_mut()?.text;
                    match entity.resolve_char_ref().ok()? {
                        Some(character) => text.push(character),
                        None => text.push_str(resolve_predefined_entity(&entity.xml10_content())?),
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        // All were closed, and there is one document.
        let mut root = open.pop().filter(|_| open.is_empty())?;
        let element = root.children.pop()?;
        root.children.is_empty().then_some(element)
    }

    fn named(name: impl AsRef<[u8]>) -> Self {
        Self {
            name: String::from_utf8_lossy(name.as_ref()).into_owned(),
            ..Self::default()
        }
    }

    /// All elements of this name in it.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first element of this name in it.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Its text.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_and_without_namespaces() {
        let text =
            b"<?xml version=\"1.0\"?>\n<a:R xmlns:a=\"x\"><Contents><Key>a&amp;b&#x2f;c</Key>\
            <ETag>&quot;1&quot;</ETag></Contents><Contents/><More>yes</More></a:R>";
        let root = Element::parse(text).unwrap();
        assert_eq!(root.name, "R");
        assert_eq!(root.all("Contents").count(), 2);
        let first = root.child("Contents").unwrap();
        assert_eq!(first.text_of("Key"), Some("a&b/c"));
        assert_eq!(first.text_of("ETag"), Some("\"1\""));
        assert_eq!(root.text_of("More"), Some("yes"));
    }

    #[test]
    fn what_is_cut_or_too_deep_is_no_document() {
        for text in ["", "x", "<a>", "<a><b></a>", "<a/><b/>", "<a>&evil;</a>"] {
            assert_eq!(Element::parse(text.as_bytes()), None, "{text}");
        }
        let deep = "<a>".repeat(1000) + &"</a>".repeat(1000);
        assert_eq!(Element::parse(deep.as_bytes()), None);
    }
}
