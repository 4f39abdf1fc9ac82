//! SHOW CREATE TABLE: from the physical definition to what a server with the logical table would
//! print.
//!
//! The server's text is cut into the elements of its list, by quotes and parentheses alone;
//! elements that do not concern a protected column stay byte for byte. The text has one form
//! whatever the `sql_mode`: backslash escapes in strings always, identifiers in backquotes, or in
//! double quotes under ANSI_QUOTES, or bare under `sql_quote_show_create=0`.

use onionskin_value::Family;

use crate::{
    charset::{charset_of, default_collation},
    check,
    comment::is_text_json,
    computed::{present_time, time_fraction},
    ddl::is_our_constraint,
    display::{Dialect, push_default_clause},
    errors::SchemaError,
    folding::same_name,
    key_actions::KeyAction,
    long_unique::{is_hash, shown_hash},
    prefix::with_prefixes,
    protection::{split_companion, split_enc},
    quote::{identifier, push_shown_literal},
    table::{Column, Default, DefaultLiteral, Table},
    type_facts::data_type_of,
};

/// The logical CREATE TABLE statement of `table`, whose physical one is `physical_sql`.
pub fn show_create_table(
    physical_sql: &str,
    table: &Table,
    dialect: impl Into<Dialect>,
) -> Result<String, SchemaError> {
    if let Some(reason) = &table.damaged {
        return Err(SchemaError::DamagedTable {
            table: table.name.clone(),
            reason: reason.clone(),
        });
    }
    // one that has none may have marks of columns that stay plaintext
    logical(physical_sql, table, dialect.into(), false).ok_or_else(|| {
        SchemaError::DefinitionNotUnderstood {
            table: table.name.clone(),
        }
    })
}

/// With `marks`, protected columns say what they are `ENCRYPTED FOR`.
pub(crate) fn logical(
    physical_sql: &str,
    table: &Table,
    dialect: Dialect,
    marks: bool,
) -> Option<String> {
    let family = dialect.family;
    let statement = Statement::cut(physical_sql)?;
    let table_collation = table_collation(statement.tail, family);
    let mut elements = Vec::with_capacity(statement.elements.len());
    let mut seen = 0;
    for element in statement.elements {
        let trimmed = element.trim_start();
        let indent = &element[..element.len() - trimmed.len()];
        let first = Token::first(trimmed)?;
        if first.is_identifier() {
            let name = first.name();
            match table.owner_of(&name) {
                None => elements.push(element.to_owned()),
                Some(column) if column.enc_name().is_some_and(|enc| same_name(enc, &name)) => {
                    seen += 1;
                    let line = column_line(column, trimmed, table_collation.as_deref(), dialect)?;
                    let mark = match (&column.protection, marks) {
                        (Some(protection), true) => {
                            let mut capabilities = protection.capabilities.clone();
                            // foreign keys are not copied, and their groups would only show more
                            if capabilities.joins_key() {
                                capabilities.join = None;
                            }
                            format!(" {}", capabilities.clause())
                        }
                        _ => String::new(),
                    };
                    elements.push(format!("{indent}{line}{mark}"));
                }
                Some(_) => {}
            }
        } else if let Some(check) = logical_check(trimmed, table, family) {
            elements.push(format!("{indent}{check}"));
        } else if !is_our_check(trimmed, table)
            && !is_plain_mark(trimmed)
            && !is_our_index(trimmed, table)
        {
            let mut line = with_logical_names(&with_prefixes(trimmed), table);
            if is_hash(&line, table, family) {
                line = shown_hash(&line);
            }
            let line = with_actions(line, trimmed, table);
            elements.push(format!("{indent}{line}"));
        }
    }
    // Every protected column must have been there, or the text and the table do not belong
    // together.
    if seen != table.protected_columns().count() {
        return None;
    }
    Some(format!(
        "{}{}{}",
        statement.head,
        elements.join(","),
        with_logical_names(statement.tail, table)
    ))
}

