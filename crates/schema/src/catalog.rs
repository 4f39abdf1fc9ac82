//! From `information_schema.columns` to [`Table`]s.

use std::collections::HashSet;

use crate::{
    alias,
    comment::{self, CommentError, MARK},
    ddl::{HELPER_COMMENT, HELPER_PREFIX},
    ddl::{cell_type, gram_type},
    folding::same_name,
    protection::{
        ENC_SUFFIX, GramForm, PhysicalNames, Protection, Renamed, split_companion, split_enc,
    },
    quote::text_as_hex_literal,
    set::{self, Members, Whole},
    table::{Column, Default, KeyRole, Table},
};
use onionskin_value::SqlType;

/// The columns whose rows [`ColumnRow`] holds, in the order of its fields.
pub const COLUMNS_QUERY_FIELDS: &str = "TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, \
     IS_NULLABLE, DATA_TYPE, COLUMN_TYPE, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_KEY, EXTRA, COLUMN_COMMENT, \
     GENERATION_EXPRESSION";

/// One row of [`catalog_query`], as UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct ColumnRow<'a> {
    pub table_schema: &'a str,
    pub table_name: &'a str,
    pub column_name: &'a str,
    pub ordinal_position: u64,
    pub column_default: Option<&'a str>,
    /// `YES` or `NO`.
    pub is_nullable: &'a str,
    pub data_type: &'a str,
    pub column_type: &'a str,
    pub collation: Option<&'a str>,
    pub character_set: Option<&'a str>,
    pub column_key: &'a str,
    pub extra: &'a str,
    pub column_comment: &'a str,
    pub generation_expression: Option<&'a str>,
}

impl<'a> ColumnRow<'a> {
    /// From cells in the order of [`COLUMNS_QUERY_FIELDS`]. A position that is no number is 0,
    /// which none has.
    pub fn of(cells: &'a [Option<String>]) -> Self {
        let get = |at: usize| cells.get(at).and_then(Option::as_deref);
        let text = |at: usize| get(at).unwrap_or_default();
        ColumnRow {
            table_schema: text(0),
            table_name: text(1),
            column_name: text(2),
            ordinal_position: text(3).parse().unwrap_or_default(),
            column_default: get(4),
            is_nullable: text(5),
            data_type: text(6),
            column_type: text(7),
            collation: get(8),
            character_set: get(9),
            column_key: text(10),
            extra: text(11),
            column_comment: text(12),
            generation_expression: get(13),
        }
    }
}

/// The query for the columns of these tables of a database, or of all its tables if no name is
/// given.
///
/// The text means the same under every `sql_mode` and connection character set: names are
/// hexadecimal literals. So does the answer under every `character_set_results`, whatever that
/// lacks: binary strings are not converted, and these are UTF-8. Each table is asked for by itself,
/// because MariaDB opens every table of the database for any condition other than equality. Names
/// are compared as the server compares table names, because both servers treat equality with a
/// constant as a look-up by name.
pub fn catalog_query(database: &str, names: &[&str]) -> String {
    let fields: Vec<String> = COLUMNS_QUERY_FIELDS
        .split(", ")
        .map(|field| format!("CAST({field} AS BINARY)"))
        .collect();
    let of_database = format!(
        "SELECT {} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {}",
        fields.join(", "),
        text_as_hex_literal(database)
    );
    if names.is_empty() {
        return of_database;
    }
    let each: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "{of_database} AND TABLE_NAME = {}",
                text_as_hex_literal(name)
            )
        })
        .collect();
    each.join(" UNION ALL ")
}

