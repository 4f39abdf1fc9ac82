//! The logical definition of a column, in the COMMENT of its sealed column.
//!
//! ```text
//! onionskin:2|TAG|COLUMN ID|TABLE ID|KEY ID|SUITE|CAPABILITIES|DATA_TYPE|COLUMN_TYPE|CHARSET|COLLATION|FLAGS
//!            |CHARACTERS|OCTETS|PRECISION|SCALE|FRACTION|DEFAULT|COMMENT|GENERATION|SET
//! ```
//!
//! The last two are the mark of all protected columns together ([`SetMark`]). Version 1 has neither
//! of them; it is read and no longer written. Version 3 is that of columns with CHECK constraints:
//! it has them in one more field, behind COMMENT.
//!
//! (one line in fact). The tag authenticates every other character of the text and the physical
//! name of the column, so a comment cannot be edited or moved to a column of another name. Moved to
//! the column of the same name in another table, it leads to keys that open nothing there, because
//! the table id is bound into them.
//!
//! Two needs shaped the text form:
//!
//! - It must arrive unchanged through every `sql_mode`, connection character set and dump. So it
//!   holds only printable ASCII characters, without quotes and backslashes.
//! - The server must be able to take it apart, because [`information_schema_columns`] lets it. So a
//!   field is found by counting `|`, and a field that holds any other character stands as `%` and
//!   its base64: SQL can decode base64 and could not decode single escapes.
//!
//! The facts from CHARACTERS to FRACTION follow from the type; they are there for the server alone,
//! and [`decode`] does not look at them. Whether the column is nullable is told by the sealed
//! column itself.
//!
//! [`information_schema_columns`]: crate::information_schema_columns

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use onionskin_value::{Family, Kind, SqlType};

use crate::{
    check::{self, Check},
    computed::time_fraction,
    display::shown,
    errors::SchemaError,
    key_actions::KeyActions,
    protection::{Capabilities, ENC_SUFFIX, split_enc},
    quote::{hex, unhex},
    set::SetMark,
    table::DefaultLiteral,
    tenant::{KEY_BY, TENANT_CELLS, Tenant},
    type_facts::TypeFacts,
};

/// Most characters a server keeps of a column comment.
pub const MAX_COMMENT: usize = 1024;

/// What every comment of ours begins with, whatever its version.
pub const MARK: &str = "onionskin:";

/// The version of cells that stands in no comment.
const FIRST_CELL_VERSION: u8 = 1;
const VERSION_FIELD: &str = "onionskin:2|";
/// Of comments without a mark of the whole set.
const OLD_VERSION_FIELD: &str = "onionskin:1|";
/// Of comments with CHECK constraints. Programs that know nothing of these must not write.
const CHECKED_VERSION_FIELD: &str = "onionskin:3|";
/// Fields behind the tag, without those of the mark and without the CHECK constraints.
const FIELDS_AFTER_TAG: usize = 17;
/// Letters of the flags: the definition named a collation; the type is MariaDB's JSON, which prints
/// as LONGTEXT; the column is set to the present time where a row changes; the column may be
/// searched by parts, and no grams are kept of it. Behind these stand the letters of
/// [`KeyActions`].
const EXPLICIT_COLLATION: char = 'c';
const TEXT_JSON: char = 'j';
pub(crate) const ON_UPDATE: char = 'u';
const WITHOUT_GRAMS: char = 'g';

/// Number of a field, counted from 1 as `SUBSTRING_INDEX` does.
pub(crate) mod field {
    pub(crate) const DATA_TYPE: usize = 8;
    pub(crate) const COLUMN_TYPE: usize = 9;
    pub(crate) const CHARSET: usize = 10;
    pub(crate) const COLLATION: usize = 11;
    pub(crate) const FLAGS: usize = 12;
    pub(crate) const CHARACTERS: usize = 13;
    pub(crate) const OCTETS: usize = 14;
    pub(crate) const PRECISION: usize = 15;
    pub(crate) const SCALE: usize = 16;
    pub(crate) const FRACTION: usize = 17;
    pub(crate) const DEFAULT: usize = 18;
    pub(crate) const COMMENT: usize = 19;
}

