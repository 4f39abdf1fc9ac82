//! Random tables. Each has two definitions: one for the plain server, and one for the proxy, which
//! differs by `ENCRYPTED FOR (…)` alone.

use super::random::Random;
use super::values::{self, Literal};
use onionskin_testkit::Kind;
use std::fmt::Write;

/// The types of the columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Int {
        bytes: u32,
        unsigned: bool,
    },
    Decimal {
        digits: u32,
        scale: u32,
        unsigned: bool,
    },
    Float,
    Double,
    /// DOUBLE(m,d). The greatest FLOAT(m,d) is beyond its own range, so that a server may not copy
    /// the table.
    Real {
        digits: u32,
        scale: u32,
    },
    Char(u32),
    VarChar(u32),
    Text,
    Binary(u32),
    VarBinary(u32),
    Blob,
    Date,
    Time(u32),
    DateTime(u32),
    Timestamp(u32),
    Year,
    /// Of [`MEMBERS`].
    Enum,
    /// Of [`MEMBERS`].
    Set,
    Bit(u32),
    /// Only MariaDB has this one and the next two.
    Uuid,
    Inet6,
    Inet4,
}

/// The members of every ENUM and SET.
pub const MEMBERS: [&str; 5] = ["red", "Green", "it's", "é y", "7"];

/// What `ENCRYPTED FOR` is given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    pub eq: bool,
    pub range: bool,
    pub like: bool,
    pub join: Option<&'static str>,
    /// How many bits of tokens are kept, if not all.
    pub eq_bits: Option<u8>,
    /// How many bits order keys are made of, if not of all.
    pub range_bits: Option<u8>,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub collation: Option<&'static str>,
    pub nullable: bool,
    pub default: Option<String>,
    /// The condition of a CHECK over it.
    pub check: Option<String>,
    pub on_update: bool,
    pub auto_increment: bool,
    pub protection: Option<Protection>,
    /// Whether a key names it.
    pub is_indexed: bool,
    /// Values that recur in rows and conditions, so that they meet.
    pub pool: Vec<Literal>,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    pub unique: bool,
    pub columns: Vec<String>,
}

/// The first column is `id`, the primary key.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub keys: Vec<Key>,
    pub options: &'static str,
}

impl Type {
    /// Text with a character set.
    pub fn is_text(self) -> bool {
        matches!(self, Type::Char(_) | Type::VarChar(_) | Type::Text)
    }

    /// Bytes without a character set.
    pub fn is_string(self) -> bool {
        matches!(self, Type::Binary(_) | Type::VarBinary(_) | Type::Blob)
    }