/// `` `c` varchar(20) COLLATE utf8mb4_bin NOT NULL DEFAULT 'x' COMMENT 'y' ``
fn column_line(
    column: &Column,
    physical: &str,
    table_collation: Option<&str>,
    dialect: Dialect,
) -> Option<String> {
    let family = dialect.family;
    let sql_type = column.sql_type.as_ref()?;
    let mut line = Token::first(physical)?.quoted(&column.name);
    line.push(' ');
    line.push_str(&column.type_text);

    if let Some(collation) = sql_type.collation {
        let name = collation.name();
        let differs = table_collation != Some(name);
        let (show_charset, show_collation) = match family {
            // one that is all of its character set is not named
            Family::MariaDb => (differs, differs && name != "binary"),
            Family::MySql => {
                let explicit = column.explicit_collation;
                let is_default = default_collation(charset_of(name), family) == name;
                (
                    differs || explicit,
                    !is_default || explicit || (name == "utf8mb4_0900_ai_ci" && differs),
                )
            }
        };
        if show_charset {
            line.push_str(" CHARACTER SET ");
            line.push_str(charset_of(name));
        }
        if show_collation {
            line.push_str(" COLLATE ");
            line.push_str(name);
        }
    }

    if !column.nullable {
        line.push_str(" NOT NULL");
    } else if data_type_of(&column.type_text) == "timestamp" {
        // The only type that was NOT NULL by default, once.
        line.push_str(" NULL");
    }
    let shown_late = invisible_comes_late(physical);
    if column.invisible && family == Family::MariaDb && !shown_late {
        line.push_str(" INVISIBLE");
    }
    push_default_clause(&mut line, literal_default(column), sql_type, dialect);
    if let Some(fraction) = time_fraction(sql_type).filter(|_| column.on_update) {
        line.push_str(" ON UPDATE ");
        line.push_str(&present_time(fraction, family));
    }
    if column.invisible && family == Family::MariaDb && shown_late {
        line.push_str(" INVISIBLE");
    }
    if column.invisible && family == Family::MySql {
        line.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        line.push_str(" COMMENT ");
        push_shown_literal(&mut line, &column.comment);
    }
    if is_text_json(sql_type) {
        // The CHECK that MariaDB adds to every JSON column.
        line.push_str(&format!(
            " CHECK (json_valid({}))",
            identifier(&column.name)
        ));
    }
    let checks = column.protection.iter().flat_map(|p| &p.checks);
    if let Some(own) = checks.into_iter().find(|check| check.in_column) {
        let name = name_beside(Token::first(physical)?, column, family);
        let shown = own.condition.shown(&name, family);
        line.push_str(&format!(" CHECK ({shown})"));
    }
    Some(line)
}

/// A column's name in the text of a CHECK, as the server quotes that of the sealed column. MySQL
/// keeps these texts in one form.
fn name_beside(sealed: Token<'_>, column: &Column, family: Family) -> String {
    match family {
        Family::MariaDb => sealed.quoted(&column.name),
        Family::MySql => identifier(&column.name),
    }
}

/// The CHECK of the client that stands behind an element of a table's definition, if one does.
fn logical_check(element: &str, table: &Table, family: Family) -> Option<String> {
    let (column, number, sealed) = check_of(element, table)?;
    let check = column.protection.as_ref()?.checks.get(number)?;
    let shown = check
        .condition
        .shown(&name_beside(sealed, column, family), family);
    let unenforced = match check.unenforced {
        true => " /*!80016 NOT ENFORCED */",
        false => "",
    };
    Some(format!(
        "{}CHECK ({shown}){unenforced}",
        &element[..place_of_check(element)]
    ))
}

/// Where CHECK stands in an element.
fn place_of_check(element: &str) -> usize {
    let before = tokens(element).take_while(|token| !matches!(token, Token::Word("CHECK")));
    before.map(|token| token.text().len()).sum()
}