/// DEFAULT NULL; a value begins with [`DEFAULT_VALUE`], an expression with [`DEFAULT_EXPRESSION`],
/// and no default at all is the empty field.
pub(crate) const DEFAULT_NULL: &str = "null";
/// Stands before the value of a default.
pub(crate) const DEFAULT_VALUE: char = '=';
/// Stands before the text of a default that is computed.
pub(crate) const DEFAULT_EXPRESSION: char = ':';
/// Stands before a field in base64.
pub(crate) const ENCODED: char = '%';

/// The logical definition of a protected column, but for what the physical columns tell themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMetadata {
    /// Logical name.
    pub name: String,
    /// Logical type, with its collation.
    pub sql_type: SqlType,
    /// Whether the definition named its character set or collation.
    pub explicit_collation: bool,
    /// Default, if any.
    pub default: Option<DefaultLiteral>,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: bool,
    /// The user's own comment. Characters beyond the basic plane become question marks, as in
    /// servers.
    pub comment: String,
    /// CHECK constraints over this column alone.
    pub checks: Vec<Check>,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// Whether no grams are kept although LIKE is allowed: rows are opened then. Never without that
    /// capability.
    pub without_grams: bool,
    /// What the foreign keys say whose first column it is.
    pub actions: KeyActions,
    /// Stands in every cell.
    pub column_id: [u8; 4],
    /// Bound into every cell; the same for all columns of a table.
    pub table_id: [u8; 8],
    /// The data key.
    pub key_id: u16,
    /// The cipher suite.
    pub suite: u8,
    /// Version of the format of the column's cells, which the CHECK constraint demands.
    pub cell_version: u8,
}

/// Why a comment gave no definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommentError {
    /// It does not begin as ours do.
    #[error("the column's comment holds no definition")]
    NotOurs,
    /// A newer version wrote it.
    #[error("the definition in the column's comment has a format that this version does not know")]
    UnknownVersion,
    /// Fields are missing or unreadable.
    #[error("the definition in the column's comment is malformed")]
    Malformed,
    /// The tag is wrong: it was edited, moved, or written under another key.
    #[error(
        "the definition in the column's comment is not authentic: it was changed, comes from another column, or was written under other keys"
    )]
    NotAuthentic,
    /// It is authentic, and this version does not understand the type.
    #[error("the type in the column's comment is not known to this version")]
    UnknownType,
}