    /// Numbers that can be added to.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Type::Int { .. }
                | Type::Decimal { .. }
                | Type::Float
                | Type::Double
                | Type::Real { .. }
        )
    }

    /// Numbers whose sum depends on the order of adding.
    pub fn is_approximate(self) -> bool {
        matches!(self, Type::Float | Type::Double | Type::Real { .. })
    }

    fn sql(self) -> String {
        let unsigned = |unsigned| if unsigned { " UNSIGNED" } else { "" };
        let fraction = |name: &str, digits: u32| match digits {
            0 => name.to_owned(),
            _ => format!("{name}({digits})"),
        };
        match self {
            Type::Int { bytes, unsigned: u } => {
                let name = match bytes {
                    1 => "TINYINT",
                    2 => "SMALLINT",
                    3 => "MEDIUMINT",
                    4 => "INT",
                    _ => "BIGINT",
                };
                format!("{name}{}", unsigned(u))
            }
            Type::Decimal {
                digits,
                scale,
                unsigned: u,
            } => {
                format!("DECIMAL({digits},{scale}){}", unsigned(u))
            }
            Type::Float => "FLOAT".into(),
            Type::Double => "DOUBLE".into(),
            Type::Real { digits, scale } => format!("DOUBLE({digits},{scale})"),
            Type::Char(n) => format!("CHAR({n})"),
            Type::VarChar(n) => format!("VARCHAR({n})"),
            Type::Text => "TEXT".into(),
            Type::Binary(n) => format!("BINARY({n})"),
            Type::VarBinary(n) => format!("VARBINARY({n})"),
            Type::Blob => "BLOB".into(),
            Type::Date => "DATE".into(),
            Type::Time(f) => fraction("TIME", f),
            Type::DateTime(f) => fraction("DATETIME", f),
            Type::Timestamp(f) => fraction("TIMESTAMP", f),
            Type::Year => "YEAR".into(),
            Type::Enum => format!("ENUM({})", MEMBERS.map(values::quoted).join(", ")),
            Type::Set => format!("SET({})", MEMBERS.map(values::quoted).join(", ")),
            Type::Bit(n) => format!("BIT({n})"),
            Type::Uuid => "UUID".into(),
            Type::Inet6 => "INET6".into(),
            Type::Inet4 => "INET4".into(),
        }
    }

    fn random(random: &mut Random) -> Type {
        let fraction = |random: &mut Random| random.pick(&[0, 0, 1, 3, 6]);
        let common = match random.weighted(&[26, 8, 4, 4, 7, 14, 5, 4, 5, 3, 6, 5, 6, 5, 3]) {
            0 => Type::Int {
                bytes: random.pick(&[1, 2, 3, 4, 4, 8]),
                unsigned: random.chance(35),
            },
            1 => {
                let digits = random.pick(&[1, 5, 9, 10, 18, 30, 65]);
                let scale = random.below(digits.min(30) as usize + 1) as u32;
                Type::Decimal {
                    digits,
                    scale,
                    unsigned: random.chance(20),
                }
            }
            2 => Type::Float,
            3 => Type::Double,
            4 => Type::Char(random.pick(&[0, 1, 4, 8, 20, 100])),
            5 => Type::VarChar(random.pick(&[1, 4, 8, 16, 40, 255])),
            6 => Type::Text,
            7 => Type::Binary(random.pick(&[1, 4, 16, 20])),
            8 => Type::VarBinary(random.pick(&[1, 8, 15, 16, 64])),
            9 => Type::Blob,
            10 => Type::Date,
            11 => Type::Time(fraction(random)),
            12 => Type::DateTime(fraction(random)),
            13 => Type::Timestamp(fraction(random)),
            _ => Type::Year,
        };
        // Rare types rotate by the seed: tables stay small, and other cases what they were.
        match common {
            Type::Decimal { .. } | Type::Year | Type::Blob if random.has_rare_types() => Type::Enum,
            Type::Binary(_) | Type::Time(_) if random.has_rare_types() => Type::Set,
            Type::VarBinary(n) if random.has_rare_types() => Type::Bit(n),
            Type::Float | Type::Double if random.has_rare_types() => {
                let mut aside = random.aside();
                let (digits, scale) =
                    aside.pick(&[(8, 2), (8, 2), (5, 0), (3, 3), (12, 4), (20, 10)]);
                Type::Real { digits, scale }
            }
            other => other,
        }
    }
}

impl Type {
    /// In some streams, a type that only MariaDB has in the place of another.
    fn or_mariadbs(self, random: &Random) -> Type {
        let mut aside = random.aside();
        match self {
            Type::Char(_) | Type::VarChar(_) | Type::Date | Type::Double
                if random.has_rare_types() && aside.chance(35) =>
            {
                aside.pick(&[Type::Uuid, Type::Uuid, Type::Inet6, Type::Inet4])
            }
            other => other,
        }
    }

    fn is_mariadbs(self) -> bool {
        matches!(self, Type::Uuid | Type::Inet6 | Type::Inet4)
    }
}

impl Protection {
    fn sql(&self) -> String {
        let mut words = Vec::new();
        let with_bits = |word: &str, bits: Option<u8>| match bits {
            Some(bits) => format!("{word}:{bits}"),
            None => word.to_owned(),
        };
        words.extend(self.eq.then(|| with_bits("eq", self.eq_bits)));
        words.extend(self.range.then(|| with_bits("range", self.range_bits)));
        words.extend(self.like.then(|| "like".to_owned()));
        words.extend(self.join.map(|group| format!("join:{group}")));
        format!(" ENCRYPTED FOR ({})", words.join(", "))
    }
}