/// The column and the number of an element that is a CHECK over a protected column, with the name
/// that it has for the sealed one.
pub(crate) fn check_of<'t, 'e>(
    element: &'e str,
    table: &'t Table,
) -> Option<(&'t Column, usize, Token<'e>)> {
    let mut column = None;
    let mut places = Vec::new();
    let mut before = ["", ""];
    for token in tokens(&element[place_of_check(element)..]) {
        if token.is_identifier()
            && let Some(owner) = table.owner_of(&token.name())
        {
            column = Some((owner, token));
            before = ["sealed", ""];
            continue;
        }
        if let (["sealed", ","], Ok(place)) = (before, token.text().parse()) {
            places.push(place);
        }
        if !matches!(token, Token::Space(_)) {
            before = match before {
                ["sealed", ""] => ["sealed", token.text()],
                _ => ["", ""],
            };
        }
    }
    let (column, sealed) = column?;
    Some((column, check::number_by(&places)?, sealed))
}

/// Whether INVISIBLE stands behind DEFAULT in a column's definition: MariaDB 10.11 prints it in
/// front of that, 11.8 behind ON UPDATE. An invisible column has a default on both, the sealed one
/// too.
fn invisible_comes_late(physical: &str) -> bool {
    let place = |word: &str| {
        tokens(physical).position(|token| matches!(token, Token::Word(found) if found == word))
    };
    match (place("DEFAULT"), place("INVISIBLE")) {
        (Some(default), Some(invisible)) => default < invisible,
        _ => false,
    }
}

pub(crate) fn literal_default(column: &Column) -> Option<&DefaultLiteral> {
    match &column.default {
        Some(Default::Literal(literal)) => Some(literal),
        _ => None,
    }
}

/// The collation of the table, from the options behind the list.
pub(crate) fn table_collation(tail: &str, family: Family) -> Option<String> {
    let mut charset = None;
    for token in tokens(tail) {
        let Token::Word(word) = token else { continue };
        if let Some(name) = word.strip_prefix("COLLATE=") {
            return Some(name.to_owned());
        }
        if let Some(name) = word.strip_prefix("CHARSET=") {
            charset = Some(name);
        }
    }
    charset.map(|charset| default_collation(charset, family))
}

/// Whether the element is a CHECK of ours. No other CHECK can name a sealed column. The name of the
/// constraint tells nothing: MySQL makes up a new one in CREATE TABLE … LIKE.
fn is_our_check(element: &str, table: &Table) -> bool {
    tokens(element).any(|token| matches!(token, Token::Word("CHECK")))
        && tokens(element).any(|token| {
            token.is_identifier()
                && split_enc(&token.name()).is_some()
                && table.owner_of(&token.name()).is_some()
        })
}

/// Whether the element is the index on a column's grams.
fn is_our_index(element: &str, table: &Table) -> bool {
    (element.starts_with("FULLTEXT") || element.starts_with("KEY")) && names_gram(element, table)
}

/// Whether a text of the server's names a column of grams of the table.
pub(crate) fn names_gram(text: &str, table: &Table) -> bool {
    tokens(text).any(|token| token.is_identifier() && is_gram(&token.name(), table))
}

/// Whether a physical column of the table holds grams.
pub(crate) fn is_gram(name: &str, table: &Table) -> bool {
    table
        .owner_of(name)
        .and_then(Column::gram_name)
        .is_some_and(|gram| same_name(gram, name))
}

/// Whether an element of a table's definition is the mark of a column that stays plaintext.
fn is_plain_mark(element: &str) -> bool {
    let mut words = tokens(element).filter(|token| !matches!(token, Token::Space(_)));
    let (first, name) = (words.next(), words.next());
    if !matches!(first, Some(Token::Word("CONSTRAINT")))
        || !name.is_some_and(|name| is_our_constraint(&name.name()))
    {
        return false;
    }
    let rest = words.map(|token| token.text());
    let rest: Vec<&str> = rest.filter(|text| !matches!(*text, "(" | ")")).collect();
    rest.starts_with(&["CHECK", "1", "=", "1"])
}