/// The text of the comment. `tag` authenticates bytes.
pub fn encode(
    metadata: &ColumnMetadata,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<String, SchemaError> {
    let mut body = body(metadata, family);
    let _ = write!(
        body,
        "|{}|{}",
        set.generation,
        URL_SAFE_NO_PAD.encode(set.tag)
    );
    let physical_name = format!("{}{ENC_SUFFIX}", metadata.name);
    let version = match metadata.checks.is_empty() {
        true => VERSION_FIELD,
        false => CHECKED_VERSION_FIELD,
    };
    let tag = tag(&tagged_bytes(version, &physical_name, &body));
    let text = format!("{version}{}|{body}", hex(&tag));
    // ASCII only, so bytes are characters.
    if text.len() > MAX_COMMENT {
        return Err(SchemaError::CommentTooLong {
            column: metadata.name.clone(),
            excess: text.len() - MAX_COMMENT,
        });
    }
    Ok(text)
}

/// What the comment says of the column itself: the fields behind the tag, without those of the
/// mark.
pub(crate) fn body(metadata: &ColumnMetadata, family: Family) -> String {
    let facts = TypeFacts::new(&metadata.sql_type, family);
    let mut body = format!(
        "{}|{}|{}|{}",
        hex(&metadata.column_id),
        hex(&metadata.table_id),
        metadata.key_id,
        metadata.suite
    );
    if metadata.cell_version != FIRST_CELL_VERSION {
        let _ = write!(body, ".{}", metadata.cell_version);
    }
    push_text(&mut body, &capability_words(&metadata.capabilities));
    push_text(&mut body, &facts.data_type);
    push_text(&mut body, &facts.column_type);
    push_text(&mut body, facts.character_set.as_deref().unwrap_or(""));
    push_text(&mut body, facts.collation.as_deref().unwrap_or(""));
    let mut flags = String::new();
    flags.extend(metadata.explicit_collation.then_some(EXPLICIT_COLLATION));
    flags.extend(is_text_json(&metadata.sql_type).then_some(TEXT_JSON));
    flags.extend(metadata.on_update.then_some(ON_UPDATE));
    let without_grams = metadata.without_grams && metadata.capabilities.like;
    flags.extend(without_grams.then_some(WITHOUT_GRAMS));
    metadata.actions.push_flags(&mut flags);
    push_text(&mut body, &flags);
    for number in [
        facts.character_maximum_length,
        facts.character_octet_length,
        facts.numeric_precision,
        facts.numeric_scale,
        facts.datetime_precision,
    ] {
        body.push('|');
        if let Some(number) = number {
            let _ = write!(body, "{number}");
        }
    }
    match &metadata.default {
        None => body.push('|'),
        Some(DefaultLiteral::Null) => push_text(&mut body, DEFAULT_NULL),
        Some(DefaultLiteral::Value(value)) => {
            let mut field = vec![DEFAULT_VALUE as u8];
            field.extend_from_slice(value);
            push_bytes(&mut body, &field);
        }
        Some(DefaultLiteral::Expression(text)) => {
            push_text(&mut body, &format!("{DEFAULT_EXPRESSION}{text}"));
        }
    }
    push_text(&mut body, &shown(&metadata.comment));
    if !metadata.checks.is_empty() {
        push_text(&mut body, &check::to_field(&metadata.checks));
    }
    body
}

/// Cuts a comment that [`decode`] accepted into what it says of its column and the mark of all
/// columns.
pub(crate) fn body_and_mark(comment: &str) -> (&str, Option<SetMark>) {
    let body = comment.splitn(3, '|').nth(2).unwrap_or_default();
    if comment.starts_with(OLD_VERSION_FIELD) {
        return (body, None);
    }
    let mut parts = body.rsplitn(3, '|');
    let (tag, generation) = (parts.next(), parts.next());
    match (parts.next(), mark(generation, tag)) {
        (Some(front), Some(mark)) => (front, Some(mark)),
        _ => (body, None),
    }
}

fn mark(generation: Option<&str>, tag: Option<&str>) -> Option<SetMark> {
    Some(SetMark {
        generation: generation?.parse().ok()?,
        tag: URL_SAFE_NO_PAD.decode(tag?).ok()?.try_into().ok()?,
    })
}

/// Reads the comment of the column `physical_name`. `verify` tells whether a tag is that of the
/// bytes.
pub fn decode(
    comment: &str,
    physical_name: &str,
    verify: impl Fn(&[u8], &[u8; 16]) -> bool,
) -> Result<ColumnMetadata, CommentError> {
    if !comment.starts_with(MARK) {
        return Err(CommentError::NotOurs);
    }
    let version = [VERSION_FIELD, OLD_VERSION_FIELD, CHECKED_VERSION_FIELD]
        .into_iter()
        .find(|version| comment.starts_with(version))
        .ok_or(CommentError::UnknownVersion)?;
    let rest = &comment[version.len()..];
    let (tag, body) = rest.split_once('|').ok_or(CommentError::Malformed)?;
    let tag = unhex::<16>(tag).ok_or(CommentError::Malformed)?;
    if !verify(&tagged_bytes(version, physical_name, body), &tag) {
        return Err(CommentError::NotAuthentic);
    }
    let name = split_enc(physical_name).ok_or(CommentError::Malformed)?;
    let body = match body_and_mark(comment) {
        (body, None) if version == OLD_VERSION_FIELD => body,
        (body, Some(_)) => body,
        _ => return Err(CommentError::Malformed),
    };
    let mut fields: Vec<&str> = body.split('|').collect();
    let checks = match version {
        CHECKED_VERSION_FIELD => {
            let field = fields.pop().ok_or(CommentError::Malformed)?;
            check::from_field(&text_field(field)?).ok_or(CommentError::Malformed)?
        }
        _ => Vec::new(),
    };
    let fields: [&str; FIELDS_AFTER_TAG] =
        fields.try_into().map_err(|_| CommentError::Malformed)?;
    let [
        column_id,
        table_id,
        key_id,
        suite,
        capabilities,
        _data_type,
        column_type,
        _charset,
        collation,
        flags,
        ..,
        default,
        user_comment,
    ] = fields;
    let (suite, cell_version) = cells_field(suite).ok_or(CommentError::Malformed)?;
    let collation = text_field(collation)?;
    let collation = (!collation.is_empty()).then_some(collation.as_str());
    let mut sql_type = SqlType::parse(&text_field(column_type)?, collation)
        .map_err(|_| CommentError::UnknownType)?;
    let mut flags = flags;
    let mut has = |letter: char| match flags.strip_prefix(letter) {
        Some(rest) => {
            flags = rest;
            true
        }
        None => false,
    };
    let (explicit_collation, text_json, on_update) =
        (has(EXPLICIT_COLLATION), has(TEXT_JSON), has(ON_UPDATE));
    let without_grams = has(WITHOUT_GRAMS);
    let actions = KeyActions::of_flags(&mut has);
    let capabilities =
        parse_capability_words(&text_field(capabilities)?).ok_or(CommentError::Malformed)?;
    if without_grams && !capabilities.like {
        return Err(CommentError::Malformed);
    }
    let has_tenant = capabilities.tenant.is_some();
    if has_tenant != (cell_version == TENANT_CELLS) || capabilities.beside_tenant().is_some() {
        return Err(CommentError::Malformed);
    }
    if !flags.is_empty() || (on_update && time_fraction(&sql_type).is_none()) {
        return Err(CommentError::Malformed);
    }
    match (text_json, sql_type.kind) {
        (false, _) => {}
        (true, Kind::LongText) => sql_type.kind = Kind::Json,
        (true, _) => return Err(CommentError::Malformed),
    }
    Ok(ColumnMetadata {
        name: name.to_owned(),
        sql_type,
        explicit_collation,
        default: match default {
            "" => None,
            DEFAULT_NULL => Some(DefaultLiteral::Null),
            field => {
                let mut value = bytes_field(field)?;
                if value.is_empty() {
                    return Err(CommentError::Malformed);
                }
                let mark = char::from(value.remove(0));
                Some(match mark {
                    DEFAULT_VALUE => DefaultLiteral::Value(value),
                    DEFAULT_EXPRESSION if !value.is_empty() => DefaultLiteral::Expression(
                        String::from_utf8(value).map_err(|_| CommentError::Malformed)?,
                    ),
                    _ => return Err(CommentError::Malformed),
                })
            }
        },
        on_update,
        comment: text_field(user_comment)?,
        checks,
        capabilities,
        without_grams,
        actions,
        column_id: unhex(column_id).ok_or(CommentError::Malformed)?,
        table_id: unhex(table_id).ok_or(CommentError::Malformed)?,
        key_id: key_id.parse().map_err(|_| CommentError::Malformed)?,
        suite,
        cell_version,
    })
}

/// The numbers of the suite and of the cells' version, which is left out if it is the first.
fn cells_field(field: &str) -> Option<(u8, u8)> {
    let Some((suite, version)) = field.split_once('.') else {
        return Some((field.parse().ok()?, FIRST_CELL_VERSION));
    };
    let version = version.parse().ok()?;
    (version > FIRST_CELL_VERSION).then_some((suite.parse().ok()?, version))
}

/// Whether this is JSON that is text with a CHECK, as MariaDB has it.
pub(crate) fn is_text_json(sql_type: &SqlType) -> bool {
    sql_type.kind == Kind::Json && sql_type.collation.is_some()
}

/// What the tag covers. Names hold no NUL, so the parts cannot be shifted against each other.
fn tagged_bytes(version: &str, physical_name: &str, body: &str) -> Vec<u8> {
    [version, physical_name, "\0", body].concat().into_bytes()
}

impl Capabilities {
    pub(crate) fn to_field(&self) -> String {
        capability_words(self)
    }

    pub(crate) fn from_field(text: &str) -> Option<Self> {
        parse_capability_words(text)
    }
}

fn capability_words(capabilities: &Capabilities) -> String {
    let of_group = |group: &String| format!("join={group}");
    // The group comes last and may hold any character, commas too.
    let of_tenant = |tenant: &Tenant| format!("tenant={}={}", tenant.name, tenant.column);
    let searched = Capabilities {
        join: None,
        tenant: None,
        ..capabilities.clone()
    };
    let mut words = searched.list();
    // A column with a tenant is in no group.
    words.extend(capabilities.join.as_ref().map(of_group));
    words.extend(capabilities.tenant.as_ref().map(of_tenant));
    words.join(",")
}

fn parse_capability_words(text: &str) -> Option<Capabilities> {
    let mut capabilities = Capabilities::default();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(group) = rest.strip_prefix("join=") {
            capabilities.join = Some(group.to_owned());
            break;
        }
        if let Some(tenant) = rest.strip_prefix("tenant=") {
            let (name, column) = tenant.split_once('=')?;
            capabilities.tenant = Some(Tenant::new(column, Some(name))?);
            break;
        }
        if rest.starts_with(KEY_BY) {
            return None;
        }
        let (word, next) = rest.split_once(',').unwrap_or((rest, ""));
        if !capabilities.take_word(word) {
            return None;
        }
        rest = next;
    }
    Some(capabilities)
}

