//! A protected column's definition: name, type, attributes, `ENCRYPTED FOR (…)`.

use std::ops::Range;

use onionskin_schema::{
    Capabilities, Check, DefaultLiteral, NewColumn, Surrogate, Tenant, possible,
};
use onionskin_value::{Family, Kind, SqlType, Warning};

use super::attributes::Attributes;
use super::check;
use super::collation::default_collation;
use super::column_type::{NATIONAL, is_national, plain_type, type_words};
use super::constant::string;
use super::default::{self, Given};
use super::deprecated;
use super::key_length::{KeyKind, KeyLength};
use super::reader::Reader;
use super::schema_refusal;
use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::planner::{Planned, Request, Settings, refuse};

/// What a VARCHAR or VARBINARY can have in a row of 65,535 bytes, beside its length and the flag of
/// NULL.
const ROW_BYTES: u32 = 65_532;

/// A protected column's definition.
pub(super) struct ColumnDef {
    pub(super) column: NewColumn,
    pub(super) key: Option<OwnKey>,
    /// NULL or DEFAULT NULL stands there.
    pub(super) says_null: bool,
    /// Only a wildcard of `[protect]` protects it.
    pub(super) by_wildcard: bool,
}

/// A key in the column's own definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnKey {
    Unique,
    Primary,
}

/// How a new column is to be protected.
pub(super) struct Wanted {
    capabilities: Capabilities,
    /// Only a wildcard of `[protect]` says so.
    by_wildcard: bool,
    /// The tokens of its definition, those of `ENCRYPTED FOR (…)` left out.
    parts: Vec<Range<usize>>,
}

impl Wanted {
    /// For a column that stays protected as it is.
    pub(super) fn as_before(
        reader: &Reader,
        definition: Range<usize>,
        capabilities: &Capabilities,
    ) -> Planned<Self> {
        let parts = match take_encrypted(reader, definition.clone())? {
            Some(encrypted) => vec![encrypted.before, encrypted.after],
            None => std::iter::once(definition).collect(),
        };
        Ok(Wanted {
            capabilities: capabilities.clone(),
            by_wildcard: false,
            parts,
        })
    }
}

/// Finds out how the new column that a definition begins with is to be protected: it says so
/// itself, or `[protect]` does. `None`: it is not. `table` are the names of its database and its
/// table; `refers`: it refers to a column that stays plaintext.
pub(super) fn protection(
    reader: &Reader,
    definition: Range<usize>,
    table: (&str, &str),
    column: &str,
    refers: bool,
) -> Planned<Option<Wanted>> {
    let attributes = Attributes::read(reader, definition.clone());
    let is_auto = attributes.auto_increment;
    let is_generated = attributes.generated.is_some();
    let surrogate = match () {
        () if is_auto => Surrogate::AutoIncrement,
        () if refers => Surrogate::Reference,
        () if is_generated && is_number(reader, definition.clone()) => Surrogate::Generated,
        () => Surrogate::No,
    };
    let wanted = match take_encrypted(reader, definition.clone())? {
        Some(encrypted) => Some(Wanted {
            capabilities: encrypted.capabilities,
            by_wildcard: false,
            parts: vec![encrypted.before, encrypted.after],
        }),
        None => {
            let policy = reader.request.policy;
            let found = policy.capabilities(table.0, table.1, column, surrogate);
            let capabilities = found.map_err(|e| schema_refusal(&e))?;
            let named = policy.find(table.0, table.1, column);
            capabilities.map(|capabilities| Wanted {
                capabilities,
                by_wildcard: named.is_some_and(|found| !found.named),
                parts: std::iter::once(definition).collect(),
            })
        }
    };
    match wanted {
        Some(_) if is_auto => refuse(
            &errors::DEFINITION,
            format!("column {column}: AUTO_INCREMENT"),
        ),
        // the server would compute it from what it cannot read, or in plaintext
        Some(wanted) if is_generated => {
            let way_out = match wanted.by_wildcard {
                true => format!("; under [protect], \"{column}\" = \"plain\" excepts it"),
                false => "; make it an ordinary one that the application fills".to_owned(),
            };
            let about = format!("column {column}: a generated column{way_out}");
            refuse(&errors::DEFINITION, about)
        }
        wanted => Ok(wanted),
    }
}