/// The line of a foreign key in a table's definition with the actions that the server's key does
/// not have. `physical` is the line with the server's names.
fn with_actions(line: String, physical: &str, table: &Table) -> String {
    let mut rest = tokens(physical).skip_while(|token| !matches!(token, Token::Word("FOREIGN")));
    let first = rest.find(Token::is_identifier).map(|token| token.name());
    let owner = first.and_then(|name| table.owner_of(&name));
    let protection = owner.and_then(|column| column.protection.as_ref());
    let Some(actions) = protection.map(|p| p.actions).filter(|a| a.any()) else {
        return line;
    };
    let behind = line.rfind(')').map_or(line.len(), |at| at + 1);
    let update = line[behind..].find(" ON UPDATE ").map(|at| behind + at);
    let (front, told) = line.split_at(update.unwrap_or(line.len()));
    let mut out = front.to_owned();
    if actions.delete == KeyAction::SetNull {
        out.push_str(" ON DELETE SET NULL");
    }
    out.push_str(match actions.update {
        KeyAction::Server => told,
        KeyAction::Cascade => " ON UPDATE CASCADE",
        KeyAction::SetNull => " ON UPDATE SET NULL",
    });
    out
}

/// `text` with the names of companions replaced by the logical ones.
fn with_logical_names(text: &str, table: &Table) -> String {
    let mut out = String::with_capacity(text.len());
    // Of the other table of a foreign key only the names' form is known.
    let (mut after_references, mut in_other_table) = (false, false);
    for token in tokens(text) {
        match token {
            Token::Word("REFERENCES") => after_references = true,
            Token::Word("(") => in_other_table = after_references,
            Token::Word(")") => (after_references, in_other_table) = (false, false),
            _ => {}
        }
        let name = token.is_identifier().then(|| token.name());
        match name.and_then(|name| logical_name(&name, in_other_table, table)) {
            Some(name) => out.push_str(&token.quoted(&name)),
            None => out.push_str(token.text()),
        }
    }
    out
}

/// The logical name for a physical one, or for the name that the server made of one for an index
/// without a name. `None` if it stays as it is.
pub(crate) fn logical_name(name: &str, in_other_table: bool, table: &Table) -> Option<String> {
    if let Some(column) = table.owner_of(name) {
        return Some(column.name.clone());
    }
    if in_other_table {
        return split_companion(name).map(|(base, _, _)| base.to_owned());
    }
    // `k$ord_1a2b_2`
    let (front, number) = name.rsplit_once('_')?;
    if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    split_companion(front)?;
    Some(format!("{}_{number}", table.owner_of(front)?.name))
}

/// The parts of a CREATE TABLE statement.
pub(crate) struct Statement<'a> {
    /// Up to and with the opening parenthesis.
    pub(crate) head: &'a str,
    /// Between the commas, with the white space around them.
    pub(crate) elements: Vec<&'a str>,
    /// From the closing parenthesis on; the white space before it belongs to the last element.
    pub(crate) tail: &'a str,
}

impl<'a> Statement<'a> {
    pub(crate) fn cut(sql: &'a str) -> Option<Self> {
        let mut at = 0;
        let mut depth = 0usize;
        let mut start = None;
        let mut elements = Vec::new();
        for token in tokens(sql) {
            let end = at + token.text().len();
            match token.text() {
                "(" => {
                    depth += 1;
                    if depth == 1 {
                        start = Some(end);
                    }
                }
                "," if depth == 1 => {
                    elements.push(sql.get(start?..at)?);
                    start = Some(end);
                }
                ")" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        let element = sql.get(start?..at)?;
                        let kept = element.trim_end();
                        elements.push(kept);
                        let head_end = sql.find(elements.first()?)?;
                        return Some(Self {
                            head: sql.get(..head_end)?,
                            tail: sql.get(start? + kept.len()..)?,
                            elements,
                        });
                    }
                }
                _ => {}
            }
            at = end;
        }
        None
    }
}

