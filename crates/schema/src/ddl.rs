//! From logical columns to the physical ones, as DDL.

use crate::folding::folded;
use std::fmt::Write;

use onionskin_value::{Family, SqlType, Warning, has_grams, most_grams};

use crate::{
    alias::is_mark,
    check::{self, Check},
    comment::{self, ColumnMetadata},
    display::normalized,
    errors::SchemaError,
    key_actions::KeyActions,
    protection::{
        Bits, Capabilities, GramForm, MAX_IDENTIFIER, PhysicalNames, cell_overhead,
        split_companion, split_enc,
    },
    quote::{hex, identifier},
    set::SetMark,
    table::{Column, DefaultLiteral},
    type_facts::{data_type_of, is_long},
};

/// Longest cell that is stored as VARBINARY. All VARBINARY columns of a row share 65,535 bytes; a
/// BLOB takes only a pointer's worth of them.
pub const MAX_INLINE_CELL: u64 = 16_000;

const CONSTRAINT_PREFIX: &str = "onionskin_";

/// Bytes of a gram's token with the space behind it.
const GRAM_BYTES: u64 = 7;

/// A column that is to be protected.
#[derive(Clone, Debug, PartialEq)]
pub struct NewColumn {
    /// Logical name.
    pub name: String,
    /// Logical type, with its collation.
    pub sql_type: SqlType,
    /// Whether the definition names a character set or collation itself. MySQL shows that.
    pub explicit_collation: bool,
    /// What the server would say of words in the definition that it will not have for ever.
    pub deprecated: Vec<Warning>,
    /// Whether NULL is allowed. False for the columns of a primary key.
    pub nullable: bool,
    /// Default, if any; a nullable column without one has the default NULL.
    pub default: Option<DefaultLiteral>,
    /// A nullable column without a default has not even NULL: see [`Column::has_lost_default`].
    pub lost_default: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: bool,
    /// The user's own comment.
    pub comment: Option<String>,
    /// CHECK constraints over this column alone, in the order of their numbers.
    pub checks: Vec<Check>,
    /// The names of those that stand in the column's own definition, if these have any. They are
    /// the first of `checks`.
    pub own_checks: Vec<Option<String>>,
    /// Left out of `SELECT *`.
    pub invisible: bool,
    /// What the server shall be able to do.
    pub capabilities: Capabilities,
    /// Whether no grams are kept of it, so that LIKE opens rows.
    pub without_grams: bool,
    /// What the foreign keys say whose first column it is.
    pub actions: KeyActions,
    /// Random; unique among the table's columns.
    pub column_id: [u8; 4],
    /// Random; the same for all columns of the table.
    pub table_id: [u8; 8],
    /// The data key.
    pub key_id: u16,
    /// The cipher suite.
    pub suite: u8,
    /// Version of the format of its cells.
    pub cell_version: u8,
    /// What the rows of a table get to which it is added, for each physical column. Empty where
    /// rows need no value.
    pub filling: Vec<(String, Filling)>,
}

/// How columns begin that hold new cells until these take the place of the old ones.
pub const HELPER_PREFIX: &str = "onionskin_fill_";
/// What their comment says. One stays in the table if a proxy is killed before it drops it: it is
/// invisible, and no column of the logical table.
pub const HELPER_COMMENT: &str = "cells of a change that did not end";

/// What the rows of a table get in a physical column that is added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filling {
    /// All the same: the value of an expression, which is the column's default.
    Default(String),
    /// What stands in a column that is there already, and becomes the new one.
    Column(String),
}

impl NewColumn {
    /// The names on the server.
    pub fn names(&self) -> PhysicalNames {
        let names = PhysicalNames::new(
            &self.name,
            self.column_id,
            &self.sql_type,
            &self.capabilities,
        );
        match self.without_grams {
            true => names.without_grams(),
            false => names,
        }
    }