/// Whether a definition's type is a whole number.
fn is_number(reader: &Reader, definition: Range<usize>) -> bool {
    plain_type(reader, definition, "utf8mb4_bin").is_some_and(|ty| ty.is_integer())
}

/// Reads a protected column's definition: `name type attributes`.
pub(super) fn column_definition(
    reader: &Reader,
    wanted: Wanted,
    table_collation: &str,
) -> Planned<ColumnDef> {
    let request = reader.request;
    let family = request.settings.family;
    let parts = wanted.parts.into_iter();
    let tokens: Vec<Token> = parts
        .flat_map(|part| reader.tokens[part].iter().copied())
        .collect();
    let by_wildcard = wanted.by_wildcard;
    let mut written = Written::read(Reader::over(request, &tokens, 0..tokens.len()))?;
    written.check_words(family)?;
    written.take_national(request.settings)?;
    let says_null = written.says_null || written.defaults_to_null();
    let sql_type = written.sql_type(table_collation, request.settings)?;
    // A wildcard is for columns of any type.
    let capabilities = match by_wildcard {
        true => possible(&wanted.capabilities, &sql_type),
        false => wanted.capabilities,
    };
    let kind = written.key.map(|key| match key {
        OwnKey::Primary => KeyKind::Primary,
        OwnKey::Unique => KeyKind::Unique,
    });
    if let Some(kind) = kind {
        KeyLength::new(family, kind).add(&written.name, &sql_type, None)?;
    }
    let default = written.kept_default(&sql_type, request)?;
    let deprecated = written.deprecations(&sql_type, family);
    let mut column = NewColumn {
        sql_type,
        deprecated,
        explicit_collation: written.names_collation(),
        nullable: !written.not_null && written.key != Some(OwnKey::Primary),
        default,
        lost_default: false,
        on_update: written.on_update.is_some(),
        name: written.name,
        comment: written.comment,
        checks: Vec::new(),
        own_checks: Vec::new(),
        invisible: written.invisible,
        capabilities,
        without_grams: false,
        filling: Vec::new(),
        actions: onionskin_schema::KeyActions::default(),
        column_id: [0; 4],
        table_id: [0; 8],
        key_id: 0,
        suite: 0,
        cell_version: 0,
    };
    let whole = Reader::over(request, &tokens, 0..tokens.len());
    for check in written.checks {
        let condition = check::condition(&whole, check.inside, &column)?;
        column.checks.push(Check {
            condition,
            in_column: family == Family::MariaDb,
            unenforced: check.unenforced,
        });
        column.own_checks.push(check.name);
    }
    check::check_number(&column)?;
    Ok(ColumnDef {
        column,
        key: written.key,
        says_null,
        by_wildcard,
    })
}

/// A protected column's definition as it is written.
struct Written {
    name: String,
    /// The first word of the type.
    type_word: String,
    /// The type as servers write it.
    type_text: String,
    /// UNSIGNED stands there; ZEROFILL implies it.
    says_unsigned: bool,
    /// SIGNED, which is no part of the type as servers write it.
    signed: bool,
    charset: Option<String>,
    collation: Option<String>,
    /// BINARY behind a type of texts: the binary collation of their character set.
    binary_text: bool,
    /// JSON, or what MariaDB makes of it.
    is_json: bool,
    not_null: bool,
    /// NULL stands there.
    says_null: bool,
    default: Option<Given>,
    /// The digits of a fraction in ON UPDATE CURRENT_TIMESTAMP.
    on_update: Option<u8>,
    comment: Option<String>,
    invisible: bool,
    key: Option<OwnKey>,
    checks: Vec<check::Written>,
}

