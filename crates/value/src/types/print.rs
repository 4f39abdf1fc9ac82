//! A column type as each family of servers prints it.

use super::{Family, Kind, SqlType};
use crate::fixed_binary;

impl SqlType {
    /// The type as this family prints it in SHOW CREATE TABLE and `COLUMN_TYPE`, without charset
    /// and collation.
    pub fn to_sql(&self, family: Family) -> String {
        let mut text = match self.kind {
            Kind::TinyInt(_)
            | Kind::SmallInt(_)
            | Kind::MediumInt(_)
            | Kind::Int(_)
            | Kind::BigInt(_) => self.integer_to_sql(family),
            Kind::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            Kind::Float => self.with_digits("float"),
            Kind::Double => self.with_digits("double"),
            Kind::Char { chars } => format!("char({chars})"),
            Kind::VarChar { chars } => format!("varchar({chars})"),
            Kind::TinyText => "tinytext".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::MediumText => "mediumtext".to_owned(),
            Kind::LongText => "longtext".to_owned(),
            Kind::Binary { len } => format!("binary({len})"),
            Kind::VarBinary { len } => format!("varbinary({len})"),
            Kind::TinyBlob => "tinyblob".to_owned(),
            Kind::Blob => "blob".to_owned(),
            Kind::MediumBlob => "mediumblob".to_owned(),
            Kind::LongBlob => "longblob".to_owned(),
            Kind::Date => "date".to_owned(),
            Kind::Time { fsp } => with_fsp("time", fsp),
            Kind::DateTime { fsp } => with_fsp("datetime", fsp),
            Kind::Timestamp { fsp } => with_fsp("timestamp", fsp),
            Kind::Year => match family {
                Family::MariaDb => "year(4)".to_owned(),
                Family::MySql => "year".to_owned(),
            },
            Kind::Bit { bits } => format!("bit({bits})"),
            Kind::Enum(members) => format!("enum({})", members.definition()),
            Kind::Set(members) => format!("set({})", members.definition()),
            Kind::Uuid | Kind::Inet6 | Kind::Inet4 => fixed_binary::name(self.kind).to_owned(),
            Kind::Json => match family {
                Family::MariaDb => "longtext".to_owned(),
                Family::MySql => "json".to_owned(),
            },
        };
        if self.unsigned {
            text.push_str(" unsigned");
        }
        if self.zerofill {
            text.push_str(" zerofill");
        }
        text
    }

    fn with_digits(&self, name: &str) -> String {
        match self.digits {
            Some(digits) => format!("{name}({},{})", digits.all, digits.decimals),
            None => name.to_owned(),
        }
    }

    fn integer_to_sql(&self, family: Family) -> String {
        let name = match self.kind {
            Kind::TinyInt(_) => "tinyint",
            Kind::SmallInt(_) => "smallint",
            Kind::MediumInt(_) => "mediumint",
            Kind::Int(_) => "int",
            _ => "bigint",
        };
        let is_width_shown = match family {
            Family::MariaDb => true,
            Family::MySql => {
                self.zerofill || (matches!(self.kind, Kind::TinyInt(Some(1))) && !self.unsigned)
            }
        };
        match is_width_shown {
            true => format!("{name}({})", self.display_width()),
            false => name.to_owned(),
        }
    }

    /// The display width of an integer type, given or by default.
    pub(crate) fn display_width(&self) -> u8 {
        // MySQL and MariaDB alike: room for the longest value and its sign. Values of MEDIUMINT and
        // BIGINT UNSIGNED are wider than the signed ones by the sign's place, so those two do not
        // differ.
        match self.kind {
            Kind::TinyInt(width) => width.unwrap_or(if self.unsigned { 3 } else { 4 }),
            Kind::SmallInt(width) => width.unwrap_or(if self.unsigned { 5 } else { 6 }),
            Kind::MediumInt(width) => width.unwrap_or(if self.unsigned { 8 } else { 9 }),
            Kind::Int(width) => width.unwrap_or(if self.unsigned { 10 } else { 11 }),
            Kind::BigInt(width) => width.unwrap_or(20),
            _ => 0,
        }
    }
}

fn with_fsp(name: &str, fsp: u8) -> String {
    if fsp == 0 {
        name.to_owned()
    } else {
        format!("{name}({fsp})")
    }
}