/// Characters that stand for themselves.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'|' | b'%' | b'\'' | b'"' | b'\\' | b'`')
}

pub(crate) fn push_text(out: &mut String, text: &str) {
    push_bytes(out, text.as_bytes());
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    out.push('|');
    match std::str::from_utf8(bytes) {
        // A space at the end could be lost to a comparison that pads.
        Ok(text) if bytes.iter().all(|&byte| is_plain(byte)) && !text.ends_with(' ') => {
            out.push_str(text);
        }
        _ => {
            out.push(ENCODED);
            STANDARD.encode_string(bytes, out);
        }
    }
}

fn bytes_field(field: &str) -> Result<Vec<u8>, CommentError> {
    match field.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| CommentError::Malformed),
        None => Ok(field.as_bytes().to_vec()),
    }
}

pub(crate) fn text_field(field: &str) -> Result<String, CommentError> {
    String::from_utf8(bytes_field(field)?).map_err(|_| CommentError::Malformed)
}

/// The actions of foreign keys by the text of a column's comment, whose tag nobody looks at.
pub fn actions_of(comment: &str) -> KeyActions {
    let flags = comment.split('|').nth(field::FLAGS - 1).unwrap_or_default();
    KeyActions::of_flags(|letter| flags.contains(letter))
}

/// COLUMN_TYPE in the words of the family that the column was defined on. Only for comments that
/// [`decode`] accepted.
pub(crate) fn column_type(comment: &str) -> Option<String> {
    text_field(comment.split('|').nth(field::COLUMN_TYPE - 1)?).ok()
}
