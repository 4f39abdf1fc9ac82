//! What SHOW CREATE TABLE needs to know of character sets: which collation is a set's default.

pub use onionskin_value::default_collation;

/// The character set a collation belongs to.
pub(crate) fn charset_of(collation: &str) -> &str {
    match collation.split('_').next() {
        // Old names of the three-byte UTF-8, in case a server still prints them.
        Some("utf8") => "utf8mb3",
        Some(charset) => charset,
        None => collation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onionskin_value::Family;

    #[test]
    fn collations_know_their_set_and_sets_their_default() {
        assert_eq!(charset_of("utf8mb4_0900_ai_ci"), "utf8mb4");
        assert_eq!(charset_of("utf8_bin"), "utf8mb3");
        assert_eq!(charset_of("binary"), "binary");
        assert_eq!(
            default_collation("utf8mb4", Family::MySql),
            "utf8mb4_0900_ai_ci"
        );
        assert_eq!(
            default_collation("utf8mb4", Family::MariaDb),
            "utf8mb4_general_ci"
        );
        assert_eq!(
            default_collation("latin1", Family::MySql),
            "latin1_swedish_ci"
        );
    }
}
