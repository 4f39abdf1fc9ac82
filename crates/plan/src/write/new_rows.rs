//! The new rows of an `INSERT`: the column list and the values, with a protected column's parts in
//! its place.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Column, Table, same_name};
use onionskin_value::{Family, Kind, SqlType};
use sqlparser::ast::{
    Assignment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Values,
};

use super::view::check_omitted;
use super::{Old, Target, default_text, in_parentheses, is_default, physical};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::Token;
use crate::plan::{ColumnUse, Piece, Source, Text, Upsert};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::Scope;
use crate::template::Rows;
use crate::unknown::Place;

/// Where the rows of an `INSERT` go.
pub(super) struct Destination<'i> {
    /// The table as the statement names it.
    pub name: &'i ObjectName,
    pub table: &'i Arc<Table>,
    /// The table's columns, which values may read.
    pub scope: &'i Scope<'i>,
    pub lenience: Lenience,
}

/// Which missing values the server puts up with.
pub(super) struct Lenience {
    /// `INSERT IGNORE`
    pub ignore: bool,
    /// By their places in the table: see [`Planner::assigned_on_duplicate`].
    pub assigned: Vec<usize>,
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
    table: &'t Arc<Table>,
    /// The columns that the statement names.
    targets: &'t [Target],
    /// Protected columns that it leaves out.
    omitted: &'t [ColumnUse],
    /// Plain columns that it leaves out, with the statement's time.
    times: &'t [(String, Piece)],
    lenience: &'t Lenience,
}

/// The columns that an `INSERT … VALUES` names.
struct ColumnList {
    targets: Vec<Target>,
    /// Its place in the text, or that where it is missing.
    place: Range<usize>,
    /// The token behind it.
    behind: usize,
}

