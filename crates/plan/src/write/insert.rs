//! `INSERT` and `REPLACE`: the column list and the rows with a protected column's parts in its place.

use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::{Column, Table};
use onionskin_value::{Family, Kind, SqlType};
use sqlparser::ast::{
    Assignment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Insert, ObjectName,
    OnInsert, Query, SetExpr, TableObject, Visit, Visitor,
};

use super::view::check_omitted;
use super::{Target, default_text, in_parentheses, is_default, physical};
use crate::errors::{self, Refusal};
use crate::plan::{Action, ColumnUse, Piece, Purpose, Source, Text, Upsert};
use crate::planner::{Known, Planned, Planner, TextBuilder, quoted, refuse};
use crate::query::Mode;
use crate::scope::{self, Scope};

/// Which missing values the server puts up with.
struct Lenience {
    ignore: bool,
    /// By their places in the table: see [`Planner::assigned_on_duplicate`].
    assigned: Vec<usize>,
}

impl Lenience {
    /// What a row gets that leaves a column out.
    fn left_out(&self, column: &ColumnUse, row: usize) -> Source {
        match self.assigned.contains(&column.index) {
            true => Source::Implicit,
            false => Source::Omitted { row },
        }
    }
}

/// What the rows of an `INSERT` have in common.
struct NewRow<'t> {
    table: &'t Table,
    /// The columns that the statement names.
    targets: &'t [Target],
    /// Protected columns that it leaves out.
    omitted: &'t [ColumnUse],
    /// Plain columns that it leaves out, with the statement's time.
    times: &'t [(String, Piece)],
    lenience: &'t Lenience,
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
        if table.as_ref().is_some_and(|t| !t.is_protected()) && reads_nothing(insert) {
            // a word of it, such as a column's name, is a protected table's name
            return Ok(Action::Relay);
        }
        let mut scope = Scope::inside(None);
        scope.sources.push(scope::Source {
            name: table_name,
            database,
            table: table.clone(),
            exports: None,
        });
        let Some(table) = table.filter(|t| t.is_protected()) else {
            if self.near.iter().any(|table| table.view) {
                return refuse(&errors::VIEW, "writing beside one");
            }
            // the target is plain; protected tables may be read from, but not handed on
            let Some(query) = source else {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "INSERT … SET with a protected table",
                );
            };
            for column in columns {
                self.judge_name(column)?;
            }
            self.query(query, None, Mode::Nested)?;
            if on.is_some() || returning.is_some() {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "ON DUPLICATE KEY UPDATE, or RETURNING",
                );
            }
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        };
        self.inserted_view(&table, !reads_nothing(insert))?;
        if table.view && (on.is_some() || *replace_into || returning.is_some()) {
            return refuse(&errors::VIEW, "writing through one in this form");
        }
        if let Some(alias) = insert_alias {
            if alias.col_aliases.as_ref().is_some_and(|c| !c.is_empty()) {
                return refuse(&errors::NOT_UNDERSTOOD, "column aliases of the new row");
            }
            self.judge_name(&alias.row_alias)?;
        }

        let mut upsert = Upsert {
            target: self.insert_target(name)?,
            rows: Vec::new(),
            folded: None,
            columns: Vec::new(),
            constants: Vec::new(),
        };
        let lenience = Lenience {
            ignore: *ignore,
            assigned: self.assigned_on_duplicate(on.as_ref(), &table)?,
        };
        if !assignments.is_empty() {
            self.insert_set(assignments, &table, &lenience, &mut upsert)?;
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
            self.insert_rows(name, columns, count, &table, &lenience, &mut upsert)?;
            // plain expressions in rows must not read protected columns
            let shown: Vec<&str> = match columns.is_empty() {
                true => {
                    let shown = table.columns.iter().filter(|c| !c.invisible);
                    shown.map(|c| c.name.as_str()).collect()
                }
                false => columns
                    .iter()
                    .map(|c| c.0.last().and_then(|p| p.as_ident()))
                    .map(|c| c.map_or("", |c| c.value.as_str()))
                    .collect(),
            };
            for row in &values.rows {
                for (e, column) in row.content.iter().zip(&shown) {
                    let is_plain = self.constant(e).is_none() && !is_default(e);
                    if is_plain && !is_own_default(e, column, &table) {
                        self.scan(e, &scope)?;
                    }
                }
            }
        }
        let result = match returning {
            None => None,
            Some(_) if on.is_some() => {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "RETURNING behind ON DUPLICATE KEY UPDATE",
                );
            }
            Some(list) => {
                let tokens = self.returning_tokens()?;
                Some(self.returned(list, tokens, &scope)?)
            }
        };
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
            result,
        })
    }

    /// The protected columns without a default that the statement's own ON DUPLICATE KEY UPDATE assigns. To MariaDB they
    /// are given then, whatever the new row has; MySQL asks for a value all the same.
    fn assigned_on_duplicate(
        &mut self,
        on: Option<&OnInsert>,
        table: &Arc<Table>,
    ) -> Planned<Vec<usize>> {
        let Some(OnInsert::DuplicateKeyUpdate(list)) = on else {
            return Ok(Vec::new());
        };
        let mut assigned = Vec::new();
        if self.request.settings.family == Family::MariaDb {
            for assignment in list {
                let name = self.assigned_name(assignment)?;
                if let Target::Protected(column) = self.target(&name, table)?
                    && column.column().is_required()
                {
                    assigned.push(column.index);
                }
            }
        }
        Ok(assigned)
    }

    /// Protected columns that the statement leaves out and that have a default to fill in.
    fn omitted(&self, named: &[Target], table: &Arc<Table>, lenience: &Lenience) -> Vec<ColumnUse> {
        // MySQL finds a missing default after wrong values, and by itself
        let settings = self.request.settings;
        let ours = settings.family == Family::MariaDb || !settings.strict || lenience.ignore;
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
                c.default.is_some() || (c.is_required() && (ours || has_first_member(c)))
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
        lenience: &Lenience,
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
                let parts = self.judge_name(column)?;
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
        check_omitted(table, &targets)?;
        let omitted = self.omitted(&targets, table, lenience);
        let times = self.omitted_times(&targets, table);
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
        times.iter().for_each(|(n, _)| push(&mut list, n));
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
        let new = NewRow {
            table,
            targets: &targets,
            omitted: &omitted,
            times: &times,
            lenience,
        };
        let folded = self
            .request
            .template
            .rows
            .filter(|r| r.count > 1 || ast_rows == 1);
        if let Some(rows) = folded {
            if self.tokens.get(at).map(|t| t.start) != Some(rows.first.0) || ast_rows != 1 {
                return refuse(&errors::INTERNAL, "the folded rows");
            }
            let cells = self.row(at, &new, rows.first_literal, 1)?;
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
            let cells = self.row(at, &new, 0, n)?;
            if ast_rows > 1 {
                let literals = &self.request.template.literals;
                let before = literals.partition_point(|l| l.start < range.end);
                self.row_ends.push(before);
            }
            self.edit(range, in_parentheses(&cells));
            upsert.rows.push(cells);
            at = close + 2;
        }
        Ok(())
    }

    /// One row's cells by the names of their physical columns; literal indexes are counted from `base`.
    fn row(
        &mut self,
        open: usize,
        new: &NewRow,
        base: usize,
        number: usize,
    ) -> Planned<Vec<(String, Text)>> {
        let NewRow {
            targets, lenience, ..
        } = *new;
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
                    Target::Plain(name) => {
                        let text = self.default_or_time(new.table, name);
                        row.push((name.clone(), text));
                    }
                    Target::Protected(column) => {
                        self.cells_of(column, lenience.left_out(column, number), &mut row);
                    }
                }
            }
        } else if cells.len() != targets.len() {
            return refuse(&errors::COLUMN_COUNT, format!("row {number}"));
        }
        for (cell, target) in cells.iter().zip(targets) {
            match target {
                Target::Plain(name) if self.cell_source(cell, base) == Some(Source::Default) => {
                    let text = self.default_or_time(new.table, name);
                    row.push((name.clone(), text));
                }
                Target::Plain(name) => {
                    let column = new.table.column(name);
                    let time = column.and_then(|column| self.plain_call(cell, column));
                    let mut text = TextBuilder::default();
                    match time {
                        Some(piece) => text.piece(piece),
                        None => {
                            let range = self.bytes_of(cell);
                            self.copy(range, &mut text, base);
                        }
                    }
                    row.push((name.clone(), text.finish()));
                }
                Target::Protected(column) => {
                    let source = self
                        .cell_source(cell, base)
                        .or_else(|| self.own_default(cell, column))
                        .or_else(|| self.present_call(cell, column))
                        .or_else(|| self.computed(cell, column, true))
                        .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
                    let settings = self.request.settings;
                    let c = column.column();
                    let required = c.is_required() && !has_first_member(c);
                    let lenient = lenience.ignore || !settings.strict;
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
        for column in new.omitted {
            self.cells_of(column, lenience.left_out(column, number), &mut row);
        }
        for (name, piece) in new.times {
            row.push((name.clone(), vec![piece.clone()]));
        }
        Ok(row)
    }

    /// Plain columns that new rows leave out, and the time that the proxy gives them.
    fn omitted_times(&mut self, named: &[Target], table: &Table) -> Vec<(String, Piece)> {
        let is_named = |column: &Column| {
            let is = |t: &Target| matches!(t, Target::Plain(name) if *name == column.name);
            named.iter().any(is)
        };
        let mut times = Vec::new();
        for column in table.columns.iter().filter(|c| !is_named(c)) {
            if let Some(piece) = self.plain_default(column) {
                times.push((column.name.clone(), piece));
            }
        }
        times
    }

    /// What stands for `DEFAULT` of a plain column.
    fn default_or_time(&mut self, table: &Table, name: &str) -> Text {
        let column = table.column(name);
        match column.and_then(|column| self.plain_default(column)) {
            Some(piece) => vec![piece],
            None => default_text(),
        }
    }

    /// The cells of a protected column of a new row.
    fn cells_of(&mut self, column: &ColumnUse, source: Source, row: &mut Vec<(String, Text)>) {
        for (name, purpose) in physical(column) {
            let slot = self.slot(column, purpose, source);
            row.push((name.to_string(), vec![slot]));
        }
    }

    /// `INSERT … SET a = 1, k = 2`.
    fn insert_set(
        &mut self,
        assignments: &[Assignment],
        table: &Arc<Table>,
        lenience: &Lenience,
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
                    .or_else(|| self.own_default(&value, column))
                    .or_else(|| self.present_call(&value, column))
                    .or_else(|| self.computed(&value, column, true))
                    .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
                let text = self.assign_text(column, source, false);
                let range = self.bytes_of(tokens);
                self.edit(range, text);
                self.cells_of(column, source, &mut row);
            } else {
                let value = self.value_tokens(tokens)?;
                if is_default(&assignment.value) {
                    self.note_assigned_default(table, &name);
                }
                let range = self.bytes_of(&value);
                let column = table.column(&name);
                match column.and_then(|column| self.plain_call(&value, column)) {
                    Some(piece) => {
                        self.edit(range, vec![piece.clone()]);
                        row.push((name, vec![piece]));
                    }
                    None => row.push((name, self.original(range))),
                }
                let empty = Scope::inside(None);
                if self.constant(&assignment.value).is_none() && !is_default(&assignment.value) {
                    self.scan(&assignment.value, &empty)?;
                }
            }
            targets.push(target);
        }
        check_omitted(table, &targets)?;
        let omitted = self.omitted(&targets, table, lenience);
        let end = parts.last().map_or(0, |p| self.bytes_of(p).end);
        let mut text = Vec::new();
        for column in &omitted {
            let source = lenience.left_out(column, 1);
            text.push(Piece::Sql(b", ".to_vec()));
            text.extend(self.assign_text(column, source, false));
            self.cells_of(column, source, &mut row);
        }
        for (name, piece) in self.omitted_times(&targets, table) {
            let assign = format!(", {} = ", quoted(&name));
            text.push(Piece::Sql(assign.into_bytes()));
            text.push(piece.clone());
            row.push((name, vec![piece]));
        }
        upsert.rows.push(row);
        if !text.is_empty() {
            self.edit(end..end, text);
        }
        Ok(())
    }
}

/// Whether the value of a protected column is `DEFAULT(column)` of itself.
fn is_own_default(e: &Expr, column: &str, table: &Table) -> bool {
    let Expr::Function(function) = e else {
        return false;
    };
    let FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name)))] =
        list.args.as_slice()
    else {
        return false;
    };
    Planner::function_name(function) == "default"
        && function.over.is_none()
        && name.value.to_lowercase() == column.to_lowercase()
        && table.column(column).is_some_and(|c| c.protection.is_some())
}

/// Whether the column takes its first member where a row names no value.
fn has_first_member(column: &Column) -> bool {
    let is_enum = |ty: &SqlType| matches!(ty.kind, Kind::Enum(_));
    !column.nullable && column.sql_type.as_ref().is_some_and(is_enum)
}

/// Counts queries.
struct Queries(usize);

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Whether no query stands in the statement beside its `VALUES`, so that it can be about no table but its target.
fn reads_nothing(insert: &Insert) -> bool {
    let of_values = |q: &Query| matches!(q.body.as_ref(), SetExpr::Values(_));
    let mut queries = Queries(0);
    let _ = insert.visit(&mut queries);
    match &insert.source {
        Some(query) => of_values(query) && queries.0 == 1,
        None => queries.0 == 0,
    }
}