impl Column {
    fn sql(&self, protected: bool) -> String {
        let mut sql = format!("{} {}", self.name, self.ty.sql());
        if let Some(collation) = self.collation {
            // The character set goes with it.
            let _ = write!(sql, " COLLATE {collation}");
        }
        if !self.nullable {
            sql += " NOT NULL";
        } else if matches!(self.ty, Type::Timestamp(_)) {
            sql += " NULL";
        }
        if let Some(default) = &self.default {
            let _ = write!(sql, " DEFAULT {default}");
        }
        if self.on_update {
            let digits = match self.ty {
                Type::Timestamp(digits) | Type::DateTime(digits) => digits,
                _ => 0,
            };
            let _ = write!(sql, " ON UPDATE CURRENT_TIMESTAMP({digits})");
        }
        if self.auto_increment {
            sql += " AUTO_INCREMENT";
        }
        if let (true, Some(protection)) = (protected, &self.protection) {
            sql += &protection.sql();
        }
        sql
    }

    /// The server can compare it for equality.
    pub fn can_equal(&self) -> bool {
        let searchable = |p: &Protection| {
            p.eq && p.eq_bits.is_none() || p.join.is_some() || (p.range && self.exact_order())
        };
        self.protection.as_ref().is_none_or(searchable)
    }

    /// The server can compare it by order.
    pub fn can_order(&self) -> bool {
        self.protection
            .as_ref()
            .is_none_or(|p| p.range && self.exact_order())
    }

    /// The server can narrow by it, and the proxy has to look again.
    pub fn can_narrow(&self) -> bool {
        self.can_narrow_ranges()
            || self
                .protection
                .as_ref()
                .is_some_and(|p| p.eq_bits.is_some())
    }

    /// The same of ranges.
    pub fn can_narrow_ranges(&self) -> bool {
        self.protection.as_ref().is_some_and(|p| p.range) && !self.exact_order()
    }

    /// Whether an order key covers the whole value (docs/formats.md).
    fn exact_order(&self) -> bool {
        if self
            .protection
            .as_ref()
            .is_some_and(|p| p.range_bits.is_some())
        {
            return false;
        }
        let width = match (self.ty, self.collation) {
            (Type::Text | Type::Blob, _) => return false,
            (Type::Char(n) | Type::VarChar(n), Some("latin1_swedish_ci")) => n,
            (Type::Char(n) | Type::VarChar(n), Some("utf8mb4_general_ci")) => 2 * n,
            (Type::Char(n) | Type::VarChar(n), Some("utf8mb4_bin")) => 4 * n,
            (Type::Char(_) | Type::VarChar(_), _) => return false,
            (Type::VarBinary(n), _) => n + 1,
            (Type::Binary(n), _) => n,
            _ => return true,
        };
        width <= 16
    }

    /// Whether different values that SQL takes for equal exist: then which of them a group shows is
    /// anybody's guess.
    pub fn has_lookalikes(&self) -> bool {
        self.ty.is_text() || self.ty.is_approximate()
    }
}

impl Table {
    /// `CREATE TABLE`, with or without `ENCRYPTED FOR`.
    pub fn create(&self, protected: bool) -> String {
        let mut elements: Vec<String> = self.columns.iter().map(|c| c.sql(protected)).collect();
        elements.push("PRIMARY KEY (id)".into());
        let checks = self.columns.iter().filter_map(|c| c.check.as_ref());
        elements.extend(checks.map(|check| format!("CHECK ({check})")));
        for key in &self.keys {
            let unique = if key.unique { "UNIQUE " } else { "" };
            elements.push(format!(
                "{unique}KEY {} ({})",
                key.name,
                key.columns.join(", ")
            ));
        }
        format!(
            "CREATE TABLE {} (\n  {}\n){}",
            self.name,
            elements.join(",\n  "),
            self.options
        )
    }

    /// Whether a unique key besides the primary one names the column.
    pub fn is_unique(&self, column: &str) -> bool {
        self.keys
            .iter()
            .any(|k| k.unique && k.columns.iter().any(|c| c == column))
    }