/// The tables to which `rows` belong, in the order of their first rows. `verify` tells whether a
/// tag belongs to bytes.
///
/// A table with anything wrong about its protected columns is marked as damaged and keeps the
/// columns that could be understood; it never looks unprotected. So is one of whose protected
/// columns a part is missing: whether that is none, because it is a view, the caller has to ask the
/// server ([`Table::is_part`]).
pub fn tables_from_rows<'a>(
    rows: impl IntoIterator<Item = ColumnRow<'a>>,
    verify: impl Fn(&[u8], &[u8; 16]) -> bool,
) -> Vec<Table> {
    let mut groups: Vec<Vec<ColumnRow<'a>>> = Vec::new();
    let mut index = std::collections::HashMap::new();
    for row in rows {
        let at = *index
            .entry((row.table_schema, row.table_name))
            .or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
        .into_iter()
        .map(|mut group| {
            group.sort_by_key(|row| row.ordinal_position);
            table_from(&group, &verify)
        })
        .collect()
}

/// The table whose rows these are; there is at least one.
fn table_from(rows: &[ColumnRow<'_>], verify: impl Fn(&[u8], &[u8; 16]) -> bool) -> Table {
    let mut table = Table::named(
        rows.first().map_or("", |row| row.table_schema),
        rows.first().map_or("", |row| row.table_name),
    );
    table.columns.reserve(rows.len());
    let holds_sealed = rows.iter().any(|row| is_sealed(row));
    if !holds_sealed {
        table.columns.extend(rows.iter().map(plain_column));
        return table;
    }

    let mut damage = Damage(None);
    let mut members = Members::default();
    let mut companions: Vec<&ColumnRow<'_>> = Vec::new();
    let mut column_ids = HashSet::new();
    let definitions: Vec<Option<Defined>> = rows
        .iter()
        .map(|row| is_sealed(row).then(|| defined(row, rows, &verify)))
        .collect();
    let mut marks = HashSet::new();
    for (_, renamed) in definitions.iter().flatten().flatten() {
        marks.extend(renamed.iter().flat_map(|r| r.marks.clone()));
    }
    for (row, definition) in rows.iter().zip(definitions) {
        if let Some(definition) = definition {
            match definition {
                Ok((metadata, renamed)) => {
                    if *table.table_id.get_or_insert(metadata.table_id) != metadata.table_id {
                        damage.note(row.column_name, "belongs to another table");
                    }
                    if !column_ids.insert(metadata.column_id) {
                        damage.note(row.column_name, "has the id of another column");
                    }
                    if !same_type(row, &cell_type(&metadata.sql_type, metadata.cell_version)) {
                        damage.note(row.column_name, "has another type than its definition says");
                    }
                    let tenant = metadata.capabilities.tenant.as_ref();
                    if table
                        .tenant()
                        .is_some_and(|other| tenant.is_some_and(|t| t != other))
                    {
                        damage.note(row.column_name, "has another tenant than another column");
                    }
                    let original = renamed
                        .as_ref()
                        .map(|r| format!("{}{ENC_SUFFIX}", r.original));
                    let name = original.as_deref().unwrap_or(row.column_name);
                    members.add(row.column_comment, name, metadata.column_id);
                    table.columns.push(protected_column(row, metadata, renamed));
                }
                Err(error) => damage.note(row.column_name, reason(&error)),
            }
        } else if marks.contains(row.column_name) || is_helper(row) {
            // a view's, or what is there while a change runs
        } else if split_companion(row.column_name).is_some() {
            companions.push(row);
        } else {
            table.columns.push(plain_column(row));
        }
    }

    // the columns of a view are never invisible
    let invisible = companions.iter().any(|row| is_invisible(row));
    table.view = !marks.is_empty() || (!companions.is_empty() && !invisible);
    for column in &mut table.columns {
        claim_companions(column, table.view, &mut companions, &mut damage);
    }
    if let Some(foreign) = companions.first() {
        damage.note(foreign.column_name, "belongs to no protected column");
    }
    for (at, column) in table.columns.iter().enumerate() {
        if table.columns[..at]
            .iter()
            .any(|other| same_name(&other.name, &column.name))
        {
            damage.note(&column.name, "exists twice, protected and in plaintext");
        }
    }
    // last, because it may turn out to be none: see [`Table::is_part`]
    let whole = members.judged(verify);
    if damage.0.is_none() {
        for column in &mut table.columns {
            if let (Ok(whole), Some(protection)) = (whole, &mut column.protection) {
                protection.whole = whole;
            }
        }
        damage.0 = match whole {
            Ok(Whole::Unmarked | Whole::All(_)) => None,
            Ok(Whole::Part(_)) => Some(set::INCOMPLETE.to_owned()),
            Err(reason) => Some(reason.to_owned()),
        };
    }
    table.damaged = damage.0;
    table
}

/// What a sealed column's comment says, and what the column is called in the table, if this is a
/// view that calls it otherwise.
type Defined = Result<(comment::ColumnMetadata, Option<Renamed>), CommentError>;

fn defined(
    row: &ColumnRow<'_>,
    rows: &[ColumnRow<'_>],
    verify: impl Fn(&[u8], &[u8; 16]) -> bool,
) -> Defined {
    match comment::decode(row.column_comment, row.column_name, &verify) {
        Err(CommentError::NotAuthentic) => {
            let names = rows.iter().map(|row| row.column_name);
            let found = alias::aliased(row.column_comment, row.column_name, names, verify);
            found.map(|(metadata, original, marks)| (metadata, Some(Renamed { original, marks })))
        }
        decoded => decoded.map(|metadata| (metadata, None)),
    }
}

/// The first thing found wrong.
struct Damage(Option<String>);

impl Damage {
    fn note(&mut self, column: &str, what: &str) {
        self.0
            .get_or_insert_with(|| format!("column '{column}' {what}"));
    }
}

fn reason(error: &CommentError) -> &'static str {
    match error {
        CommentError::NotOurs => "holds no definition in its comment",
        CommentError::UnknownVersion => "was defined by a newer version",
        CommentError::Malformed => "has a malformed definition in its comment",
        CommentError::NotAuthentic => {
            "has a definition in its comment that was changed, comes from another column, or was written under other keys"
        }
        CommentError::UnknownType => "has a type that this version does not know",
    }
}

/// Whether the column is a sealed one, by its name or by its comment: whoever strips one of them
/// must not turn the table into an unprotected one.
fn is_sealed(row: &ColumnRow<'_>) -> bool {
    split_enc(row.column_name).is_some() || row.column_comment.starts_with(MARK)
}

/// Whether the column holds cells of a change that is not done: see [`HELPER_COMMENT`].
fn is_helper(row: &ColumnRow<'_>) -> bool {
    row.column_name.starts_with(HELPER_PREFIX)
        && row.column_comment == HELPER_COMMENT
        && is_invisible(row)
}

fn same_type(row: &ColumnRow<'_>, expected: &str) -> bool {
    row.column_type.eq_ignore_ascii_case(expected)
}

fn is_invisible(row: &ColumnRow<'_>) -> bool {
    row.extra
        .split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case("INVISIBLE"))
}

/// Takes the companions of `column` out of the list, checks them and learns the column's part in
/// keys from them.
fn claim_companions(
    column: &mut Column,
    of_view: bool,
    companions: &mut Vec<&ColumnRow<'_>>,
    damage: &mut Damage,
) {
    let Some(protection) = &mut column.protection else {
        return;
    };
    let sql_type = &protection.sql_type;
    let PhysicalNames { eq, ord, gram, .. } = &protection.names;
    if let Some(name) = gram {
        match companions.iter().position(|row| row.column_name == name) {
            None => damage.note(name, "is missing, or hidden from this account"),
            Some(at) => {
                let row = companions.swap_remove(at);
                // MariaDB calls no type so
                protection.grams = match same_type(row, "json") {
                    true => GramForm::Numbers,
                    false => GramForm::Words,
                };
                if protection.grams == GramForm::Words
                    && (!same_type(row, gram_type(sql_type)) || row.collation != Some("ascii_bin"))
                {
                    damage.note(name, "has another type than its definition says");
                }
                if !of_view && !is_invisible(row) {
                    damage.note(name, "is not invisible");
                }
                // its index is ours, and tells nothing about keys
            }
        }
    }
    let capabilities = &protection.capabilities;
    let expected = [
        (eq, capabilities.equality_bytes()),
        (ord, capabilities.order_key_bytes(sql_type)),
    ];
    for (name, bytes) in expected {
        let Some(name) = name else { continue };
        let Some(at) = companions.iter().position(|row| row.column_name == name) else {
            damage.note(name, "is missing, or hidden from this account");
            continue;
        };
        let row = companions.swap_remove(at);
        if !same_type(row, &format!("binary({bytes})")) {
            damage.note(name, "has another type than its definition says");
        }
        if (row.is_nullable == "YES") != column.nullable {
            damage.note(name, "and its sealed column differ in NOT NULL");
        }
        if !of_view && !is_invisible(row) {
            damage.note(name, "is not invisible");
        }
        column.key = column.key.max(KeyRole::from_column_key(row.column_key));
    }
}

fn protected_column(
    row: &ColumnRow<'_>,
    metadata: comment::ColumnMetadata,
    renamed: Option<Renamed>,
) -> Column {
    let mut names = PhysicalNames::new(
        &metadata.name,
        metadata.column_id,
        &metadata.sql_type,
        &metadata.capabilities,
    );
    if metadata.without_grams {
        names = names.without_grams();
    }
    names.renamed = renamed;
    Column {
        type_text: logical_type_text(&metadata.sql_type, row),
        name: metadata.name,
        sql_type: Some(metadata.sql_type),
        nullable: row.is_nullable == "YES",
        default: metadata.default.map(Default::Literal),
        auto_increment: false,
        refers_to_plaintext: false,
        on_update: metadata.on_update,
        generated: false,
        // Of a sealed column's own keys nobody knows; the companions tell.
        key: KeyRole::None,
        protection: Some(Protection {
            sql_type: metadata.sql_type,
            column_id: metadata.column_id,
            key_id: metadata.key_id,
            suite: metadata.suite,
            cell_version: metadata.cell_version,
            capabilities: metadata.capabilities,
            names,
            checks: metadata.checks,
            actions: metadata.actions,
            grams: GramForm::Words,
            whole: Whole::Unmarked,
        }),
        invisible: is_invisible(row),
        comment: metadata.comment,
        explicit_collation: metadata.explicit_collation,
    }
}

/// COLUMN_TYPE of the logical column, which the comment holds as the server's family prints it.
fn logical_type_text(sql_type: &SqlType, row: &ColumnRow<'_>) -> String {
    comment::column_type(row.column_comment)
        .unwrap_or_else(|| sql_type.to_sql(onionskin_value::Family::MySql))
}

fn plain_column(row: &ColumnRow<'_>) -> Column {
    let extra = row.extra.to_ascii_lowercase();
    Column {
        name: row.column_name.to_owned(),
        sql_type: SqlType::parse(row.column_type, row.collation).ok(),
        type_text: row.column_type.to_owned(),
        nullable: row.is_nullable == "YES",
        default: row
            .column_default
            .map(|text| Default::Server(text.to_owned())),
        auto_increment: extra.contains("auto_increment"),
        refers_to_plaintext: false,
        on_update: extra.contains("on update"),
        generated: row
            .generation_expression
            .is_some_and(|text| !text.is_empty())
            || extra.contains(" generated"),
        key: KeyRole::from_column_key(row.column_key),
        protection: None,
        invisible: is_invisible(row),
        comment: row.column_comment.to_owned(),
        explicit_collation: false,
    }
}