/// A piece of a definition; the pieces' texts add up to it.
#[derive(Clone, Copy)]
pub(crate) enum Token<'a> {
    /// In backquotes or double quotes.
    Quoted(&'a str),
    /// A string literal.
    Literal(&'a str),
    /// Anything else between white space, parentheses and commas, or one of the latter two.
    Word(&'a str),
    Space(&'a str),
}

/// Words that begin an element that is no column. All are reserved, so a column of that name stands
/// in quotes.
const ELEMENT_WORDS: [&str; 9] = [
    "PRIMARY",
    "UNIQUE",
    "KEY",
    "FULLTEXT",
    "SPATIAL",
    "CONSTRAINT",
    "CHECK",
    "FOREIGN",
    "VECTOR",
];

impl<'a> Token<'a> {
    pub(crate) fn first(text: &'a str) -> Option<Self> {
        tokens(text).next()
    }

    pub(crate) fn text(&self) -> &'a str {
        let (Self::Quoted(text) | Self::Literal(text) | Self::Word(text) | Self::Space(text)) =
            self;
        text
    }

    /// Whether this can be the name of a column of ours. Bare names hold a `$`, as no keyword does.
    pub(crate) fn is_identifier(&self) -> bool {
        match self {
            Self::Quoted(_) => true,
            Self::Word(word) => {
                !ELEMENT_WORDS.contains(word)
                    && word.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
            }
            _ => false,
        }
    }

    /// The identifier.
    pub(crate) fn name(&self) -> String {
        let text = self.text();
        match self {
            Self::Quoted(_) => {
                let quote = &text[..1];
                let inner = text[1..].strip_suffix(quote).unwrap_or(&text[1..]);
                inner.replace(&quote.repeat(2), quote)
            }
            _ => text.to_owned(),
        }
    }

    /// Another identifier, quoted as this one; in backquotes if this one is bare, since the other
    /// may be reserved.
    pub(crate) fn quoted(&self, name: &str) -> String {
        let quote = match self {
            Self::Quoted(text) => &text[..1],
            _ => "`",
        };
        format!("{quote}{}{quote}", name.replace(quote, &quote.repeat(2)))
    }
}

pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '\'' | '"' | '`' => quoted_end(rest, first),
            '(' | ')' | ',' => 1,
            c if c.is_ascii_whitespace() => rest
                .find(|c: char| !c.is_ascii_whitespace())
                .unwrap_or(rest.len()),
            _ => rest
                .find(|c: char| {
                    c.is_ascii_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | ',')
                })
                .unwrap_or(rest.len()),
        };
        let (token, remainder) = rest.split_at(end);
        rest = remainder;
        Some(match first {
            '\'' => Token::Literal(token),
            '"' | '`' => Token::Quoted(token),
            c if c.is_ascii_whitespace() => Token::Space(token),
            _ => Token::Word(token),
        })
    })
}