    /// A random table.
    pub fn random(random: &mut Random, kind: Kind, number: usize) -> Table {
        let mut columns = vec![id_column(random)];
        for n in 0..random.between(2, 6) {
            columns.push(random_column(random, kind, n as usize));
        }
        if random.chance(15) {
            let mut changed = plain_column("changed", Type::Timestamp(random.pick(&[0, 3, 6])));
            let Type::Timestamp(digits) = changed.ty else {
                unreachable!()
            };
            changed.default = Some(format!("CURRENT_TIMESTAMP({digits})"));
            changed.on_update = true;
            changed.nullable = false;
            columns.push(changed);
        }
        let mut keys: Vec<Key> = Vec::new();
        for n in 0..random.below(4) {
            let may = |c: &&Column| {
                c.name != "id"
                    && c.name != "changed"
                    && c.can_equal()
                    && !matches!(c.ty, Type::Text | Type::Blob | Type::Char(0))
            };
            let candidates: Vec<&Column> = columns.iter().filter(may).collect();
            if candidates.is_empty() {
                break;
            }
            let count = if random.chance(25) { 2 } else { 1 };
            let chosen = random.sample(candidates.len(), count);
            keys.push(Key {
                name: format!("key{n}"),
                unique: random.chance(35),
                columns: chosen.iter().map(|&i| candidates[i].name.clone()).collect(),
            });
        }
        for column in &mut columns {
            let name = &column.name;
            column.is_indexed = keys.iter().any(|key| key.columns.contains(name));
        }
        let options = random.pick(&[
            "",
            "",
            " DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
            " DEFAULT CHARSET=latin1",
            " COMMENT='it''s a table'",
        ]);
        Table {
            name: format!("t{number}"),
            columns,
            keys,
            options,
        }
    }
}

/// A second table whose columns can be joined with those of the first.
pub fn joinable(random: &mut Random, first: &mut Table, second: &mut Table) {
    let is_candidate = |c: &Column| c.name != "id" && c.name != "changed";
    let candidates: Vec<usize> = (0..first.columns.len())
        .filter(|&i| is_candidate(&first.columns[i]))
        .collect();
    if candidates.is_empty() {
        return;
    }
    let chosen = random.pick(&candidates);
    // Members are compared by name between columns, and tokens by number.
    let is_enumerated = matches!(first.columns[chosen].ty, Type::Enum | Type::Set);
    if let Some(protection) = &mut first.columns[chosen].protection
        && !is_enumerated
    {
        protection.join = Some("g");
    }
    let mut column = first.columns[chosen].clone();
    column.name = "partner".into();
    column.nullable = true;
    column.default = None;
    second.columns.push(column);
}

fn plain_column(name: &str, ty: Type) -> Column {
    Column {
        name: name.into(),
        ty,
        collation: None,
        nullable: true,
        default: None,
        check: None,
        on_update: false,
        auto_increment: false,
        protection: None,
        is_indexed: false,
        pool: Vec::new(),
    }
}

fn id_column(random: &mut Random) -> Column {
    let ty = Type::Int {
        bytes: random.pick(&[4, 4, 8]),
        unsigned: random.chance(30),
    };
    let mut id = plain_column("id", ty);
    id.nullable = false;
    id.pool = (0..12)
        .map(|_| Literal::number(&random.between(1, 40).to_string()))
        .collect();
    id.auto_increment = random.chance(60);
    if !id.auto_increment && random.chance(30) {
        id.protection = Some(Protection {
            eq: random.chance(50),
            range: true,
            ..Protection::default()
        });
    }
    id
}

/// Whether columns keep fewer bits of their companions, which changes what follows. The fixed part
/// of `make test` stays what it was; runs with another seed have them.
fn with_fewer_bits() -> bool {
    std::env::var_os("ONIONSKIN_SEED").is_some()
}

