//! The status page: one file that asks for nothing but `status.json` beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The page. It holds no data.
pub const PAGE: &str = include_str!("status.html");

/// The header that lets a browser run what stands in the page and nothing else, and ask nobody but
/// this address. The page is in nobody's frame.
pub fn policy() -> String {
    let hash = |tag: &str| {
        let text = between(PAGE, &format!("<{tag}>"), &format!("</{tag}>"));
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    };
    format!(
        "Content-Security-Policy: default-src 'none'; connect-src 'self'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer",
        hash("style"),
        hash("script")
    )
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(begin).unwrap_or_default();
    rest.split_once(end).map_or("", |(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_of_what_stands_in_the_page() {
        assert_eq!(PAGE.matches("<script>").count(), 1);
        assert_eq!(PAGE.matches("<style>").count(), 1);
        assert!(between(PAGE, "<script>", "</script>").contains("status.json"));
        // nothing comes from elsewhere, and no text becomes HTML
        for foreign in ["http:", "https:", "innerHTML", "onclick", "src="] {
            assert!(!PAGE.contains(foreign), "{foreign}");
        }
        assert!(policy().contains("default-src 'none'"));
    }
}