impl Written {
    fn read(mut r: Reader) -> Planned<Self> {
        let Some(name) = r.name() else {
            return refuse(&errors::DEFINITION, "a column's name");
        };
        let (type_word, type_text) = type_words(&mut r).map_err(|what| refused(&name, what))?;
        let mut written = Written {
            name,
            is_json: type_text == "json",
            type_word,
            type_text,
            says_unsigned: false,
            signed: false,
            charset: None,
            collation: None,
            binary_text: false,
            not_null: false,
            says_null: false,
            default: None,
            on_update: None,
            comment: None,
            invisible: false,
            key: None,
            checks: Vec::new(),
        };
        while let Some(token) = r.token() {
            let is_understood = written.attribute_of_type(&mut r)?
                || written.attribute_of_values(&mut r)?
                || written.other_attribute(&mut r)?
                || written.json_check(&mut r)
                || written.check(&mut r)?;
            if !is_understood {
                let word = String::from_utf8_lossy(token.text(r.sql()));
                return Err(written.refused(&word));
            }
        }
        Ok(written)
    }

    fn refused(&self, what: &str) -> Refusal {
        refused(&self.name, what)
    }

    /// Reads UNSIGNED, SIGNED, ZEROFILL, CHARACTER SET, COLLATE, BINARY. `false`: none of them
    /// stands here.
    fn attribute_of_type(&mut self, r: &mut Reader) -> Planned<bool> {
        if r.eat("unsigned") {
            self.type_text.push_str(" unsigned");
            self.says_unsigned = true;
        } else if r.eat("signed") {
            self.signed = true;
        } else if r.eat("zerofill") {
            if self.type_text.contains("zerofill") {
                return Err(self.refused("ZEROFILL twice"));
            }
            if !self.type_text.contains("unsigned") {
                self.type_text.push_str(" unsigned");
            }
            self.type_text.push_str(" zerofill");
        } else if r.is("character") || r.is("charset") || (r.is("char") && self.charset.is_none()) {
            if !r.eat("charset") {
                r.at += 1;
                if !r.eat("set") {
                    return Err(self.refused("CHARACTER SET"));
                }
            }
            let name = r.name_or_string();
            self.charset = Some(name.ok_or_else(|| self.refused("CHARACTER SET"))?);
        } else if r.eat("collate") {
            r.eat_punct(b'=');
            let name = r.name_or_string();
            self.collation = Some(name.ok_or_else(|| self.refused("COLLATE"))?);
        } else if r.eat("binary") {
            self.binary_text = true;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads NOT NULL, NULL, DEFAULT, ON UPDATE.
    fn attribute_of_values(&mut self, r: &mut Reader) -> Planned<bool> {
        if r.eat("not") {
            if !r.eat("null") {
                return Err(self.refused("NOT"));
            }
            self.not_null = true;
        } else if r.eat("null") {
            // the last word counts
            self.not_null = false;
            self.says_null = true;
        } else if r.eat("default") {
            let is_bit = self.type_text.starts_with("bit");
            let given = default::given(r, &self.name, is_bit)?;
            self.default = Some(given.ok_or_else(|| self.refused("DEFAULT"))?);
        } else if r.eat("on") {
            let fraction = match r.eat("update") {
                true => default::present(r),
                false => None,
            };
            self.on_update = Some(fraction.ok_or_else(|| self.refused("ON UPDATE"))?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads COMMENT, INVISIBLE, VISIBLE and keys.
    fn other_attribute(&mut self, r: &mut Reader) -> Planned<bool> {
        if r.eat("comment") {
            self.comment = Some(string(r).ok_or_else(|| self.refused("COMMENT"))?);
        } else if r.eat("invisible") {
            self.invisible = true;
        } else if r.eat("visible") {
            self.invisible = false;
        } else if r.is("column_format") || r.is("storage") {
            // the word of its own that servers do not show
            if !r.word_at(1, "default") || r.request.settings.family != Family::MySql {
                return Err(
                    self.refused("COLUMN_FORMAT or STORAGE; leave it out: InnoDB ignores it")
                );
            }
            r.at += 2;
        } else if r.is("compressed") {
            let about = "COMPRESSED; leave it out: what is sealed cannot be made smaller";
            return Err(self.refused(about));
        } else if r.eat("unique") {
            r.eat("key");
            self.take_key(OwnKey::Unique)?;
        } else if r.eat("primary") {
            r.eat("key");
            self.take_key(OwnKey::Primary)?;
        } else if r.eat("key") {
            self.take_key(OwnKey::Primary)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn take_key(&mut self, key: OwnKey) -> Planned<()> {
        match self.key.replace(key) {
            // servers make two keys
            Some(other) if other != key => Err(self.refused("UNIQUE beside PRIMARY KEY")),
            _ => Ok(()),
        }
    }

    /// Reads ``CHECK (json_valid(`name`))``: how MariaDB prints that a LONGTEXT is JSON.
    fn json_check(&mut self, r: &mut Reader) -> bool {
        let family = r.request.settings.family;
        if self.type_text != "longtext" || family != Family::MariaDb {
            return false;
        }
        let mut check = Reader::over(r.request, r.tokens, r.at..r.end);
        if !check.eat("check") {
            return false;
        }
        let Some(inside) = check.parenthesized() else {
            return false;
        };
        let mut condition = Reader::over(r.request, r.tokens, inside);
        let found = condition.eat("json_valid")
            && condition.eat_punct(b'(')
            && condition
                .name()
                .is_some_and(|c| c.eq_ignore_ascii_case(&self.name))
            && condition.eat_punct(b')')
            && condition.done();
        if found {
            self.is_json = true;
            r.at = check.at;
        }
        found
    }

    /// Reads a CHECK. MariaDB takes one without a name, as the last attribute.
    fn check(&mut self, r: &mut Reader) -> Planned<bool> {
        let Some(check) = check::Written::read(r) else {
            return Ok(false);
        };
        let is_last = check.name.is_none() && check.head.is_empty() && r.done();
        if r.request.settings.family == Family::MariaDb && !is_last {
            return Err(self.refused("CHECK that is not the last attribute"));
        }
        self.checks.push(check);
        Ok(true)
    }

    /// NCHAR and its like say what the character set is.
    fn take_national(&mut self, settings: &Settings) -> Planned<()> {
        if !is_national(&self.type_word) {
            return Ok(());
        }
        let collations = &settings.charset_collations;
        let is_of = |name: &String| name.to_ascii_lowercase().starts_with(NATIONAL);
        match () {
            () if self.charset.is_some() => Err(self.refused("CHARACTER SET of a national type")),
            // which of these counts for it is not known
            () if collations.contains(NATIONAL) => {
                Err(self.refused("a national type beside character_set_collations"))
            }
            () if !self.collation.iter().all(is_of) => {
                Err(self.refused("a collation of another character set"))
            }
            () => {
                self.charset = Some(NATIONAL.to_owned());
                Ok(())
            }
        }
    }

    /// Refuses words that contradict each other, and types that are something else.
    fn check_words(&self, family: Family) -> Planned<()> {
        if self.signed && self.type_text.contains("unsigned") {
            return Err(self.refused("SIGNED beside UNSIGNED or ZEROFILL"));
        }
        if self.type_word == "json" && (self.charset.is_some() || self.collation.is_some()) {
            return Err(self.refused("CHARACTER SET of JSON"));
        }
        if self.type_text.starts_with("decimal(0,") {
            // a precision of 0 stands for the default, but not beside a scale
            return Err(self.refused("its precision"));
        }
        // BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE
        if self.type_text == "serial" {
            return Err(self.refused("SERIAL is AUTO_INCREMENT"));
        }
        // MariaDB does not mind the word alone
        let null = self.defaults_to_null() || self.says_null && family == Family::MySql;
        if null && self.key == Some(OwnKey::Primary) {
            return Err(self.refused("NULL beside PRIMARY KEY"));
        }
        Ok(())
    }

    fn defaults_to_null(&self) -> bool {
        matches!(self.default, Some(Given::Literal(DefaultLiteral::Null)))
    }

    /// What the server would say of the words.
    fn deprecations(&self, sql_type: &SqlType, family: Family) -> Vec<Warning> {
        let words = deprecated::Words {
            charset: self.charset.as_deref(),
            collation: self.collation.as_deref(),
            is_national: is_national(&self.type_word),
            binary: self.binary_text,
            unsigned: self.says_unsigned,
            number: self.type_text.contains('(') && !self.type_word.starts_with("bool"),
        };
        match family {
            Family::MySql => deprecated::warnings(&words, sql_type),
            Family::MariaDb => Vec::new(),
        }
    }

    /// Whether the definition itself says what its collation is.
    fn names_collation(&self) -> bool {
        self.charset.is_some() || self.collation.is_some() || self.binary_text
    }

    /// The name of the collation, if the type has one.
    fn collation(&self, table_collation: &str, settings: &Settings) -> Planned<String> {
        let collation = match (&self.collation, &self.charset) {
            (Some(collation), _) => collation.to_ascii_lowercase(),
            (None, Some(charset)) => default_collation(charset, settings)
                .ok_or_else(|| self.refused("CHARACTER SET"))?
                .to_owned(),
            (None, None) => table_collation.to_owned(),
        };
        if self.binary_text {
            let charset = collation.split('_').next().unwrap_or("utf8mb4");
            return Ok(format!("{charset}_bin"));
        }
        Ok(collation)
    }

    /// The type, if it is one that the server has and takes as it stands.
    fn sql_type(&self, table_collation: &str, settings: &Settings) -> Planned<SqlType> {
        let family = settings.family;
        let collation = self.collation(table_collation, settings)?;
        let sql_type = match self.is_json {
            true if self.type_text == "longtext" && collation != "utf8mb4_bin" => {
                return Err(self.refused("CHECK"));
            }
            true => SqlType::json(family),
            false => SqlType::parse(&self.type_text, Some(&collation))
                .map_err(|e| self.refused(&e.to_string()))?,
        };
        // elsewhere it is a BIT(1)
        if sql_type.is_bit() && self.type_text.ends_with("(0)") && family == Family::MySql {
            return Err(self.refused("a BIT of no bits"));
        }
        if sql_type.is_fixed_binary() && family != Family::MariaDb {
            return Err(self.refused("a type that this server does not have"));
        }
        if sql_type.collation.is_none() && sql_type.is_character() {
            return Err(self.refused("its collation"));
        }
        // the server does not get to see it
        if sql_type.collation.is_some_and(|c| !c.is_of(family)) {
            return Err(self.refused(match collation.as_str() {
                "utf8mb4_0900_ai_ci" => {
                    "utf8mb4_0900_ai_ci on MariaDB: write utf8mb4_uca1400_nopad_ai_ci"
                }
                _ => "a collation that this server does not have",
            }));
        }
        let bytes = match sql_type.kind {
            Kind::VarChar { chars } => chars.saturating_mul(sql_type.charset().max_bytes()),
            Kind::VarBinary { len } => len,
            _ => 0,
        };
        if bytes > ROW_BYTES {
            // outside of strict mode the server makes a TEXT or BLOB of it, and warns
            return Err(self.refused("it is longer than a row"));
        }
        Ok(sql_type)
    }

    /// The default as it is kept, if it fits to the type, to ON UPDATE and to NOT NULL.
    fn kept_default(
        &mut self,
        sql_type: &SqlType,
        request: &Request,
    ) -> Planned<Option<DefaultLiteral>> {
        let default = match self.default.take() {
            Some(given) => Some(default::kept(given, sql_type, &self.name, request)?),
            None => None,
        };
        if let Some(fraction) = self.on_update {
            default::check_on_update(fraction, sql_type, &self.name)?;
            let family = request.settings.family;
            if default.is_none() && self.not_null && family == Family::MariaDb {
                // MariaDB makes up a zero date
                return Err(self.refused("ON UPDATE without a DEFAULT, and NOT NULL"));
            }
        }
        if matches!(default, Some(DefaultLiteral::Null)) && self.not_null {
            return Err(self.refused("DEFAULT NULL on a NOT NULL column"));
        }
        Ok(default)
    }
}

fn refused(column: &str, what: &str) -> Refusal {
    Refusal::new(&errors::DEFINITION, format!("column {column}: {what}"))
}

/// `ENCRYPTED FOR (eq, range, like, join:NAME)` in a column's definition; behind `eq` and `range` a
/// number of bits may stand: `eq:12`. Behind the parentheses may stand `KEY BY column [AS name]`.
pub(super) struct Encrypted {
    pub(super) capabilities: Capabilities,
    /// The definition's tokens before it.
    pub(super) before: Range<usize>,
    /// The definition's tokens behind it.
    pub(super) after: Range<usize>,
}

/// Finds `ENCRYPTED FOR (…)` in a column's definition.
pub(super) fn take_encrypted(reader: &Reader, range: Range<usize>) -> Planned<Option<Encrypted>> {
    let is = |at: usize, word| {
        let token = reader.tokens.get(at);
        token.is_some_and(|t| t.is_word(reader.sql(), word))
    };
    let mut places = range.clone();
    let Some(start) = places.find(|&i| is(i, "encrypted") && is(i + 1, "for")) else {
        return Ok(None);
    };
    let mut inner = Reader::over(reader.request, reader.tokens, start + 2..range.end);
    let Some(words) = inner.parenthesized() else {
        return Err(bad_capabilities());
    };
    let mut capabilities = capabilities(reader, words)?;
    if inner.eat_words(&["key", "by"]) {
        let column = inner.name().ok_or_else(bad_capabilities)?;
        let name = match inner.eat("as") {
            true => Some(inner.name().ok_or_else(bad_capabilities)?),
            false => None,
        };
        let tenant = Tenant::new(&column, name.as_deref());
        capabilities.tenant = Some(tenant.ok_or_else(bad_capabilities)?);
    }
    Ok(Some(Encrypted {
        capabilities,
        before: range.start..start,
        after: inner.at..range.end,
    }))
}

fn bad_capabilities() -> Refusal {
    Refusal::new(
        &errors::DEFINITION,
        "ENCRYPTED FOR (eq, eq:BITS, range, range:BITS, like, join:NAME) [KEY BY COLUMN [AS NAME]]",
    )
}

/// Reads what stands in the parentheses of `ENCRYPTED FOR (…)`.
fn capabilities(reader: &Reader, words: Range<usize>) -> Planned<Capabilities> {
    let mut capabilities = Capabilities::default();
    if words.is_empty() {
        return Ok(capabilities);
    }
    for part in reader.split(words) {
        let mut word = Reader::over(reader.request, reader.tokens, part);
        let searched = ["eq", "range", "like"].into_iter();
        if let Some(kind) = searched.into_iter().find(|kind| word.eat(kind)) {
            let bits = match word.eat_punct(b':') {
                true => format!(":{}", word.digits().ok_or_else(bad_capabilities)?),
                false => String::new(),
            };
            if !capabilities.take_word(&format!("{kind}{bits}")) {
                return Err(bad_capabilities());
            }
        } else if word.eat("join") && (word.eat_punct(b':') || word.eat_punct(b'=')) {
            let group = word.name().ok_or_else(bad_capabilities)?;
            capabilities.join = Some(group);
            if capabilities.joins_key() {
                let about = "ENCRYPTED FOR (join) with a group of a key, which foreign keys join";
                return refuse(&errors::DEFINITION, about);
            }
        } else {
            return Err(bad_capabilities());
        }
        if !word.done() {
            return Err(bad_capabilities());
        }
    }
    Ok(capabilities)
}
