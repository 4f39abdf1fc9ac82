//! The table behind a view: what a proxy has to know of it before rows are written through the
//! view.
//!
//! The server keeps the rows; what is the proxy's own are protected columns. Those that a view does
//! not show would have to be filled in all the same where they have defaults, and to be changed
//! where they have ON UPDATE. A view shows neither this nor the table's key.

use crate::{
    folding::same_name,
    show_create::{Token, tokens},
    table::{Column, Default, DefaultLiteral, KeyRole, Table},
};

/// What writing through a view has to know of the one table behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The view's columns that are the table's primary key; none if the view does not show all of
    /// it.
    pub key: Vec<usize>,
    /// The view's columns that are none of the table's.
    pub computed: Vec<usize>,
    /// Some column changes with its row: ON UPDATE.
    pub on_update: bool,
    /// A protected column with ON UPDATE.
    pub changed: Option<String>,
    /// A protected column that the view leaves out, and that a new row must have a value for.
    pub missing: Option<String>,
}

/// What a view selects: columns of one table, and what is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSource {
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// The view's columns, physical ones, and what the table calls them; `None` for what is
    /// computed.
    pub columns: Vec<(String, Option<String>)>,
}

/// Reads VIEW_DEFINITION of `information_schema.views`: ``select `d`.`t`.`a` AS `b`, … from `d`.`t`
/// …``. `None` if it selects from anything but one table.
pub fn view_source(definition: &str) -> Option<ViewSource> {
    let mut words = tokens(definition).filter(|token| !matches!(token, Token::Space(_)));
    if !is_word(&words.next()?, "select") {
        return None;
    }
    let mut columns = Vec::new();
    let (mut item, mut depth) = (Vec::new(), 0usize);
    loop {
        let token = words.next()?;
        match token {
            Token::Word("(") => depth += 1,
            Token::Word(")") => depth = depth.checked_sub(1)?,
            _ => {}
        }
        let from = depth == 0 && is_word(&token, "from");
        if from || (depth == 0 && matches!(token, Token::Word(","))) {
            columns.push(selected(&item)?);
            item.clear();
            if from {
                break;
            }
            continue;
        }
        item.push(token);
    }
    let rest: Vec<Token<'_>> = words.collect();
    let (named, behind) = rest.split_at_checked(3)?;
    let [Token::Quoted(_), Token::Word("."), Token::Quoted(_)] = named else {
        return None;
    };
    let behind = match behind {
        [Token::Quoted(_), behind @ ..] => behind,
        behind => behind,
    };
    let alone = |token: &Token<'_>| is_word(token, "where") || is_word(token, "order");
    if !behind.first().is_none_or(alone) {
        return None;
    }
    Some(ViewSource {
        database: named[0].name(),
        table: named[2].name(),
        columns,
    })
}

fn is_word(token: &Token<'_>, word: &str) -> bool {
    matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word))
}

/// An item of the select list: its name, and the column that it is, if it is one.
fn selected(item: &[Token<'_>]) -> Option<(String, Option<String>)> {
    let (front, [word, name @ Token::Quoted(_)]) = item.split_last_chunk::<2>()? else {
        return None;
    };
    if !is_word(word, "as") {
        return None;
    }
    let column = match front {
        [
            Token::Quoted(_),
            Token::Word("."),
            column @ Token::Quoted(_),
        ]
        | [
            Token::Quoted(_),
            Token::Word("."),
            Token::Quoted(_),
            Token::Word("."),
            column @ Token::Quoted(_),
        ] => Some(column.name()),
        _ => None,
    };
    Some((name.name(), column))
}

impl Base {
    /// What is to be known of `table`, which `view` selects from as `source` says. `None` if they
    /// do not belong together.
    pub fn of(view: &Table, source: &ViewSource, table: &Table) -> Option<Base> {
        let apart = table.view || table.damaged.is_some() || view.damaged.is_some();
        if apart || table.table_id != view.table_id {
            return None;
        }
        // for each of the view's columns, its place in the table
        let mut places = Vec::new();
        for column in &view.columns {
            let physical = column.enc_name().unwrap_or(&column.name);
            let (_, of_table) = source
                .columns
                .iter()
                .find(|(name, _)| same_name(name, physical))?;
            let place = match of_table {
                None => None,
                Some(name) => Some(place(table, name)?),
            };
            let id = |column: &Column| column.protection.as_ref().map(|p| p.column_id);
            if id(column) != place.and_then(|place| id(&table.columns[place])) {
                return None;
            }
            places.push(place);
        }
        let shown = |place: usize| places.iter().position(|other| *other == Some(place));
        let all = 0..table.columns.len();
        let is_key = |place: &usize| table.columns[*place].key == KeyRole::Primary;
        let key: Option<Vec<usize>> = all.clone().filter(is_key).map(shown).collect();
        let left_out = all.filter(|place| shown(*place).is_none());
        let mut left_out = left_out.map(|place| &table.columns[place]);
        let mut protected = table.protected_columns().map(|(column, _)| column);
        let path = |column: &Column| format!("{}.{}", table.name, column.name);
        Some(Base {
            key: key.unwrap_or_default(),
            computed: (0..places.len()).filter(|n| places[*n].is_none()).collect(),
            on_update: table.columns.iter().any(|column| column.on_update),
            changed: protected.find(|column| column.on_update).map(path),
            missing: left_out.find(|column| is_filled(column)).map(path),
        })
    }
}

fn place(table: &Table, physical: &str) -> Option<usize> {
    let is_it = |column: &Column| same_name(column.enc_name().unwrap_or(&column.name), physical);
    table.columns.iter().position(is_it)
}

/// Whether the column is protected, and NULL will not do in a new row.
fn is_filled(column: &Column) -> bool {
    let has_default = matches!(
        column.default,
        Some(Default::Literal(
            DefaultLiteral::Value(_) | DefaultLiteral::Expression(_)
        ))
    );
    column.protection.is_some() && (has_default || !column.nullable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_one_table_are_understood() {
        let text = "select `app`.`user`.`name$enc` AS `n$enc`,`u`.`id` AS `id`,(`u`.`id` + 1) AS `next`,NULL AS `n$of_name` \
             from `app`.`user` `u` where (`u`.`id` > 1)";
        let source = view_source(text).expect("a view of one table");
        assert_eq!(
            (source.database.as_str(), source.table.as_str()),
            ("app", "user")
        );
        let column = |name: &str, of: Option<&str>| (name.to_owned(), of.map(str::to_owned));
        assert_eq!(
            source.columns,
            [
                column("n$enc", Some("name$enc")),
                column("id", Some("id")),
                column("next", None),
                column("n$of_name", None),
            ]
        );
        assert!(view_source("select `a`.`t`.`x` AS `x` from `a`.`t`").is_some());
        assert!(
            view_source("select `a`.`t`.`x` AS `x` from `a`.`t` order by `a`.`t`.`x`").is_some()
        );
    }

    #[test]
    fn others_are_not() {
        for text in [
            "",
            "select",
            "select `a`.`t`.`x` AS `x`",
            "select `a`.`t`.`x` from `a`.`t`",
            "select `a`.`t`.`x` AS `x` from (`a`.`t` join `a`.`u`)",
            "select `a`.`t`.`x` AS `x` from `a`.`t` join `a`.`u` where 1",
            "select `a`.`t`.`x` AS `x` from `a`.`t` group by `a`.`t`.`x`",
            "select `a`.`t`.`x` AS `x` from `a`.`t` union select 1",
            "with `c` as (select 1) select `x`.`x` AS `x` from `x`",
        ] {
            assert_eq!(view_source(text), None, "{text}");
        }
    }
}
