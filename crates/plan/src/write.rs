//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`.
//!
//! A sealed cell is never equal to another one of the same value. Where the server counts
//! changed rows, an assignment that changes nothing must not look like a change: columns with
//! exact tokens are assigned through `IF(token <=> new, old cell, new cell)`, others are read
//! and compared first (tier 2).

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Table, TokenKind};
use onionskin_value::Family;
use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, Insert, ObjectName,
    OnInsert, SetExpr, TableFactor, TableObject, Update,
};

use crate::errors::{self, Refusal};
use crate::lex::TokenKind as LexKind;
use crate::plan::{
    Action, ColumnUse, NewValue, Piece, Purpose, RowAssign, RowUpdate, Slot, Source, Text, Upsert,
};
use crate::planner::{Known, Planned, Planner, TextBuilder, quoted, refuse};
use crate::query::Mode;
use crate::scope::{self, Scope, position};

/// A column of an `INSERT`'s list.
enum Target {
    Plain(String),
    Protected(ColumnUse),
}

/// What a new row's protected column consists of on the server: the cell, then its tokens.
fn physical(column: &ColumnUse) -> Vec<(&str, Purpose)> {
    let c = column.column();
    let mut parts = vec![(column.sealed(), Purpose::Seal)];
    parts.extend(c.eq_name().map(|n| (n, Purpose::StoreEquality)));
    parts.extend(c.ord_name().map(|n| (n, Purpose::StoreOrder)));
    parts
}