    pub(crate) fn metadata(&self) -> ColumnMetadata {
        let default = match &self.default {
            None if self.nullable && !self.lost_default => Some(DefaultLiteral::Null),
            other => other
                .as_ref()
                .map(|default| normalized(default, &self.sql_type)),
        };
        ColumnMetadata {
            name: self.name.clone(),
            sql_type: self.sql_type,
            explicit_collation: self.explicit_collation,
            default,
            on_update: self.on_update,
            comment: self.comment.clone().unwrap_or_default(),
            checks: self.checks.clone(),
            capabilities: self.capabilities.clone(),
            without_grams: self.without_grams && self.capabilities.like,
            actions: self.actions,
            column_id: self.column_id,
            table_id: self.table_id,
            key_id: self.key_id,
            suite: self.suite,
            cell_version: self.cell_version,
        }
    }
}

/// The elements of a CREATE TABLE list that stand for `column`: its physical columns, the index on
/// its grams, and their CHECK constraint. `set` is the mark of all protected columns that the table
/// will have.
pub fn physical_definitions(
    column: &NewColumn,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    check_protectable(column, family)?;
    let metadata = column.metadata();
    let form = GramForm::of(family);
    let mut layout = Layout::new(&metadata, column.nullable, column.invisible, form);
    layout.filling = &column.filling;
    let mut definitions = vec![layout.enc_definition(set, family, &tag)?];
    definitions.extend(layout.companion_definitions());
    definitions.extend(layout.index_definition());
    definitions.push(layout.constraint_definition());
    for (number, name) in column.own_checks.iter().enumerate() {
        let check = column.checks.get(number);
        // MariaDB's stands in the definition of the sealed column
        let Some(check) = check.filter(|check| !check.in_column) else {
            continue;
        };
        let physical = check.physical(&column.name, &column.names().enc, number, family);
        definitions.push(match name {
            Some(name) => format!("CONSTRAINT {} {physical}", identifier(name)),
            None => physical,
        });
    }
    Ok(definitions)
}

impl NewColumn {
    /// `CHECK (…)` on the server, of the condition with this number.
    pub fn physical_check(&self, number: usize, family: Family) -> Option<String> {
        let check = self.checks.get(number)?;
        let enc = self.names().enc;
        Some(check.physical(&self.name, &enc, number, family))
    }

    /// The guard of the column's conditions, the last element of a table's list; `None` without
    /// any.
    pub fn guard_definition(&self) -> Option<String> {
        let is_checked = !self.checks.is_empty();
        let name = guard_name(self.table_id, self.column_id);
        is_checked.then(|| check::guard(&self.names().enc, &name))
    }
}

/// Whether the column can be protected as it is; the errors are precise.
pub fn check_protectable(column: &NewColumn, family: Family) -> Result<(), SchemaError> {
    check_capabilities(&column.name, &column.sql_type, &column.capabilities, family)?;
    check_name(&column.name, &column.names())?;
    let column_type = column.sql_type.to_sql(family);
    if family == Family::MySql
        && is_long(data_type_of(&column_type))
        && matches!(column.default, Some(DefaultLiteral::Value(_)))
    {
        return Err(SchemaError::LongTypeDefault {
            column: column.name.clone(),
        });
    }
    Ok(())
}

/// Those of the capabilities that a column of this type can have.
pub fn possible(capabilities: &Capabilities, sql_type: &SqlType) -> Capabilities {
    let comparable = sql_type.is_comparable();
    let joins = comparable && !sql_type.is_enumerated();
    let cut = can_be_cut(sql_type);
    let bits = capabilities.bits;
    let (eq, range) = (
        capabilities.eq && comparable && (cut || bits.eq.is_none()),
        capabilities.range && comparable && (cut || bits.range.is_none()),
    );
    let range = range && sql_type.order_width().is_some();
    Capabilities {
        eq,
        range,
        like: capabilities.like && has_grams(sql_type),
        join: capabilities.join.clone().filter(|_| joins),
        bits: Bits {
            eq: bits.eq.filter(|_| eq),
            range: bits.range.filter(|_| range),
        },
        tenant: capabilities.tenant.clone(),
    }
}