/// Length of the quoted text at the front; all of it if the quote is never closed.
fn quoted_end(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '\'' {
            chars.next();
        } else if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return at + quote.len_utf8();
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use onionskin_value::SqlType;

    use super::*;
    use crate::{
        protection::{Bits, Capabilities, GramForm, PhysicalNames, Protection},
        set::Whole,
        table::KeyRole,
    };

    fn table() -> Table {
        let sql_type = SqlType::parse("int", None).expect("known");
        let capabilities = Capabilities {
            eq: true,
            range: false,
            like: false,
            join: Some("people".into()),
            bits: Bits::default(),
            tenant: None,
        };
        let column_id = [0x1a, 0x2b, 0, 0];
        Table {
            database: "d".into(),
            name: "t".into(),
            columns: vec![Column {
                name: "c".into(),
                sql_type: Some(sql_type),
                type_text: "int".into(),
                nullable: true,
                default: Some(Default::Literal(DefaultLiteral::Null)),
                auto_increment: false,
                refers_to_plaintext: false,
                on_update: false,
                generated: false,
                key: KeyRole::Multiple,
                protection: Some(Protection {
                    sql_type,
                    column_id,
                    key_id: 1,
                    suite: 1,
                    cell_version: 1,
                    names: PhysicalNames::new("c", column_id, &sql_type, &capabilities),
                    capabilities,
                    checks: Vec::new(),
                    actions: crate::KeyActions::default(),
                    grams: GramForm::Words,
                    whole: Whole::Unmarked,
                }),
                invisible: false,
                comment: String::new(),
                explicit_collation: false,
            }],
            table_id: Some([0; 8]),
            view: false,
            base: None,
            hidden_indexes: Vec::new(),
            guarded: Vec::new(),
            damaged: None,
        }
    }

    fn show(physical: &str) -> Result<String, SchemaError> {
        show_create_table(physical, &table(), Family::MySql)
    }

    #[test]
    fn keys_that_the_server_named_and_foreign_keys_are_mapped() {
        let physical = "CREATE TABLE `t` (\n  `c$enc` varbinary(39) DEFAULT NULL,\n  \
             `c$eq_1a2b` binary(16) DEFAULT NULL /*!80023 INVISIBLE */,\n  KEY `c$eq_1a2b` (`c$eq_1a2b`),\n  \
             KEY `c$eq_1a2b_2` (`c$eq_1a2b`,`x`),\n  CONSTRAINT `fk` FOREIGN KEY (`c$eq_1a2b`) \
             REFERENCES `p$eq_0000` (`id$eq_77ff`) ON DELETE CASCADE,\n  CONSTRAINT `t_chk_1` CHECK \
             (((length(`c$enc`) >= 35) and (`x` <> _utf8mb4')')))\n) ENGINE=InnoDB";
        let logical = "CREATE TABLE `t` (\n  `c` int DEFAULT NULL,\n  KEY `c` (`c`),\n  KEY `c_2` (`c`,`x`),\n  \
             CONSTRAINT `fk` FOREIGN KEY (`c`) REFERENCES `p$eq_0000` (`id`) ON DELETE CASCADE\n) ENGINE=InnoDB";
        assert_eq!(show(physical).as_deref(), Ok(logical));
        let ansi = |text: &str| text.replace('`', "\"");
        assert_eq!(show(&ansi(physical)), Ok(ansi(logical)));
    }

    #[test]
    fn invisible_stands_where_the_server_prints_it() {
        let mut table = table();
        table.columns[0].invisible = true;
        for (physical, logical) in [
            (
                "varbinary(39) INVISIBLE DEFAULT NULL COMMENT 'DEFAULT'",
                "int INVISIBLE DEFAULT NULL",
            ),
            (
                "varbinary(39) DEFAULT NULL INVISIBLE COMMENT 'x'",
                "int DEFAULT NULL INVISIBLE",
            ),
        ] {
            let physical = format!("CREATE TABLE `t` (\n  `c$enc` {physical}\n)");
            let logical = format!("CREATE TABLE `t` (\n  `c` {logical}\n)");
            let shown = show_create_table(&physical, &table, Family::MariaDb);
            assert_eq!(shown, Ok(logical));
        }
    }

    #[test]
    fn bare_identifiers_are_understood() {
        let physical = "CREATE TABLE t (\n  id int NOT NULL,\n  c$enc varbinary(39) DEFAULT NULL,\n  \
             c$eq_1a2b binary(16) DEFAULT NULL,\n  PRIMARY KEY (id),\n  KEY k (c$eq_1a2b)\n)";
        let logical = "CREATE TABLE t (\n  id int NOT NULL,\n  `c` int DEFAULT NULL,\n  PRIMARY KEY (id),\n  KEY k (`c`)\n)";
        assert_eq!(show(physical).as_deref(), Ok(logical));
    }

    #[test]
    fn what_is_no_definition_of_the_table_is_an_error() {
        for text in [
            "",
            "CREATE TABLE `t`",
            "CREATE TABLE `t` (",
            "CREATE TABLE `t` ()",
            "(,)",
            "CREATE TABLE `t` (`id` int)",
            "('",
        ] {
            assert!(
                matches!(show(text), Err(SchemaError::DefinitionNotUnderstood { .. })),
                "{text}"
            );
        }
    }
}