impl Planner<'_> {
    pub(crate) fn insert(&mut self, insert: &Insert) -> Planned<Action> {
        let Insert {
            insert_token: _,
            optimizer_hints: _,
            or,
            ignore,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword,
            on,
            returning,
            output,
            replace_into,
            priority: _,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        if or.is_some()
            || *overwrite
            || partitioned.is_some()
            || !after_columns.is_empty()
            || *has_table_keyword
            || returning.is_some()
            || output.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || multi_table_insert_type.is_some()
            || !multi_table_into_clauses.is_empty()
            || !multi_table_when_clauses.is_empty()
            || multi_table_else_clause.is_some()
            || table_alias.is_some()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of INSERT");
        }
        let TableObject::TableName(name) = table else {
            return refuse(&errors::NOT_UNDERSTOOD, "the target of INSERT");
        };
        let (database, table_name, known) = self.table(name)?;
        let table = match known {
            Known::Table(table) => Some(table),
            _ => None,
        };
        let mut scope = Scope::inside(None);
        scope.sources.push(scope::Source {
            name: table_name,
            database,
            table: table.clone(),
            exports: None,
        });
        let Some(table) = table.filter(|t| t.is_protected()) else {
            // the target is plain; protected tables may be read from, but not handed on
            let Some(query) = source else {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "INSERT … SET with a protected table",
                );
            };
            for column in columns {
                self.judge_parts(column)?;
            }
            self.query(query, None, Mode::Nested)?;
            if on.is_some() {
                return refuse(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE");
            }
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        };
        if let Some(alias) = insert_alias {
            if alias.col_aliases.as_ref().is_some_and(|c| !c.is_empty()) {
                return refuse(&errors::NOT_UNDERSTOOD, "column aliases of the new row");
            }
            self.judge_parts(&alias.row_alias)?;
        }

        let mut upsert = Upsert {
            target: self.insert_target(name)?,
            rows: Vec::new(),
            folded: None,
            columns: Vec::new(),
            constants: Vec::new(),
        };
        if !assignments.is_empty() {
            self.insert_set(assignments, &table, *ignore, &mut upsert)?;
        } else {
            let Some(query) = source else {
                return refuse(&errors::NOT_UNDERSTOOD, "INSERT without values");
            };
            let plain_query = query.with.is_none()
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.locks.is_empty();
            let SetExpr::Values(values) = query.body.as_ref() else {
                return refuse(
                    &errors::NOT_CONSTANT,
                    "INSERT … SELECT into a protected table",
                );
            };
            if !plain_query || values.explicit_row {
                return refuse(&errors::NOT_UNDERSTOOD, "VALUES ROW");
            }
            let count = values.rows.len();
            self.insert_rows(name, columns, count, &table, *ignore, &mut upsert)?;
            // plain expressions in rows must not read protected columns
            for row in &values.rows {
                for e in &row.content {
                    if self.constant(e).is_none() && !is_default(e) {
                        self.scan(e, &scope)?;
                    }
                }
            }
        }
        match on {
            None if *replace_into => {
                // the whole row counts
                let seals = upsert.rows.iter().flatten().flat_map(|(_, text)| text);
                let sealed = |piece: &Piece| match piece {
                    Piece::Slot(slot) if slot.purpose == Purpose::Seal => Some(slot.column),
                    _ => None,
                };
                upsert.columns = seals.filter_map(sealed).collect();
            }
            None => {}
            Some(OnInsert::DuplicateKeyUpdate(list)) => {
                let alias = insert_alias.as_ref().map(|a| a.row_alias.to_string());
                self.on_duplicate(list, &scope, &table, alias.as_deref(), &mut upsert)?;
            }
            Some(_) => return refuse(&errors::NOT_UNDERSTOOD, "ON CONFLICT"),
        }
        upsert.columns.sort_unstable();
        upsert.columns.dedup();
        if !upsert.columns.is_empty() || !upsert.constants.is_empty() {
            self.upsert = Some(upsert);
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result: None,
        })
    }

    fn judge_parts(&mut self, name: &ObjectName) -> Planned<Vec<String>> {
        let mut parts = Vec::new();
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return refuse(&errors::NOT_UNDERSTOOD, "a name");
            };
            self.judge(ident)?;
            parts.push(ident.value.clone());
        }
        Ok(parts)
    }

    fn target(&mut self, column: &str, table: &Arc<Table>) -> Planned<Target> {
        let Some(index) = position(table, column) else {
            return refuse(&errors::UNKNOWN_COLUMN, format!("'{column}'"));
        };
        let found = &table.columns[index];
        Ok(match found.protection {
            Some(_) => Target::Protected(ColumnUse {
                table: Arc::clone(table),
                index,
            }),
            None => Target::Plain(found.name.clone()),
        })
    }

    /// Protected columns that the statement leaves out and that have a default to fill in.
    fn omitted(&self, named: &[Target], table: &Arc<Table>, ignore: bool) -> Vec<ColumnUse> {
        // MySQL finds a missing default after wrong values, and by itself
        let settings = self.request.settings;
        let ours = settings.family == Family::MariaDb || !settings.strict || ignore;
        let given = |index: usize| {
            named
                .iter()
                .any(|t| matches!(t, Target::Protected(c) if c.index == index))
        };
        (0..table.columns.len())
            .filter(|&i| table.columns[i].protection.is_some() && !given(i))
            .filter(|&i| {
                // NOT NULL without a default: an error, or the type's own default, which only
                // we can seal; which of them is decided when the value is bound
                let c = &table.columns[i];
                c.default.is_some() || (!c.nullable && ours)
            })
            .map(|index| ColumnUse {
                table: Arc::clone(table),
                index,
            })
            .collect()
    }

    /// The table of an `INSERT` as the statement names it.
    fn insert_target(&self, name: &ObjectName) -> Planned<String> {
        let ends = (
            name.0.first().and_then(|p| p.as_ident()),
            name.0.last().and_then(|p| p.as_ident()),
        );
        let (Some(first), Some(last)) = ends else {
            return refuse(&errors::NOT_UNDERSTOOD, "the target of INSERT");
        };
        let first = self.token_at(self.offset(first.span))?;
        let last = self.token_at(self.offset(last.span))?;
        let text = &self.sql()[self.tokens[first].start..self.tokens[last].end];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn insert_rows(
        &mut self,
        name: &ObjectName,
        columns: &[ObjectName],
        ast_rows: usize,
        table: &Arc<Table>,
        ignore: bool,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let Some(last) = name.0.last().and_then(|p| p.as_ident()) else {
            return refuse(&errors::NOT_UNDERSTOOD, "the target of INSERT");
        };
        let name_token = self.token_at(self.offset(last.span))?;
        let mut targets = Vec::new();
        let mut at = name_token + 1;
        let list_range = if self.tokens.get(at).is_some_and(|t| t.is(b'(')) {
            let close = self.closing(at)?;
            for column in columns {
                let parts = self.judge_parts(column)?;
                let column = parts.last().cloned().unwrap_or_default();
                targets.push(self.target(&column, table)?);
            }
            let range = self.tokens[at].start..self.tokens[close].end;
            at = close + 1;
            range
        } else {
            for column in table.columns.iter().filter(|c| !c.invisible) {
                targets.push(self.target(&column.name, table)?);
            }
            let end = self.tokens[name_token].end;
            end..end
        };
        let omitted = self.omitted(&targets, table, ignore);
        let mut list = String::from(" (");
        let all = targets.iter().chain([]);
        let mut first = true;
        let mut push = |list: &mut String, name: &str| {
            if !std::mem::take(&mut first) {
                list.push(',');
            }
            list.push_str(&quoted(name));
        };
        for target in all {
            match target {
                Target::Plain(name) => push(&mut list, name),
                Target::Protected(c) => physical(c).iter().for_each(|(n, _)| push(&mut list, n)),
            }
        }
        for column in &omitted {
            physical(column)
                .iter()
                .for_each(|(n, _)| push(&mut list, n));
        }
        list.push_str(") ");
        self.edit_sql(list_range, list);

        let keyword = |p: &Self, at: usize| {
            p.tokens
                .get(at)
                .is_some_and(|t| t.is_word(p.sql(), "values") || t.is_word(p.sql(), "value"))
        };
        if !keyword(self, at) {
            return refuse(
                &errors::NOT_UNDERSTOOD,
                "a clause between the columns and VALUES",
            );
        }
        at += 1;
        let folded = self
            .request
            .template
            .rows
            .filter(|r| r.count > 1 || ast_rows == 1);
        if let Some(rows) = folded {
            if self.tokens.get(at).map(|t| t.start) != Some(rows.first.0) || ast_rows != 1 {
                return refuse(&errors::INTERNAL, "the folded rows");
            }
            let cells = self.row(at, &targets, &omitted, rows.first_literal, 1, ignore)?;
            let row = in_parentheses(&cells);
            upsert.rows.push(cells);
            upsert.folded = Some((rows.first_literal, rows.per_row));
            let piece = Piece::Rows {
                row,
                first_literal: rows.first_literal,
                per_row: rows.per_row,
            };
            self.edit(rows.first.0..rows.end, vec![piece]);
            return Ok(());
        }
        for n in 1..=ast_rows {
            let close = self.closing(at)?;
            let range = self.tokens[at].start..self.tokens[close].end;
            let cells = self.row(at, &targets, &omitted, 0, n, ignore)?;
            self.edit(range, in_parentheses(&cells));
            upsert.rows.push(cells);
            at = close + 2;
        }
        Ok(())
    }

    /// The token that closes the parenthesis at `open`.
    pub(crate) fn closing(&self, open: usize) -> Planned<usize> {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            if token.is(b'(') {
                depth += 1;
            } else if token.is(b')') {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Ok(i);
                }
            }
            if depth == 0 {
                break;
            }
        }
        refuse(&errors::NOT_UNDERSTOOD, "parentheses")
    }

    /// One row's cells by the names of their physical columns; literal indexes are counted from `base`.
    fn row(
        &mut self,
        open: usize,
        targets: &[Target],
        omitted: &[ColumnUse],
        base: usize,
        number: usize,
        ignore: bool,
    ) -> Planned<Vec<(String, Text)>> {
        let close = self.closing(open)?;
        let mut cells = self.split_commas(open + 1..close);
        if close == open + 1 {
            cells.clear();
        }
        let mut row = Vec::new();
        if cells.is_empty() && !targets.is_empty() {
            // `VALUES ()`: every column gets its default
            for target in targets {
                match target {
                    Target::Plain(name) => row.push((name.clone(), default_text())),
                    Target::Protected(column) => self.cells_of(column, Source::Default, &mut row),
                }
            }
        } else if cells.len() != targets.len() {
            return refuse(&errors::COLUMN_COUNT, format!("row {number}"));
        }
        for (cell, target) in cells.iter().zip(targets) {
            match target {
                Target::Plain(name) => {
                    let mut text = TextBuilder::default();
                    let range = self.bytes_of_tokens(cell);
                    self.copy(range, &mut text, base);
                    row.push((name.clone(), text.finish()));
                }
                Target::Protected(column) => {
                    let source = self
                        .cell_source(cell, base)
                        .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
                    let settings = self.request.settings;
                    let c = column.column();
                    let required = c.default.is_none() && !c.nullable;
                    let lenient = ignore || !settings.strict;
                    if source == Source::Default
                        && required
                        && lenient
                        && settings.family == Family::MySql
                    {
                        // a warning for every row, where a column that is left out gives one
                        return refuse(&errors::VALUE, column.path());
                    }
                    self.cells_of(column, source, &mut row);
                }
            }
        }
        for column in omitted {
            self.cells_of(column, Source::Default, &mut row);
        }
        Ok(row)
    }

    /// The cells of a protected column of a new row.
    fn cells_of(&mut self, column: &ColumnUse, source: Source, row: &mut Vec<(String, Text)>) {
        for (name, purpose) in physical(column) {
            let slot = self.slot(column, purpose, source);
            row.push((name.to_string(), vec![slot]));
        }
    }

    fn bytes_of_tokens(&self, tokens: &Range<usize>) -> Range<usize> {
        match (self.tokens.get(tokens.start), tokens.end.checked_sub(1)) {
            (Some(first), Some(last)) if tokens.start < tokens.end => {
                first.start..self.tokens[last].end
            }
            _ => 0..0,
        }
    }

    /// A constant by its tokens: `'x'`, `-5`, `NULL`, `DEFAULT`, `TRUE`.
    fn cell_source(&self, cell: &Range<usize>, base: usize) -> Option<Source> {
        let tokens = self.tokens.get(cell.clone())?;
        let literal = |token: &crate::lex::Token, negative| {
            let index = self.literal_index(token.start)?.checked_sub(base)?;
            Some(Source::Literal { index, negative })
        };
        let sql = self.sql();
        match tokens {
            [t] => match t.kind {
                LexKind::Literal(_) => literal(t, false),
                LexKind::Word if t.is_word(sql, "null") => Some(Source::Null),
                LexKind::Word if t.is_word(sql, "default") => Some(Source::Default),
                LexKind::Word if t.is_word(sql, "true") => Some(Source::Bool(true)),
                LexKind::Word if t.is_word(sql, "false") => Some(Source::Bool(false)),
                _ => None,
            },
            [sign, t] if sign.is(b'-') || sign.is(b'+') => {
                use crate::lex::LiteralKind::{Decimal, Float, Integer};
                match t.kind {
                    LexKind::Literal(Integer | Decimal | Float) => literal(t, sign.is(b'-')),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `INSERT … SET a = 1, k = 2`.
    fn insert_set(
        &mut self,
        assignments: &[Assignment],
        table: &Arc<Table>,
        ignore: bool,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let parts = self.assignment_tokens(assignments.len())?;
        let mut targets = Vec::new();
        let mut row = Vec::new();
        for (assignment, tokens) in assignments.iter().zip(&parts) {
            let name = self.assigned_name(assignment)?;
            let target = self.target(&name, table)?;
            if let Target::Protected(column) = &target {
                let value = self.value_tokens(tokens)?;
                let source = self
                    .cell_source(&value, 0)
                    .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
                let text = self.assign_text(column, source, false);
                let range = self.bytes_of_tokens(tokens);
                self.edit(range, text);
                self.cells_of(column, source, &mut row);
            } else {
                let value = self.value_tokens(tokens)?;
                row.push((name, self.original(self.bytes_of_tokens(&value))));
                let empty = Scope::inside(None);
                if self.constant(&assignment.value).is_none() && !is_default(&assignment.value) {
                    self.scan(&assignment.value, &empty)?;
                }
            }
            targets.push(target);
        }
        let omitted = self.omitted(&targets, table, ignore);
        let end = parts.last().map_or(0, |p| self.bytes_of_tokens(p).end);
        let mut text = Vec::new();
        for column in &omitted {
            text.push(Piece::Sql(b", ".to_vec()));
            text.extend(self.assign_text(column, Source::Default, false));
            self.cells_of(column, Source::Default, &mut row);
        }
        upsert.rows.push(row);
        if !text.is_empty() {
            self.edit(end..end, text);
        }
        Ok(())
    }

    /// `k$enc = …, k$ord = …`. With `keep`, the old cell stays when the value is the same.
    fn assign_text(&mut self, column: &ColumnUse, source: Source, keep: bool) -> Text {
        let mut text = Vec::new();
        let token = column.column().equality_column().map(|(name, kind)| {
            let purpose = match kind {
                TokenKind::Order => Purpose::StoreOrder,
                TokenKind::Equality => Purpose::StoreEquality,
            };
            (quoted(name), purpose)
        });
        for (i, (name, purpose)) in physical(column).into_iter().enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            let slot = self.slot(column, purpose, source);
            match (&token, purpose, keep) {
                (Some((token, token_purpose)), Purpose::Seal, true) => {
                    let token_slot = self.slot(column, *token_purpose, source);
                    let name = quoted(name);
                    text.push(Piece::Sql(format!("{name} = IF({token} <=> ").into_bytes()));
                    text.push(token_slot);
                    text.push(Piece::Sql(format!(", {name}, ").into_bytes()));
                    text.push(slot);
                    text.push(Piece::Sql(b")".to_vec()));
                }
                _ => {
                    text.push(Piece::Sql(
                        format!("{separator}{} = ", quoted(name)).into_bytes(),
                    ));
                    text.push(slot);
                }
            }
        }
        text
    }

    fn on_duplicate(
        &mut self,
        list: &[Assignment],
        scope: &Scope,
        table: &Arc<Table>,
        alias: Option<&str>,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let from = self
            .tokens
            .iter()
            .rposition(|t| t.is_word(self.sql(), "duplicate"))
            .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE"))?;
        let end = self
            .tokens
            .iter()
            .rposition(|t| !t.is(b';'))
            .map_or(0, |i| i + 1);
        let parts = self.split_commas(from + 3..end);
        if parts.len() != list.len() || from < 2 {
            return refuse(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE");
        }
        let mut has_constants = false;
        for (assignment, tokens) in list.iter().zip(&parts) {
            let name = self.assigned_name(assignment)?;
            let column = match self.target(&name, table)? {
                Target::Protected(column) => column,
                Target::Plain(_) => {
                    self.duplicate_value(&assignment.value, scope, alias)?;
                    continue;
                }
            };
            let exact = column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some();
            let range = self.bytes_of_tokens(tokens);
            if let Some(new_row) = self.new_row(&assignment.value, &column, alias)? {
                let index = self.column_index(&column);
                let is_left_out = |piece: &Piece| matches!(piece, Piece::Slot(slot) if slot.column == index && slot.source == Source::Default);
                let mut given = upsert.rows.iter().flatten().flat_map(|(_, text)| text);
                let required = column.column().default.is_none() && !column.column().nullable;
                if required && given.any(is_left_out) {
                    // servers take the column for given then, and store what they store without strict mode
                    return refuse(&errors::VALUE, column.path());
                }
                let token = column.column().equality_column().map(|(n, _)| quoted(n));
                let mut text = String::new();
                let mut calls = 0;
                let mut new_row = |name: &str| {
                    calls += 1;
                    new_row(name)
                };
                for (i, (name, purpose)) in physical(&column).into_iter().enumerate() {
                    let name = quoted(name);
                    if i > 0 {
                        text.push_str(", ");
                    }
                    match (&token, purpose) {
                        (Some(token), Purpose::Seal) if exact => text.push_str(&format!(
                            "{name} = IF({token} <=> {}, {name}, {})",
                            new_row(token),
                            new_row(&name)
                        )),
                        _ => text.push_str(&format!("{name} = {}", new_row(&name))),
                    }
                }
                if matches!(assignment.value, Expr::Function(_)) {
                    self.surplus_values += calls - 1;
                }
                self.edit_sql(range, text);
                if !exact {
                    upsert.columns.push(self.column_index(&column));
                }
                continue;
            }
            let value = self.value_tokens(tokens)?;
            let source = self
                .cell_source(&value, 0)
                .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
            has_constants = true;
            let mut text = self.assign_text(&column, source, exact);
            if !exact {
                // the text begins with the assignment of the cell
                let name = quoted(column.sealed());
                let slot = Slot {
                    column: self.column_index(&column),
                    purpose: Purpose::Seal,
                    source,
                };
                let kept = Piece::Slot(Slot {
                    purpose: Purpose::Kept,
                    ..slot
                });
                let head = [
                    Piece::Sql(format!("{name} = IF(LOCATE({name}, ").into_bytes()),
                    kept,
                    Piece::Sql(format!(") > 0, {name}, ").into_bytes()),
                    Piece::Slot(slot),
                    Piece::Sql(b")".to_vec()),
                ];
                text.splice(..2, head);
                upsert.constants.push(slot);
            }
            self.edit(range, text);
        }
        if has_constants {
            self.insert_only = Some(self.render(0..self.tokens[from - 2].end)?);
        }
        Ok(())
    }

    /// A plain column's new value; the new row's plain columns may be read in it.
    fn duplicate_value(&mut self, e: &Expr, scope: &Scope, alias: Option<&str>) -> Planned<()> {
        if is_default(e) {
            return Ok(());
        }
        let Some(alias) = alias else {
            return self.scan(e, scope);
        };
        let mut with_alias = Scope::inside(None);
        with_alias.sources = scope.sources.clone();
        for source in &scope.sources {
            with_alias.sources.push(scope::Source {
                name: alias.to_string(),
                ..source.clone()
            });
        }
        // bare names mean the old row's columns, which the first source resolves
        if let Expr::CompoundIdentifier(_) = e {
            self.scan(e, &with_alias)
        } else {
            self.scan(e, scope)
        }
    }

    /// `VALUES(k)` or `alias.k` as the new value of `k` itself: how to name the new row's
    /// physical columns.
    #[allow(clippy::type_complexity)] // a formatter of one argument
    fn new_row(
        &mut self,
        e: &Expr,
        column: &ColumnUse,
        alias: Option<&str>,
    ) -> Planned<Option<Box<dyn Fn(&str) -> String>>> {
        let named =
            |ident: &sqlparser::ast::Ident| ident.value.eq_ignore_ascii_case(&column.column().name);
        match e {
            Expr::Function(f) if matches!(Self::function_name(f).as_str(), "values" | "value") => {
                match Self::single_argument(f) {
                    Some((Expr::Identifier(ident), false)) if named(ident) => {
                        let call = Self::function_name(f);
                        Ok(Some(Box::new(move |name| format!("{call}({name})"))))
                    }
                    _ => refuse(&errors::NOT_CONSTANT, column.path()),
                }
            }
            Expr::CompoundIdentifier(parts) => match (parts.as_slice(), alias) {
                ([row, ident], Some(alias))
                    if row.value.eq_ignore_ascii_case(alias.trim_matches('`')) && named(ident) =>
                {
                    let row = quoted(&row.value);
                    Ok(Some(Box::new(move |name| format!("{row}.{name}"))))
                }
                _ => refuse(&errors::NOT_CONSTANT, column.path()),
            },
            _ => Ok(None),
        }
    }

    fn assigned_name(&mut self, assignment: &Assignment) -> Planned<String> {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return refuse(&errors::NOT_UNDERSTOOD, "an assignment to several columns");
        };
        let parts = self.judge_parts(name)?;
        Ok(parts.last().cloned().unwrap_or_default())
    }

    /// The token ranges of the assignments behind `SET`.
    fn assignment_tokens(&self, count: usize) -> Planned<Vec<Range<usize>>> {
        let sql = self.sql();
        let bad = || Refusal::new(&errors::NOT_UNDERSTOOD, "SET");
        let set = self
            .tokens
            .iter()
            .position(|t| t.is_word(sql, "set"))
            .ok_or_else(bad)?;
        let mut depth = 0usize;
        let mut end = self.tokens.len();
        for (i, t) in self.tokens.iter().enumerate().skip(set + 1) {
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth = depth.saturating_sub(1);
            } else if depth == 0
                && (t.is(b';')
                    || ["where", "order", "limit", "on", "as"]
                        .iter()
                        .any(|w| t.is_word(sql, w)))
            {
                end = i;
                break;
            }
        }
        let parts = self.split_commas(set + 1..end);
        if parts.len() == count {
            Ok(parts)
        } else {
            Err(bad())
        }
    }

    /// The tokens behind the first `=` of an assignment.
    fn value_tokens(&self, assignment: &Range<usize>) -> Planned<Range<usize>> {
        let tokens = self.tokens.get(assignment.clone()).unwrap_or_default();
        match tokens.iter().position(|t| t.is(b'=')) {
            Some(i) => Ok(assignment.start + i + 1..assignment.end),
            None => refuse(&errors::NOT_UNDERSTOOD, "an assignment"),
        }
    }

    pub(crate) fn update(&mut self, update: &Update) -> Planned<Action> {
        let Update {
            update_token: _,
            optimizer_hints: _,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
        } = update;
        if from.is_some() || returning.is_some() || output.is_some() || or.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of UPDATE");
        }
        let mut scope = Scope::inside(None);
        self.factor(&table.relation, &mut scope, None)?;
        for join in &table.joins {
            self.factor(&join.relation, &mut scope, None)?;
        }
        self.joins(table, &scope)?;
        if let Some(condition) = selection {
            self.scan(condition, &scope)?;
        }
        for key in order_by {
            self.order_by_key(&key.expr, &scope)?;
        }
        if let Some(limit) = limit
            && self.constant(limit).is_none()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "LIMIT");
        }

        let parts = self.assignment_tokens(assignments.len())?;
        let mut protected: Vec<(ColumnUse, NewValue, usize)> = Vec::new();
        let mut plain = Vec::new();
        for (i, assignment) in assignments.iter().enumerate() {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return refuse(&errors::NOT_UNDERSTOOD, "an assignment to several columns");
            };
            let idents: Vec<_> = name
                .0
                .iter()
                .filter_map(|p| p.as_ident().cloned())
                .collect();
            self.judge_parts(name)?;
            match scope.resolve(&idents)? {
                scope::Resolved::Unknown => {
                    let name = idents.last().map(|i| i.value.as_str()).unwrap_or_default();
                    return refuse(&errors::UNKNOWN_COLUMN, format!("'{name}'"));
                }
                scope::Resolved::Plain => {
                    if idents.len() == 1 {
                        self.column_of(&Expr::Identifier(idents[0].clone()), &scope)?;
                    }
                    if !is_default(&assignment.value) {
                        self.scan(&assignment.value, &scope)?;
                    }
                    plain.push(i);
                }
                scope::Resolved::Protected(column) => {
                    let value = self.new_value(&assignment.value, &parts[i], &column, &scope)?;
                    protected.push((column, value, i));
                }
            }
        }
        if protected.is_empty() {
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        }
        if !table.joins.is_empty() {
            return refuse(&errors::NOT_UNDERSTOOD, "an UPDATE of several tables");
        }
        let found_rows = self.request.settings.found_rows;
        let simple = protected.iter().all(|(column, value, _)| {
            let exact = column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some();
            matches!(value, NewValue::Constant(_)) && (found_rows || exact)
        });
        // an ON UPDATE column must not notice an assignment that changes nothing
        let watched = protected
            .iter()
            .any(|(c, ..)| c.table.columns.iter().any(|c| c.on_update));
        let all_exact = protected.iter().all(|(column, ..)| {
            column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some()
        });
        if simple && (all_exact || !watched) {
            self.probe = Some(self.update_probe(&parts, limit.is_some())?);
            for (column, value, i) in &protected {
                let NewValue::Constant(source) = value else {
                    return refuse(&errors::INTERNAL, "an assignment");
                };
                let range = self.bytes_of_tokens(&parts[*i]);
                let text = self.assign_text(column, *source, all_exact);
                self.edit(range, text);
            }
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        }
        let single = limit.is_none()
            && order_by.is_empty()
            && selection
                .as_ref()
                .is_some_and(|c| self.pins_key(c, &protected[0].0, &scope));
        self.row_update(&table.relation, protected, &plain, &parts, single)
    }

    /// `SELECT 1 FROM target WHERE … LIMIT 1`, or with the statement's own limit.
    fn update_probe(&mut self, parts: &[Range<usize>], limited: bool) -> Planned<Text> {
        let sql = self.sql();
        let set = self
            .tokens
            .iter()
            .position(|t| t.is_word(sql, "set"))
            .unwrap_or(0);
        let first = 1 + self.tokens[1..set]
            .iter()
            .take_while(|t| is_update_modifier(sql, t))
            .count();
        let mut text = TextBuilder::default();
        text.sql(b"SELECT 1 FROM ");
        let target = self.tokens[first].start..self.tokens[set].start;
        self.copy(target, &mut text, 0);
        text.sql(b" ");
        let tail = parts.last().map_or(0, |p| p.end);
        let end = self
            .tokens
            .iter()
            .rposition(|t| !t.is(b';'))
            .map_or(0, |i| i + 1);
        if tail < end {
            let range = self.tokens[tail].start..self.tokens[end - 1].end;
            for piece in self.render(range)? {
                text.piece(piece);
            }
        }
        if !limited {
            text.sql(b" LIMIT 1");
        }
        Ok(text.finish())
    }

    /// Whether a condition compares every column of the primary key with a constant.
    fn pins_key(&self, condition: &Expr, column: &ColumnUse, scope: &Scope) -> bool {
        fn conjuncts<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
            match e {
                Expr::Nested(inner) => conjuncts(inner, out),
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::And,
                    right,
                } => {
                    conjuncts(left, out);
                    conjuncts(right, out);
                }
                other => out.push(other),
            }
        }
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let mut keys = column.table.primary_key().peekable();
        keys.peek().is_some()
            && keys.all(|key| {
                parts.iter().any(|part| {
                    let Expr::BinaryOp {
                        left,
                        op: BinaryOperator::Eq,
                        right,
                    } = part
                    else {
                        return false;
                    };
                    let named = |e: &Expr| match e {
                        Expr::Identifier(i) => i.value.eq_ignore_ascii_case(&key.name),
                        Expr::CompoundIdentifier(p) => p
                            .last()
                            .is_some_and(|i| i.value.eq_ignore_ascii_case(&key.name)),
                        _ => false,
                    };
                    let one_table = scope.sources.len() == 1;
                    one_table
                        && ((named(left) && self.constant(right).is_some())
                            || (named(right) && self.constant(left).is_some()))
                })
            })
    }

    /// What an assignment to a protected column makes of it.
    fn new_value(
        &mut self,
        value: &Expr,
        tokens: &Range<usize>,
        column: &ColumnUse,
        scope: &Scope,
    ) -> Planned<NewValue> {
        let value_tokens = self.value_tokens(tokens)?;
        if let Some(source) = self.cell_source(&value_tokens, 0) {
            return Ok(NewValue::Constant(source));
        }
        if let Expr::BinaryOp { left, op, right } = value {
            let operator = match op {
                BinaryOperator::Plus => Some(b'+'),
                BinaryOperator::Minus => Some(b'-'),
                BinaryOperator::Multiply => Some(b'*'),
                _ => None,
            };
            let same = |found: &Option<(Range<usize>, ColumnUse)>| {
                found.as_ref().is_some_and(|(_, c)| {
                    c.index == column.index && Arc::ptr_eq(&c.table, &column.table)
                })
            };
            let left_is = self.column_of(left, scope)?;
            let right_is = self.column_of(right, scope)?;
            let other = match operator {
                Some(_) if same(&left_is) => Some(right),
                Some(b'+' | b'*') if same(&right_is) => Some(left),
                _ => None,
            };
            if let (Some(operator), Some(other)) = (operator, other)
                && let Some((_, operand)) = self.constant(other)
            {
                return Ok(NewValue::Arithmetic { operator, operand });
            }
        }
        refuse(&errors::NOT_CONSTANT, column.path())
    }

    fn row_update(
        &mut self,
        relation: &TableFactor,
        protected: Vec<(ColumnUse, NewValue, usize)>,
        plain: &[usize],
        parts: &[Range<usize>],
        single: bool,
    ) -> Planned<Action> {
        let table = Arc::clone(&protected[0].0.table);
        let mut key = Vec::new();
        for column in table.primary_key() {
            key.push(match &column.protection {
                None => quoted(&column.name),
                Some(_) => {
                    let (name, _) = column
                        .equality_column()
                        .ok_or_else(|| Refusal::new(&errors::NEEDS_KEY, &table.name))?;
                    quoted(name)
                }
            });
        }
        if key.is_empty() {
            return refuse(
                &errors::NEEDS_KEY,
                format!("{}.{}", table.database, table.name),
            );
        }
        let is_key = |name: &str| {
            table
                .primary_key()
                .any(|c| c.name.eq_ignore_ascii_case(name))
        };
        for (column, ..) in &protected {
            if is_key(&column.column().name) {
                return refuse(&errors::NEEDS_KEY, column.path());
            }
        }
        for i in plain {
            let range = self.bytes_of_tokens(&parts[*i]);
            let first = self.token_at(range.start)?;
            let equals = self.value_tokens(&parts[*i])?.start - 1;
            if let Some(name) = self.name_of(&self.tokens[equals - 1])
                && equals > first
                && is_key(&name)
            {
                return refuse(&errors::NEEDS_KEY, name);
            }
        }
        if !matches!(relation, TableFactor::Table { .. }) {
            return refuse(&errors::NOT_UNDERSTOOD, "the target of UPDATE");
        }
        let sql = self.sql();
        let set = self
            .tokens
            .iter()
            .position(|t| t.is_word(sql, "set"))
            .unwrap_or(0);
        if self
            .tokens
            .get(1)
            .is_some_and(|t| is_update_modifier(sql, t))
        {
            return refuse(&errors::NOT_UNDERSTOOD, "UPDATE IGNORE or LOW_PRIORITY");
        }
        let begin = self.tokens.get(1).map_or(0, |t| t.start);
        let target = match self.original(begin..self.tokens[set].start).as_slice() {
            [Piece::Sql(text)] => String::from_utf8_lossy(text).trim().to_string(),
            _ => return refuse(&errors::NOT_UNDERSTOOD, "the target of UPDATE"),
        };
        self.check_judged()?;

        let mut select = TextBuilder::default();
        select.sql(b"SELECT ");
        select.sql(key.join(",").as_bytes());
        let mut assign = Vec::new();
        for (column, value, _) in &protected {
            select.sql(format!(",{}", quoted(column.sealed())).as_bytes());
            assign.push(RowAssign {
                column: self.column_index(column),
                value: *value,
            });
        }
        select.sql(format!(" FROM {target} ").as_bytes());
        let tail = parts.last().map_or(0, |p| p.end);
        let end = self
            .tokens
            .iter()
            .rposition(|t| !t.is(b';'))
            .map_or(0, |i| i + 1);
        let mut single_row = None;
        if tail < end {
            let range = self.tokens[tail].start..self.tokens[end - 1].end;
            let condition = self.render(range)?;
            for piece in &condition {
                select.piece(piece.clone());
            }
            single_row = single.then_some(condition);
        }

        let mut plain_text = TextBuilder::default();
        for (n, i) in plain.iter().enumerate() {
            if n > 0 {
                plain_text.sql(b", ");
            }
            let range = self.bytes_of_tokens(&parts[*i]);
            for piece in self.render(range)? {
                plain_text.piece(piece);
            }
        }
        Ok(Action::Update(Box::new(RowUpdate {
            target,
            select: select.finish(),
            single_row,
            key,
            assign,
            plain: plain_text.finish(),
        })))
    }

    fn order_by_key(&mut self, key: &Expr, scope: &Scope) -> Planned<()> {
        if let Some((range, column)) = self.column_of(key, scope)? {
            let name = crate::predicate::exact_order(&column)
                .ok_or_else(|| Refusal::new(&errors::NO_RANGE, column.path()))?
                .to_string();
            self.replace(range, &name);
            return Ok(());
        }
        self.scan(key, scope)
    }

    pub(crate) fn delete(&mut self, delete: &Delete) -> Planned<Action> {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        if returning.is_some() || output.is_some() || using.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of DELETE");
        }
        for name in tables {
            self.judge_parts(name)?;
        }
        let (FromTable::WithFromKeyword(list) | FromTable::WithoutKeyword(list)) = from;
        let mut scope = Scope::inside(None);
        for item in list {
            self.factor(&item.relation, &mut scope, None)?;
            for join in &item.joins {
                self.factor(&join.relation, &mut scope, None)?;
            }
        }
        for item in list {
            self.joins(item, &scope)?;
        }
        if let Some(condition) = selection {
            self.scan(condition, &scope)?;
        }
        for key in order_by {
            self.order_by_key(&key.expr, &scope)?;
        }
        if let Some(limit) = limit
            && self.constant(limit).is_none()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "LIMIT");
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result: None,
        })
    }
}

fn default_text() -> Text {
    vec![Piece::Sql(b"DEFAULT".to_vec())]
}

/// `(a,b,c)`
fn in_parentheses(cells: &[(String, Text)]) -> Text {
    let mut out = TextBuilder::default();
    for (i, (_, text)) in cells.iter().enumerate() {
        out.sql(if i == 0 { b"(" } else { b"," });
        for piece in text {
            out.piece(piece.clone());
        }
    }
    out.sql(if cells.is_empty() { b"()" } else { b")" });
    out.finish()
}

fn is_default(e: &Expr) -> bool {
    matches!(e, Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}

fn is_update_modifier(sql: &[u8], token: &crate::lex::Token) -> bool {
    token.is_word(sql, "ignore") || token.is_word(sql, "low_priority")
}