fn random_column(random: &mut Random, kind: Kind, number: usize) -> Column {
    let ty = match Type::random(random) {
        common if kind == Kind::MariaDb => common.or_mariadbs(random),
        common => common,
    };
    let mut column = plain_column(&format!("c{number}"), ty);
    if ty.is_text() || matches!(ty, Type::Enum | Type::Set) {
        let mut collations = vec![
            "latin1_swedish_ci",
            "utf8mb4_bin",
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_unicode_520_ci",
        ];
        if kind == Kind::MySql {
            collations.push("utf8mb4_0900_ai_ci");
        }
        column.collation = Some(random.pick(&collations));
        // members beyond ASCII have to be met in sets of their own; other cases stay what they were
        if matches!(ty, Type::Enum | Type::Set) {
            let others = ["cp1250_general_ci", "latin5_turkish_ci", "gbk_bin"];
            let mut aside = random.aside();
            if aside.chance(50) {
                column.collation = Some(aside.pick(&others));
            }
        }
    }
    column.nullable = random.chance(65);
    if random.chance(65) | (matches!(ty, Type::Enum | Type::Set | Type::Bit(_)) || ty.is_mariadbs())
    {
        let (eq, range) =
            random.pick(&[(false, false), (true, false), (false, true), (true, true)]);
        let mut protection = Protection {
            eq,
            range,
            like: ty.is_text() && random.aside().chance(15),
            ..Protection::default()
        };
        let mut aside = random.aside();
        // not for the columns alone that have `like`
        aside.below(2);
        let has_fewer = with_fewer_bits() && aside.chance(25);
        if !matches!(ty, Type::Enum | Type::Set | Type::Bit(_)) && has_fewer {
            let (of_eq, of_range) = (aside.pick(&[1, 3, 9]), aside.pick(&[3, 7, 13, 21, 60]));
            protection.eq_bits = (eq && aside.chance(70)).then_some(of_eq);
            protection.range_bits = (range && aside.chance(70)).then_some(of_range);
        }
        column.protection = Some(protection);
    }
    column.pool = values::pool(random, &column);
    // MySQL's long types can have no default.
    let may_have_default = !matches!(ty, Type::Text | Type::Blob) || kind == Kind::MariaDb;
    // A hexadecimal default of these is refused.
    let may_have_default = may_have_default && !ty.is_mariadbs();
    // The defaults of these are names of members and literals of bits, which the pool has among
    // others.
    let may_have_default = may_have_default && !matches!(ty, Type::Enum | Type::Set | Type::Bit(_));
    if may_have_default && random.chance(30) {
        let candidates: Vec<&Literal> = column
            .pool
            .iter()
            .filter(|l| {
                !l.risky && l.sql != "NULL" && !l.sql.contains("0000-") && !l.sql.contains("-00")
            })
            .filter(|l| !l.sql.starts_with('_') && !l.sql.contains('\0'))
            // MySQL's information_schema shows characters beyond the basic plane as `?`.
            .filter(|l| l.sql.chars().all(|c| u32::from(c) < 0x1_0000))
            // MariaDB takes the default of a TEXT for text of the table's character set.
            .filter(|l| ty != Type::Text || l.sql.is_ascii())
            .collect();
        if !candidates.is_empty() {
            column.default = Some(random.pick(&candidates).sql.clone());
        }
    } else if column.nullable && random.chance(20) {
        column.default = Some("NULL".into());
    }
    column.check = random_check(&mut random.aside(), &column);
    column
}

/// A CHECK over a protected column, that some of the values break.
fn random_check(random: &mut Random, column: &Column) -> Option<String> {
    if column.protection.is_none() || !random.chance(12) {
        return None;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // MySQL prints `-(1)` and, once the table was altered, `-1`, and so on by turns
    let is_number = |text: &str| digits(text);
    let is_word = |text: &str| {
        let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
        inner.is_some_and(|t| t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' '))
    };
    let texts = column.pool.iter().map(|literal| literal.sql.as_str());
    // MySQL prints another character set once the table was altered
    let is_utf8 = column.collation.is_some_and(|c| c.starts_with("utf8mb4"));
    let fitting: Vec<&str> = match column.ty {
        Type::Int { .. } | Type::Decimal { .. } => texts.filter(|t| is_number(t)).collect(),
        Type::Char(_) | Type::VarChar(_) | Type::Text if is_utf8 => {
            texts.filter(|t| is_word(t)).collect()
        }
        _ => return None,
    };
    if fitting.is_empty() {
        return None;
    }
    let name = &column.name;
    let mut constant = || random.pick(&fitting).to_owned();
    let (a, b, c) = (constant(), constant(), constant());
    Some(match random.pick(&[0, 1, 2, 3, 4, 5]) {
        0 => format!("{name} <> {a}"),
        1 => format!("{name} NOT IN ({a}, {b})"),
        2 => format!("{name} <= {a} OR {name} > {b}"),
        3 => format!("NOT ({name} BETWEEN {a} AND {b})"),
        4 => format!("({name} = {a} OR {name} <> {b}) AND {name} <> {c} AND {name} IS NOT NULL"),
        _ => format!("{name} >= {a} OR {name} < {b} OR {name} IS NULL"),
    })
}