impl Planner<'_> {
    /// The column list and the rows of `INSERT … VALUES`. The tree has `count` rows: of folded rows
    /// it has one.
    pub(super) fn insert_rows(
        &mut self,
        columns: &[ObjectName],
        count: usize,
        to: &Destination,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let ColumnList {
            targets,
            place,
            behind,
        } = self.column_list(columns, to)?;
        check_omitted(to.table, &targets)?;
        let new = NewRow {
            table: to.table,
            omitted: &self.omitted(&targets, to.table, &to.lenience),
            times: &self.omitted_times(&targets, to.table),
            targets: &targets,
            lenience: &to.lenience,
        };
        self.edit_sql(place, list_text(&new));
        let sql = self.sql();
        let is_values = |t: &Token| t.is_word(sql, "values") || t.is_word(sql, "value");
        if !self.tokens.get(behind).is_some_and(is_values) {
            return NotUnderstood::BeforeValues.refuse();
        }
        let folded = self.request.template.rows;
        match folded.filter(|rows| rows.count > 1 || count == 1) {
            Some(_) if count != 1 => refuse(&errors::INTERNAL, "the folded rows"),
            Some(rows) => self.folded_rows(behind + 1, rows, &new, upsert),
            None => self.rows_as_written(behind + 1, count, &new, upsert),
        }
    }

    /// The columns that are named behind the table's name; without a list, all that are visible.
    fn column_list(&mut self, columns: &[ObjectName], to: &Destination) -> Planned<ColumnList> {
        let Some(last) = to.name.0.last().and_then(|p| p.as_ident()) else {
            return NotUnderstood::PartOf("the target", "INSERT").refuse();
        };
        let name = self.token_at(self.offset(last.span))?;
        let open = name + 1;
        let mut targets = Vec::new();
        if !self.tokens.get(open).is_some_and(|t| t.is(b'(')) {
            // `VALUES ()` names no column: a DEFAULT for AUTO_INCREMENT may be the number 0
            let is_empty = self.is_empty_row(open + 1);
            let all = to.table.columns.iter();
            for column in all.filter(|c| !c.invisible && !is_empty) {
                targets.push(self.target(&column.name, to.table, Place::InsertInto)?);
            }
            let end = self.tokens[name].end;
            return Ok(ColumnList {
                targets,
                place: end..end,
                behind: open,
            });
        }
        let close = self.closing(open)?;
        for column in columns {
            let parts = self.judge_name(column)?;
            let column = parts.last().cloned().unwrap_or_default();
            targets.push(self.target(&column, to.table, Place::InsertInto)?);
        }
        Ok(ColumnList {
            targets,
            place: self.tokens[open].start..self.tokens[close].end,
            behind: close + 1,
        })
    }

    /// Rows that look alike: one pattern for all of them. `at` is the first one's parenthesis.
    fn folded_rows(
        &mut self,
        at: usize,
        rows: Rows,
        new: &NewRow,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        if self.tokens.get(at).map(|t| t.start) != Some(rows.first.0) {
            return refuse(&errors::INTERNAL, "the folded rows");
        }
        let cells = self.row(at, new, rows.first_literal, 1)?;
        let mut row = self.tenant_of_row(new.table, &cells);
        row.extend(in_parentheses(&cells));
        upsert.rows.push(cells);
        upsert.folded = Some((rows.first_literal, rows.per_row));
        let piece = Piece::Rows {
            row,
            first_literal: rows.first_literal,
            per_row: rows.per_row,
        };
        self.edit(rows.first.0..rows.end, vec![piece]);
        Ok(())
    }

    /// Rows that are not folded, each in its place. `at` is the first one's parenthesis.
    fn rows_as_written(
        &mut self,
        mut at: usize,
        count: usize,
        new: &NewRow,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        for n in 1..=count {
            let close = self.closing(at)?;
            let range = self.tokens[at].start..self.tokens[close].end;
            let cells = self.row(at, new, 0, n)?;
            if count > 1 {
                let literals = &self.request.template.literals;
                let before = literals.partition_point(|l| l.start < range.end);
                self.row_ends.push(before);
            }
            let mut row = self.tenant_of_row(new.table, &cells);
            row.extend(in_parentheses(&cells));
            self.edit(range, row);
            upsert.rows.push(cells);
            at = close + 2;
        }
        Ok(())
    }

    /// One row's cells by the names of their physical columns; literal indexes are counted from
    /// `base`.
    fn row(
        &mut self,
        open: usize,
        new: &NewRow,
        base: usize,
        number: usize,
    ) -> Planned<Vec<(String, Text)>> {
        let close = self.closing(open)?;
        let mut cells = self.split_commas(open + 1..close);
        if close == open + 1 {
            cells.clear();
        }
        let mut row = Vec::new();
        if cells.len() != new.targets.len() {
            return Err(Refusal::column_count(number));
        }
        for (cell, target) in cells.iter().zip(new.targets) {
            match target {
                Target::Plain(name) => {
                    let text = self.plain_cell(cell, new.table, name, base);
                    row.push((name.clone(), text));
                }
                Target::Protected(column) => {
                    let source = self.given(cell, column, base)?;
                    self.check_default(source, column, new.lenience)?;
                    self.cells_of(column, source, &mut row);
                }
            }
        }
        for column in new.omitted {
            self.cells_of(column, new.lenience.left_out(column, number), &mut row);
        }
        for (name, piece) in new.times {
            row.push((name.clone(), vec![piece.clone()]));
        }
        Ok(row)
    }

    /// Whether `()` stands here.
    fn is_empty_row(&self, open: usize) -> bool {
        let is = |at: usize, c: u8| self.tokens.get(at).is_some_and(|t| t.is(c));
        is(open, b'(') && is(open + 1, b')')
    }

    /// The text of a plain column's cell.
    fn plain_cell(&mut self, cell: &Range<usize>, table: &Table, name: &str, base: usize) -> Text {
        if self.cell_source(cell, base) == Some(Source::Default) {
            return self.default_or_time(table, name);
        }
        let column = table.column(name);
        if let Some(time) = column.and_then(|column| self.plain_call(cell, column)) {
            return vec![time];
        }
        let mut text = TextBuilder::default();
        let range = self.bytes_of(cell);
        self.copy(range, &mut text, base);
        text.finish()
    }

    /// Where the value of a protected column comes from that a new row gives it.
    fn given(&mut self, value: &Range<usize>, column: &ColumnUse, base: usize) -> Planned<Source> {
        self.cell_source(value, base)
            .or_else(|| self.own_default(value, column))
            .or_else(|| self.present_call(value, column))
            .or_else(|| self.computed(value, column, true))
            .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))
    }

    /// Refuses `DEFAULT` of a column that has none where MySQL makes a warning of it: it makes one
    /// for every row, where a column that is left out gives one for all.
    fn check_default(
        &self,
        source: Source,
        column: &ColumnUse,
        lenience: &Lenience,
    ) -> Planned<()> {
        let settings = self.request.settings;
        let c = column.column();
        let required = c.is_required() && !has_first_member(c);
        let lenient = lenience.ignore || !settings.strict;
        match source == Source::Default && required && lenient {
            true if settings.family == Family::MySql => refuse(&errors::VALUE, column.path()),
            _ => Ok(()),
        }
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
                c.default.is_some()
                    || c.has_lost_default()
                    || (c.is_required() && (ours || has_first_member(c)))
            })
            .map(|index| ColumnUse {
                table: Arc::clone(table),
                index,
            })
            .collect()
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

    /// Walks the expressions that rows give to plain columns: they must not read protected ones.
    pub(super) fn scan_values(
        &mut self,
        columns: &[ObjectName],
        values: &Values,
        to: &Destination,
    ) -> Planned<()> {
        let shown: Vec<&str> = match columns.is_empty() {
            true => {
                let shown = to.table.columns.iter().filter(|c| !c.invisible);
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
                if is_plain && !is_own_default(e, column, to.table) {
                    self.scan(e, to.scope)?;
                }
            }
        }
        Ok(())
    }

    /// `INSERT … SET a = 1, k = 2`.
    pub(super) fn insert_set(
        &mut self,
        assignments: &[Assignment],
        to: &Destination,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let parts = self.assignment_tokens(assignments.len())?;
        let mut targets = Vec::new();
        let mut row = Vec::new();
        for (assignment, tokens) in assignments.iter().zip(&parts) {
            let name = self.assigned_name(assignment)?;
            let target = self.target(&name, to.table, Place::InsertInto)?;
            let value = self.value_tokens(tokens)?;
            match &target {
                Target::Protected(column) => {
                    let source = self.given(&value, column, 0)?;
                    let text = self.assign_text(column, source, false, &Old::BARE);
                    let range = self.bytes_of(tokens);
                    self.edit(range, text);
                    self.cells_of(column, source, &mut row);
                }
                Target::Plain(_) => {
                    let text = self.set_plain(&name, &assignment.value, &value, to.table)?;
                    row.push((name, text));
                }
            }
            targets.push(target);
        }
        check_omitted(to.table, &targets)?;
        let end = parts.last().map_or(0, |p| self.bytes_of(p).end);
        let text = self.set_omitted(&targets, to, &mut row);
        let tenant = self.tenant_of_row(to.table, &row);
        if !tenant.is_empty() {
            // before all assignments, whatever their order
            self.edit(0..0, tenant);
        }
        upsert.rows.push(row);
        if !text.is_empty() {
            self.edit(end..end, text);
        }
        Ok(())
    }

    /// `a = 1` of a plain column. Returns the text of the value.
    fn set_plain(
        &mut self,
        name: &str,
        value: &Expr,
        tokens: &Range<usize>,
        table: &Table,
    ) -> Planned<Text> {
        if is_default(value) {
            self.note_assigned_default(table, name);
        }
        let range = self.bytes_of(tokens);
        let column = table.column(name);
        let text = match column.and_then(|column| self.plain_call(tokens, column)) {
            Some(time) => {
                self.edit(range, vec![time.clone()]);
                vec![time]
            }
            None => self.original(range),
        };
        if self.constant(value).is_none() && !is_default(value) {
            self.scan(value, &Scope::inside(None))?;
        }
        Ok(text)
    }

    /// The assignments to columns that `INSERT … SET` leaves out and the proxy fills in.
    fn set_omitted(
        &mut self,
        named: &[Target],
        to: &Destination,
        row: &mut Vec<(String, Text)>,
    ) -> Text {
        let mut text = Vec::new();
        for column in &self.omitted(named, to.table, &to.lenience) {
            let source = to.lenience.left_out(column, 1);
            text.push(Piece::Sql(b", ".to_vec()));
            text.extend(self.assign_text(column, source, false, &Old::BARE));
            self.cells_of(column, source, row);
        }
        for (name, piece) in self.omitted_times(named, to.table) {
            let assign = format!(", {} = ", quoted(&name));
            text.push(Piece::Sql(assign.into_bytes()));
            text.push(piece.clone());
            row.push((name, vec![piece]));
        }
        text
    }
}

/// The columns that new rows have on the server: ` (a,k$enc,k$eq) `.
fn list_text(new: &NewRow) -> String {
    let mut names: Vec<&str> = Vec::new();
    for target in new.targets {
        match target {
            Target::Plain(name) => names.push(name),
            Target::Protected(column) => names.extend(physical_names(column)),
        }
    }
    names.extend(new.omitted.iter().flat_map(physical_names));
    names.extend(new.times.iter().map(|(name, _)| name.as_str()));
    let names: Vec<String> = names.into_iter().map(quoted).collect();
    format!(" ({}) ", names.join(","))
}

fn physical_names(column: &ColumnUse) -> impl Iterator<Item = &str> {
    physical(column).into_iter().map(|(name, _)| name)
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
        && same_name(&name.value, column)
        && table.column(column).is_some_and(|c| c.protection.is_some())
}

/// Whether the column takes its first member where a row names no value.
fn has_first_member(column: &Column) -> bool {
    let is_enum = |ty: &SqlType| matches!(ty.kind, Kind::Enum(_));
    !column.nullable && column.sql_type.as_ref().is_some_and(is_enum)
}