/// Whether a column of this type can keep fewer bits of its companions. Members of ENUM and SET,
/// and BIT, mean one thing as numbers and another as names: the proxy does not compare them.
fn can_be_cut(sql_type: &SqlType) -> bool {
    !sql_type.is_enumerated() && !sql_type.is_bit()
}

fn check_capabilities(
    name: &str,
    sql_type: &SqlType,
    capabilities: &Capabilities,
    family: Family,
) -> Result<(), SchemaError> {
    let not_searchable = |capability| SchemaError::NotSearchable {
        column: name.to_owned(),
        type_text: match sql_type.collation {
            Some(collation) => format!("{} COLLATE {}", sql_type.to_sql(family), collation.name()),
            None => sql_type.to_sql(family),
        },
        capability,
    };
    if let Some(capability) = capabilities.beside_tenant() {
        return Err(SchemaError::BesideTenant {
            column: name.to_owned(),
            capability,
        });
    }
    let comparable = sql_type.is_comparable();
    if sql_type.is_enumerated() && capabilities.join.is_some() {
        // Between columns the servers compare the names of members, tokens are made of their
        // numbers.
        return Err(not_searchable("join"));
    }
    let bits = capabilities.bits;
    if !comparable && capabilities.eq || bits.eq.is_some() && !can_be_cut(sql_type) {
        return Err(not_searchable("eq"));
    }
    if bits.range.is_some() && !can_be_cut(sql_type) {
        return Err(not_searchable("range"));
    }
    if bits.eq.is_some() && capabilities.join.is_some() {
        return Err(SchemaError::CoarseGroup {
            column: name.to_owned(),
        });
    }
    if !comparable && capabilities.join.is_some() {
        return Err(not_searchable("join"));
    }
    if capabilities.range && (!comparable || sql_type.order_width().is_none()) {
        return Err(not_searchable("range"));
    }
    if capabilities.like && !has_grams(sql_type) {
        return Err(not_searchable("like"));
    }
    Ok(())
}

pub(crate) fn check_name(name: &str, names: &PhysicalNames) -> Result<(), SchemaError> {
    if is_reserved_name(name) {
        return Err(SchemaError::ReservedName {
            column: name.to_owned(),
        });
    }
    let length = name.chars().count();
    let longest = names
        .all()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    if longest > MAX_IDENTIFIER {
        return Err(SchemaError::NameTooLong {
            column: name.to_owned(),
            limit: MAX_IDENTIFIER - (longest - length),
        });
    }
    Ok(())
}

/// Whether a column name has the form of a physical one. No column may be given such a name in a
/// table that has protected columns.
pub fn is_reserved_name(name: &str) -> bool {
    let small = folded(name);
    let is_form = |form: &&str| ends_like(&small, form);
    split_enc(&small).is_some()
        || split_companion(&small).is_some()
        || is_mark(&small)
        || !small.is_ascii() && RESERVED.iter().any(is_form)
}

/// How physical names end. `#` stands for a hexadecimal digit.
const RESERVED: [&str; 4] = ["$enc", "$eq_####", "$ord_####", "$gram_####"];

/// How names of ours end that constraints and indexes on sealed columns have.
const OURS: [&str; 2] = ["onionskin_################_########", "onionskin_########"];

/// Whether a name in small letters may end like this to a server: any letter beyond ASCII may be
/// one of ASCII without its accent.
fn ends_like(small: &str, form: &str) -> bool {
    let may_be = |(letter, of_form): (char, char)| match of_form {
        _ if !letter.is_ascii() => true,
        '#' => letter.is_ascii_hexdigit(),
        of_form => letter == of_form,
    };
    let count = form.chars().count();
    small.chars().count() >= count && small.chars().rev().zip(form.chars().rev()).all(may_be)
}

