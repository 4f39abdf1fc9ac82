//! What SHOW CREATE TABLE needs to know of character sets: which collation is a set's default.

use onionskin_value::Family;

/// The character set a collation belongs to.
pub(crate) fn charset_of(collation: &str) -> &str {
    match collation.split('_').next() {
        // Old names of the three-byte UTF-8, in case a server still prints them.
        Some("utf8") => "utf8mb3",
        Some(charset) => charset,
        None => collation,
    }
}

/// The default collation of a character set.
pub fn default_collation(charset: &str, family: Family) -> String {
    let suffix = match charset {
        "binary" => return "binary".to_owned(),
        "utf8mb4" if family == Family::MySql => "0900_ai_ci",
        "latin1" | "dec8" | "swe7" => "swedish_ci",
        "hp8" => "english_ci",
        "big5" | "gb2312" | "gbk" | "gb18030" => "chinese_ci",
        "ujis" | "sjis" | "cp932" | "eucjpms" => "japanese_ci",
        "tis620" => "thai_ci",
        "euckr" => "korean_ci",
        "latin5" => "turkish_ci",
        "utf8" => return "utf8mb3_general_ci".to_owned(),
        _ => "general_ci",
    };
    format!("{charset}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
