//! What MySQL says of words in the definition of a protected column that it will not have for
//! ever. It does not get to see them.

use onionskin_value::{Kind, Level, SqlType, Warning};

/// "… is deprecated and will be removed in a future release. Please use … instead".
const DEPRECATED: u16 = 1287;
/// The same without anything to use instead.
const DEPRECATED_SYNTAX: u16 = 1681;
/// `utf8`, which will mean utf8mb4.
const UTF8: u16 = 3719;
/// NCHAR and its like.
const NATIONAL: u16 = 3720;
/// A collation of utf8mb3.
const UTF8MB3_COLLATION: u16 = 3778;
/// A collation of another deprecated character set.
const COLLATION: u16 = 4079;

const ZEROFILL: &str = "The ZEROFILL attribute is deprecated and will be removed in a future release. Use the LPAD \
                        function to zero-pad numbers, or store the formatted numbers in a CHAR column.";
const WIDTH: &str = "Integer display width is deprecated and will be removed in a future release.";
const DIGITS: &str = "Specifying number of digits for floating point data types is deprecated and will be removed in \
                      a future release.";
const UNSIGNED: &str = "UNSIGNED for decimal and floating point data types is deprecated and support for it will be \
                        removed in a future release.";
const UNSIGNED_YEAR: &str = "UNSIGNED for the YEAR data type is deprecated and support for it will be removed in a \
                             future release.";
const BINARY: &str = "'BINARY as attribute of a type' is deprecated and will be removed in a future release. Please \
                      use a CHARACTER SET clause with _bin collation instead";
const YEAR: &str =
    "'YEAR(4)' is deprecated and will be removed in a future release. Please use YEAR instead";
const ALIAS: &str = "'utf8' is currently an alias for the character set UTF8MB3, but will be an alias for UTF8MB4 in \
                     a future release. Please consider using UTF8MB4 in order to be unambiguous.";

const NATIONAL_SET: &str = "NATIONAL/NCHAR/NVARCHAR implies the character set UTF8MB3, which will be replaced by UTF8MB4 in a \
                            future release. Please consider using CHAR(x) CHARACTER SET UTF8MB4 in order to be \
                            unambiguous.";

/// Character sets beside utf8mb3.
const CHARSETS: [&str; 5] = ["ucs2", "macroman", "macce", "dec8", "hp8"];

/// The words of a definition.
pub(super) struct Words<'w> {
    pub charset: Option<&'w str>,
    pub collation: Option<&'w str>,
    /// NCHAR and its like, which say what the character set is.
    pub is_national: bool,
    /// BINARY behind a type of texts.
    pub binary: bool,
    /// UNSIGNED, which ZEROFILL implies.
    pub unsigned: bool,
    /// A number in parentheses stands behind the type.
    pub number: bool,
}

/// What the server would say, in its order.
pub(super) fn warnings(words: &Words, ty: &SqlType) -> Vec<Warning> {
    let warning = |code: u16, message: &str| Warning {
        level: Level::Warning,
        code,
        message: message.to_owned(),
    };
    let mut said = Vec::new();
    let charset = words.charset.map(str::to_ascii_lowercase);
    match charset.as_deref() {
        _ if words.is_national => said.push(warning(NATIONAL, NATIONAL_SET)),
        Some("utf8") => said.push(warning(UTF8, ALIAS)),
        Some(name) if name == "utf8mb3" || CHARSETS.contains(&name) => {
            let message = format!(
                "'{name}' is deprecated and will be removed in a future release. Please use utf8mb4 instead"
            );
            said.push(warning(DEPRECATED, &message));
        }
        _ => {}
    }
    if let (Some(_), Some(collation)) = (words.collation, ty.collation) {
        let (name, charset) = (collation.name(), collation.charset().name());
        if charset == "utf8mb3" {
            let message = format!(
                "'{name}' is a collation of the deprecated character set UTF8MB3. Please consider using UTF8MB4 with \
                 an appropriate collation instead."
            );
            said.push(warning(UTF8MB3_COLLATION, &message));
        } else if CHARSETS.contains(&charset) {
            let message = format!(
                "'{name}' is a collation of the deprecated character set {charset}. Please consider using utf8mb4 with \
                 an appropriate collation instead."
            );
            said.push(warning(COLLATION, &message));
        }
    }
    let is_year = matches!(ty.kind, Kind::Year);
    let is_real = !ty.is_integer() && !is_year;
    for (holds, code, message) in [
        (words.binary, DEPRECATED, BINARY),
        (ty.zerofill, DEPRECATED_SYNTAX, ZEROFILL),
        (ty.is_integer() && words.number, DEPRECATED_SYNTAX, WIDTH),
        (ty.digits.is_some(), DEPRECATED_SYNTAX, DIGITS),
        (words.unsigned && is_real, DEPRECATED_SYNTAX, UNSIGNED),
        (is_year && words.number, DEPRECATED, YEAR),
        (
            is_year && words.unsigned && !words.number,
            DEPRECATED_SYNTAX,
            UNSIGNED_YEAR,
        ),
    ] {
        if holds {
            said.push(warning(code, message));
        }
    }
    said
}