/// Whether a constraint or an index with this name may be one of ours to a server. No client's
/// definition may name such a one.
pub fn may_be_ours(name: &str) -> bool {
    let small = folded(name);
    // collations of names pad
    let bare = small.trim_end().trim_start_matches('~');
    OURS.iter()
        .any(|form| bare.chars().count() == form.chars().count() && ends_like(bare, form))
}

/// Name of the CHECK constraint of a column. MySQL wants it unique in the database, hence the
/// table's id.
pub fn constraint_name(table_id: [u8; 8], column_id: [u8; 4]) -> String {
    format!("{CONSTRAINT_PREFIX}{}_{}", hex(&table_id), hex(&column_id))
}

/// Name of the guard of a column's CHECK constraints. Behind every name of letters, as MySQL sorts
/// constraints.
pub fn guard_name(table_id: [u8; 8], column_id: [u8; 4]) -> String {
    format!("~{}", constraint_name(table_id, column_id))
}

/// Name of the index on a column's grams.
pub(crate) fn gram_index_name(column_id: [u8; 4]) -> String {
    format!("{CONSTRAINT_PREFIX}{}", hex(&column_id))
}

/// Whether the name of a violated constraint is one of ours: then a row was written without the
/// proxy or by one with an outdated schema.
pub fn is_our_constraint(name: &str) -> bool {
    // servers do not count letter case
    let name = name.to_ascii_lowercase();
    name.strip_prefix('~')
        .unwrap_or(&name)
        .strip_prefix(CONSTRAINT_PREFIX)
        .and_then(|rest| rest.split_once('_'))
        .is_some_and(|(table, column)| {
            table.len() == 16
                && column.len() == 8
                && [table, column]
                    .iter()
                    .all(|part| part.bytes().all(|c| c.is_ascii_hexdigit()))
        })
}

/// The column that indexes on `column` are built on; those that are unique need one that decides
/// equality.
pub fn index_column_name(column: &Column, unique: bool) -> Result<&str, SchemaError> {
    let Some(protection) = &column.protection else {
        return Ok(&column.name);
    };
    index_name(&protection.names, unique)
        .filter(|_| can_be_indexed(&protection.sql_type))
        .ok_or_else(|| SchemaError::IndexWithoutCapability {
            column: column.name.clone(),
        })
}

fn index_name(names: &PhysicalNames, unique: bool) -> Option<&str> {
    match unique {
        true => names.equality_column().map(|(name, _)| name),
        false => names.search_column(),
    }
}

/// The servers build no index on `CHAR(0)`.
fn can_be_indexed(sql_type: &SqlType) -> bool {
    sql_type.payload_max() > 0
}

impl NewColumn {
    /// [`index_column_name`] for a column that is about to be made.
    pub fn index_column_name(&self, unique: bool) -> Result<String, SchemaError> {
        index_name(&self.names(), unique)
            .filter(|_| can_be_indexed(&self.sql_type))
            .map(str::to_owned)
            .ok_or_else(|| SchemaError::IndexWithoutCapability {
                column: self.name.clone(),
            })
    }
}

