//! What `information_schema.columns` says of a type beside its name.
//!
//! The facts are computed once, when a column is defined, and stored in its comment, so that a
//! query on `information_schema` can show them without understanding types.

use onionskin_value::{Family, SqlType};

/// The columns of `information_schema.columns` that follow from a column's type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeFacts {
    pub data_type: String,
    pub column_type: String,
    pub character_set: Option<String>,
    pub collation: Option<String>,
    pub character_maximum_length: Option<u64>,
    pub character_octet_length: Option<u64>,
    pub numeric_precision: Option<u64>,
    pub numeric_scale: Option<u64>,
    pub datetime_precision: Option<u64>,
}

/// The word before the parameters: `decimal` of `decimal(10,2) unsigned`.
pub(crate) fn data_type_of(column_type: &str) -> &str {
    let end = column_type
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(column_type.len());
    &column_type[..end]
}

/// The numbers in the parentheses behind the type's name.
fn parameters(column_type: &str) -> (Option<u64>, Option<u64>) {
    let inside = column_type
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .map_or("", |(inside, _)| inside);
    let mut numbers = inside.split(',').map(|number| number.trim().parse().ok());
    (numbers.next().flatten(), numbers.next().flatten())
}

/// Whether servers write this type's values, and so its defaults, without quotes.
pub(crate) fn is_numeric(data_type: &str) -> bool {
    matches!(
        data_type,
        "tinyint"
            | "smallint"
            | "mediumint"
            | "int"
            | "bigint"
            | "decimal"
            | "float"
            | "double"
            | "year"
            | "bit"
    )
}

/// Whether the values are bytes without a character set.
pub(crate) fn is_binary(data_type: &str) -> bool {
    matches!(data_type, "binary" | "varbinary") || data_type.ends_with("blob")
}

/// Whether this is one of the TEXT or BLOB types, or JSON: types whose defaults are expressions, if
/// any.
pub(crate) fn is_long(data_type: &str) -> bool {
    data_type.ends_with("blob") || data_type.ends_with("text") || data_type == "json"
}

impl TypeFacts {
    /// The facts of a logical type on this family of servers.
    pub(crate) fn new(sql_type: &SqlType, family: Family) -> Self {
        let column_type = sql_type.to_sql(family);
        let collation = sql_type.collation.filter(|c| {
            let is_shown = sql_type.is_enumerated() && family == Family::MariaDb;
            is_shown || c.name() != "binary"
        });
        let mut facts = Self {
            data_type: data_type_of(&column_type).to_owned(),
            character_set: collation.map(|c| c.charset().name().to_owned()),
            collation: collation.map(|c| c.name().to_owned()),
            ..Self::default()
        };
        let character_bytes = collation.map_or(1, |c| u64::from(c.charset().max_bytes()));
        let unsigned = column_type.contains("unsigned");
        let (first, second) = parameters(&column_type);
        let length = |characters, octets| (Some(characters), Some(octets));
        // of types that count bytes, servers say how many of the shortest characters fit
        let least = collation.map_or(1, |c| u64::from(c.charset().min_bytes()));
        let bytes = |octets| length(octets / least, octets);
        let mut lengths = (None, None);
        match facts.data_type.as_str() {
            "tinyint" => facts.numeric_precision = Some(3),
            "smallint" => facts.numeric_precision = Some(5),
            "mediumint" if unsigned && family == Family::MariaDb => {
                facts.numeric_precision = Some(8);
            }
            "mediumint" => facts.numeric_precision = Some(7),
            "int" => facts.numeric_precision = Some(10),
            "bigint" => facts.numeric_precision = Some(if unsigned { 20 } else { 19 }),
            "decimal" => {
                facts.numeric_precision = Some(first.unwrap_or(10));
                facts.numeric_scale = Some(second.unwrap_or(0));
            }
            "float" => {
                facts.numeric_precision = Some(first.unwrap_or(12));
                facts.numeric_scale = second;
            }
            "double" => {
                facts.numeric_precision = Some(first.unwrap_or(22));
                facts.numeric_scale = second;
            }
            "enum" | "set" => {
                let (characters, octets) = sql_type.text_lengths();
                lengths = length(characters, octets);
            }
            "bit" => facts.numeric_precision = Some(first.unwrap_or(1)),
            "char" | "varchar" => {
                let characters = first.unwrap_or(1);
                lengths = length(characters, characters.saturating_mul(character_bytes));
            }
            "binary" | "varbinary" => lengths = length(first.unwrap_or(1), first.unwrap_or(1)),
            "tinytext" | "tinyblob" => lengths = bytes(0xff),
            "text" | "blob" => lengths = bytes(0xffff),
            "mediumtext" | "mediumblob" => lengths = bytes(0xff_ffff),
            "longtext" | "longblob" => lengths = bytes(0xffff_ffff),
            "time" | "datetime" | "timestamp" => {
                facts.datetime_precision = Some(first.unwrap_or(0));
            }
            _ => {}
        }
        if facts.data_type.ends_with("int") {
            facts.numeric_scale = Some(0);
        }
        (facts.character_maximum_length, facts.character_octet_length) = lengths;
        facts.column_type = column_type;
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_end_at_the_first_other_character() {
        assert_eq!(data_type_of("decimal(10,2) unsigned"), "decimal");
        assert_eq!(data_type_of("int unsigned"), "int");
        assert_eq!(data_type_of("date"), "date");
        assert_eq!(data_type_of(""), "");
        assert_eq!(
            parameters("decimal(10,2) unsigned zerofill"),
            (Some(10), Some(2))
        );
        assert_eq!(parameters("date"), (None, None));
    }
}