/// The physical columns of one logical column.
pub(crate) struct Layout<'a> {
    metadata: &'a ColumnMetadata,
    nullable: bool,
    invisible: bool,
    grams: GramForm,
    /// See [`NewColumn::filling`].
    filling: &'a [(String, Filling)],
    pub(crate) names: PhysicalNames,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(
        metadata: &'a ColumnMetadata,
        nullable: bool,
        invisible: bool,
        grams: GramForm,
    ) -> Self {
        let names = PhysicalNames::new(
            &metadata.name,
            metadata.column_id,
            &metadata.sql_type,
            &metadata.capabilities,
        );
        Self {
            metadata,
            nullable,
            invisible,
            grams,
            filling: &[],
            names: match metadata.without_grams {
                true => names.without_grams(),
                false => names,
            },
        }
    }

    /// `` `c$enc` VARBINARY(39) NOT NULL COMMENT '…' ``
    pub(crate) fn enc_definition(
        &self,
        set: &SetMark,
        family: Family,
        tag: impl Fn(&[u8]) -> [u8; 16],
    ) -> Result<String, SchemaError> {
        let cell = cell_type(&self.metadata.sql_type, self.metadata.cell_version);
        let default = match (self.filled(&self.names.enc), self.refused_default()) {
            (Some(filled), _) => filled,
            (None, Some(refused)) => format!(" DEFAULT {refused}"),
            (None, None) => String::new(),
        };
        let name = &self.metadata.name;
        let checks = self.metadata.checks.iter().enumerate();
        let mut own = checks.filter(|(_, check)| check.in_column);
        let check = own.next().map_or_else(String::new, |(number, check)| {
            let enc = &self.names.enc;
            format!(" {}", check.physical(name, enc, number, family))
        });
        // The comment needs no quoting: see its module.
        Ok(format!(
            "{} {cell}{}{default}{} COMMENT '{}'{check}",
            identifier(&self.names.enc),
            if self.nullable { " NULL" } else { " NOT NULL" },
            if self.invisible { " INVISIBLE" } else { "" },
            comment::encode(self.metadata, set, family, tag)?
        ))
    }

    /// Whether the physical column has a default, which the CHECK refuses.
    ///
    /// MariaDB wants one for an invisible NOT NULL column. A nullable column whose default is not
    /// NULL has one, too: a row that names no value for it and comes from somebody who does not
    /// know yet that it is protected (its default is the proxy's to seal) must not get NULL.
    fn has_refused_default(&self) -> bool {
        match self.nullable {
            true => !matches!(self.metadata.default, None | Some(DefaultLiteral::Null)),
            false => self.invisible,
        }
    }

    /// That default; the cell's type decides how it is written.
    fn refused_default(&self) -> Option<&'static str> {
        // Only as an expression may a BLOB have one on MySQL.
        let is_short =
            cell_type(&self.metadata.sql_type, self.metadata.cell_version).starts_with("VARBINARY");
        self.has_refused_default()
            .then_some(if is_short { "''" } else { "('')" })
    }

    /// The default by which rows that exist get what they hold.
    fn filled(&self, name: &str) -> Option<String> {
        let mut filling = self.filling.iter();
        match filling.find(|(filled, _)| filled == name)? {
            (_, Filling::Default(expression)) => Some(format!(" DEFAULT ({expression})")),
            (_, Filling::Column(_)) => None,
        }
    }

    /// The companions' names and definitions, `` `c$eq_1a2b` BINARY(16) NULL INVISIBLE ``.
    ///
    /// Grams may always be NULL, because MySQL has no constant default for a TEXT or JSON; the
    /// CHECK sees to it that they are not.
    pub(crate) fn companion_definitions(&self) -> impl Iterator<Item = String> {
        let grams = self.names.gram.as_deref().map(|name| {
            let filled = self.filled(name).unwrap_or_default();
            let name = identifier(name);
            match self.grams {
                GramForm::Numbers => format!("{name} JSON NULL{filled} INVISIBLE"),
                GramForm::Words => {
                    let text = gram_type(&self.metadata.sql_type);
                    format!(
                        "{name} {text} CHARACTER SET ascii COLLATE ascii_bin NULL{filled} INVISIBLE"
                    )
                }
            }
        });
        self.searched_definitions().chain(grams)
    }

    /// Those of them that are compared: the token and the order key.
    pub(crate) fn searched_definitions(&self) -> impl Iterator<Item = String> {
        self.companion_widths().map(|(name, bytes)| {
            let null = match (self.nullable, self.filled(name)) {
                (true, filled) => format!("NULL{}", filled.unwrap_or_default()),
                (false, Some(filled)) => format!("NOT NULL{filled}"),
                (false, None) => "NOT NULL DEFAULT ''".to_owned(),
            };
            format!("{} BINARY({bytes}) {null} INVISIBLE", identifier(name))
        })
    }

    /// `` FULLTEXT KEY `onionskin_…` (`c$gram_1a2b`) ``, or a key over the numbers. Its name does
    /// not change when the column's does.
    pub(crate) fn index_definition(&self) -> Option<String> {
        let column = identifier(self.names.gram.as_deref()?);
        let name = identifier(&gram_index_name(self.metadata.column_id));
        Some(match self.grams {
            GramForm::Words => format!("FULLTEXT KEY {name} ({column})"),
            GramForm::Numbers => format!("KEY {name} ((CAST({column} AS UNSIGNED ARRAY)))"),
        })
    }

    fn companion_widths(&self) -> impl Iterator<Item = (&str, u32)> {
        let capabilities = &self.metadata.capabilities;
        let ord = self
            .names
            .ord
            .as_deref()
            .map(|name| (name, capabilities.order_key_bytes(&self.metadata.sql_type)));
        self.names
            .eq
            .as_deref()
            .map(|name| (name, capabilities.equality_bytes()))
            .into_iter()
            .chain(ord)
    }

    /// `` CONSTRAINT `onionskin_…` CHECK (…) ``
    ///
    /// Refuses whatever is no cell of this column, and cells without their companions. A CHECK
    /// holds unless it is false, and AND is false as soon as one side is: so a NULL cell passes the
    /// comparisons and its companions must be NULL too. NOT NULL companions have the default of
    /// zero bytes (an invisible column needs one), which no writer makes on purpose.
    ///
    /// MySQL takes only an expression whose type is boolean: CASE and IF are not.
    pub(crate) fn constraint_definition(&self) -> String {
        let enc = identifier(&self.names.enc);
        let version = self.metadata.cell_version;
        let first_byte = version << 4 | (self.metadata.suite & 0x0f);
        let overhead = cell_overhead(version);
        let mut check = format!(
            "LENGTH({enc}) >= {overhead} AND SUBSTR({enc}, 1, 1) = X'{first_byte:02x}' \
             AND SUBSTR({enc}, 4, 4) = X'{}'",
            hex(&self.metadata.column_id)
        );
        for (name, bytes) in self.companion_widths() {
            let companion = identifier(name);
            let _ = if self.nullable {
                write!(check, " AND ({enc} IS NULL) = ({companion} IS NULL)")
            } else {
                write!(
                    check,
                    " AND {companion} <> X'{}'",
                    "00".repeat(bytes as usize)
                )
            };
        }
        if let Some(name) = &self.names.gram {
            let gram = identifier(name);
            let _ = match self.nullable {
                true => write!(check, " AND ({enc} IS NULL) = ({gram} IS NULL)"),
                false => write!(check, " AND {gram} IS NOT NULL"),
            };
        }
        format!(
            "CONSTRAINT {} CHECK ({check})",
            identifier(&constraint_name(
                self.metadata.table_id,
                self.metadata.column_id
            ))
        )
    }
}

/// The physical type of a sealed column whose cells have this version.
pub(crate) fn cell_type(sql_type: &SqlType, version: u8) -> String {
    let length = sql_type
        .payload_max()
        .saturating_add(cell_overhead(version));
    if length <= MAX_INLINE_CELL {
        format!("VARBINARY({length})")
    } else if length <= 0xffff {
        "BLOB".to_owned()
    } else if length <= 0xff_ffff {
        "MEDIUMBLOB".to_owned()
    } else {
        "LONGBLOB".to_owned()
    }
}

/// The physical type of a column's gram tokens.
pub(crate) fn gram_type(sql_type: &SqlType) -> &'static str {
    match most_grams(sql_type).saturating_mul(GRAM_BYTES) {
        0..=0xffff => "TEXT",
        0x1_0000..=0xff_ffff => "MEDIUMTEXT",
        _ => "LONGTEXT",
    }
}
