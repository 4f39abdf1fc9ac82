//! The text of a planned definition: each protected column becomes its physical columns.

use onionskin_keys::MetadataKey;
use onionskin_plan::{AliasMarks, Ddl, DdlPiece, Prefixed, Redefined, Refusal, errors};
use onionskin_schema::alter::{self, Change, Position, Redefinition};
use onionskin_schema::{
    Alias, Column, DefaultLiteral, NewColumn, SchemaError, SetMark, Table, identifier,
    physical_definitions, prefix_comment,
};
use onionskin_value::Family;

/// The text for the server. `columns` are the new columns with their ids.
pub fn definition_text(
    ddl: &Ddl,
    columns: &[NewColumn],
    family: Family,
    key: &MetadataKey,
) -> Result<Vec<u8>, Refusal> {
    let set = set_of(ddl, columns, family, key).map_err(|e| failed(&e))?;
    let definition = Definition {
        ddl,
        columns,
        family,
        key,
        set,
    };
    let mut sql = Vec::new();
    for piece in &ddl.pieces {
        definition.put(piece, &mut sql)?;
    }
    Ok(sql)
}

/// A definition with all that its text needs.
struct Definition<'a> {
    ddl: &'a Ddl,
    columns: &'a [NewColumn],
    family: Family,
    key: &'a MetadataKey,
    /// The mark of all protected columns that the table has afterwards.
    set: SetMark,
}

impl Definition<'_> {
    fn put(&self, piece: &DdlPiece, sql: &mut Vec<u8>) -> Result<(), Refusal> {
        match piece {
            DdlPiece::Sql(text) => sql.extend_from_slice(text),
            DdlPiece::Renew => {
                for index in unchanged(self.ddl) {
                    put_list(&self.renewed_comment(index)?, sql);
                    sql.extend_from_slice(b", ");
                }
            }
            DdlPiece::Definitions(new) => put_list(&self.definitions(*new)?, sql),
            DdlPiece::Check { column, number } => {
                let check = self
                    .new_column(*column)?
                    .physical_check(*number, self.family);
                sql.extend_from_slice(check.ok_or_else(internal)?.as_bytes());
            }
            DdlPiece::Guard(new) => {
                let guard = self.new_column(*new)?.guard_definition();
                sql.extend_from_slice(guard.ok_or_else(internal)?.as_bytes());
            }
            DdlPiece::Add { column, place } => {
                put_list(&self.added_column(*column, place.as_ref())?, sql);
            }
            // the proxy has put something else in the place of what it has to ask for
            DdlPiece::Constant(_) => sql.push(b'?'),
            DdlPiece::Present(_)
            | DdlPiece::KeyTooLong
            | DdlPiece::MissingReference(_)
            | DdlPiece::DroppedConstraint(_) => {}
            DdlPiece::AliasMarks(marks) => self.put_alias_marks(marks, sql),
            // Where it matters which names are taken, a free one has been put in its place before.
            DdlPiece::IndexName { base, .. } => put_name(base, sql),
            DdlPiece::IndexColumn(new) => put_name(&self.index_column(*new)?, sql),
            DdlPiece::PrefixLengths(lengths) => {
                let comment = self.prefix_comment(lengths)?;
                sql.extend_from_slice(format!("COMMENT '{comment}' ").as_bytes());
            }
            DdlPiece::Drop(index) => put_list(&self.dropped_column(*index)?, sql),
            DdlPiece::Rename(index, name) => put_list(&self.renamed_column(*index, name)?, sql),
            DdlPiece::SetDefault(index, default) => {
                put_list(&self.changed_default(*index, default.as_ref())?, sql);
            }
            DdlPiece::ForgetCheck(index, number) => {
                sql.extend_from_slice(b", ");
                put_list(&self.without_check(*index, *number)?, sql);
            }
            DdlPiece::SetActions(index, actions) => {
                let (table, column) = self.existing(*index)?;
                let (family, tag) = (self.family, self.tag());
                let parts = alter::set_actions(table, column, *actions, &self.set, family, tag);
                put_list(&parts.map_err(|e| failed(&e))?, sql);
            }
            DdlPiece::Redefine(new) => put_list(&self.redefined_column(new)?, sql),
        }
        Ok(())
    }

    fn tag(&self) -> impl Fn(&[u8]) -> [u8; 16] {
        |bytes| self.key.tag(bytes)
    }

    fn new_column(&self, new: usize) -> Result<&NewColumn, Refusal> {
        self.columns.get(new).ok_or_else(internal)
    }

    /// The table as it is before the definition.
    fn table(&self) -> Result<&Table, Refusal> {
        self.ddl.table.as_deref().ok_or_else(internal)
    }

    /// The table with one of the columns that it has.
    fn existing(&self, index: usize) -> Result<(&Table, &Column), Refusal> {
        let table = self.table()?;
        Ok((table, table.columns.get(index).ok_or_else(internal)?))
    }

    fn renewed_comment(&self, index: usize) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(index)?;
        alter::renew_comment(table, column, &self.set, self.family, self.tag())
            .map_err(|e| failed(&e))
    }

    /// A new column in `CREATE TABLE`.
    fn definitions(&self, new: usize) -> Result<Vec<String>, Refusal> {
        let column = self.new_column(new)?;
        let mut parts = physical_definitions(column, &self.set, self.family, self.tag())
            .map_err(|e| failed(&e))?;
        if self.ddl.temporary.is_some() {
            // InnoDB has no full-text indexes on temporary tables: LIKE opens all rows there
            parts.retain(|part| !part.starts_with("FULLTEXT KEY "));
        }
        Ok(parts)
    }

    /// A new column in `ALTER TABLE`.
    fn added_column(
        &self,
        new: usize,
        place: Option<&Option<String>>,
    ) -> Result<Vec<String>, Refusal> {
        let column = self.new_column(new)?;
        let position = self.position(place)?;
        alter::add_column(column, position, &self.set, self.family, self.tag())
            .map_err(|e| failed(&e))
    }

    fn position(&self, place: Option<&Option<String>>) -> Result<Position<'_>, Refusal> {
        Ok(match place {
            None => Position::Last,
            Some(None) => Position::First,
            Some(Some(name)) => {
                let after = self.table()?.column(name);
                let unknown = || Refusal::new(&errors::UNKNOWN_COLUMN, format!("'{name}'"));
                Position::After(after.ok_or_else(unknown)?)
            }
        })
    }

    fn redefined_column(&self, new: &Redefined) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(new.index)?;
        let position = self.position(new.place.as_ref())?;
        let (family, tag) = (self.family, self.tag());
        alter::redefine(
            table,
            column,
            &redefinition(new),
            position,
            &self.set,
            family,
            tag,
        )
        .map_err(|e| failed(&e))
    }

    fn dropped_column(&self, index: usize) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(index)?;
        alter::drop_column(table, column).map_err(|e| failed(&e))
    }

    fn renamed_column(&self, index: usize, name: &str) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(index)?;
        alter::rename_column(table, column, name, &self.set, self.family, self.tag())
            .map_err(|e| failed(&e))
    }

    fn changed_default(
        &self,
        index: usize,
        default: Option<&DefaultLiteral>,
    ) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(index)?;
        alter::set_default(table, column, default, &self.set, self.family, self.tag())
            .map_err(|e| failed(&e))
    }

    fn without_check(&self, index: usize, number: usize) -> Result<Vec<String>, Refusal> {
        let (table, column) = self.existing(index)?;
        let (family, tag) = (self.family, self.tag());
        alter::forget_check(table, column, number, &self.set, family, tag).map_err(|e| failed(&e))
    }

    /// The physical column that an index on a new column is built on. The plan has seen to it that
    /// one that is unique is on a column that decides equality.
    fn index_column(&self, new: usize) -> Result<String, Refusal> {
        let name = self.new_column(new)?.index_column_name(false);
        name.map_err(|e| failed(&e))
    }

    fn prefix_comment(&self, lengths: &[(Prefixed, u32)]) -> Result<String, Refusal> {
        let mut named = Vec::new();
        for (column, length) in lengths {
            let name = match column {
                Prefixed::Existing(name) => name.clone(),
                Prefixed::New(new) => self.index_column(*new)?,
            };
            named.push((name, *length));
        }
        prefix_comment(&named).ok_or_else(internal)
    }

    fn put_alias_marks(&self, marks: &AliasMarks, sql: &mut Vec<u8>) {
        let alias = Alias {
            name: &marks.name,
            original: &marks.original,
            ids: marks.ids,
        };
        for mark in alias.marks(self.tag()) {
            let value = if marks.listed { "" } else { "NULL AS " };
            sql.extend_from_slice(format!(", {value}{}", identifier(&mark)).as_bytes());
        }
    }
}

fn put_list(parts: &[String], sql: &mut Vec<u8>) {
    sql.extend_from_slice(parts.join(", ").as_bytes());
}

fn put_name(name: &str, sql: &mut Vec<u8>) {
    sql.extend_from_slice(identifier(name).as_bytes());
}

fn failed(error: &SchemaError) -> Refusal {
    Refusal::new(&errors::DEFINITION, error.to_string())
}

/// A plan that names a column which is not there.
fn internal() -> Refusal {
    Refusal::new(&errors::INTERNAL, "a definition")
}

fn redefinition(new: &Redefined) -> Redefinition<'_> {
    Redefinition {
        name: &new.name,
        nullable: new.nullable,
        default: new.default.as_ref(),
        comment: &new.comment,
        explicit_collation: new.explicit_collation,
        drops_check: new.drops_check,
    }
}

/// The changes of protected columns that the table has.
fn changes(ddl: &Ddl) -> impl Iterator<Item = Change<'_>> {
    ddl.pieces.iter().filter_map(|piece| match piece {
        DdlPiece::Drop(index) => Some(Change::Drop(*index)),
        DdlPiece::Rename(index, name) => Some(Change::Rename(*index, name)),
        DdlPiece::SetDefault(index, default) => Some(Change::Default(*index, default.as_ref())),
        DdlPiece::SetActions(index, actions) => Some(Change::Actions(*index, *actions)),
        DdlPiece::Redefine(new) => Some(Change::Redefine(new.index, redefinition(new))),
        DdlPiece::ForgetCheck(index, number) => Some(Change::ForgetCheck(*index, *number)),
        _ => None,
    })
}

/// The protected columns that only get a new comment, by their indexes in the table.
fn unchanged(ddl: &Ddl) -> Vec<usize> {
    let is_changed = |index: usize| {
        changes(ddl).any(|change| match change {
            Change::Drop(other)
            | Change::Rename(other, _)
            | Change::Default(other, _)
            | Change::ForgetCheck(other, _)
            | Change::Actions(other, _)
            | Change::Redefine(other, _) => other == index,
        })
    };
    let columns = ddl.table.iter().flat_map(|table| &table.columns);
    let protected = columns.enumerate().filter(|(_, c)| c.protection.is_some());
    let indexes = protected.map(|(index, _)| index);
    indexes.filter(|index| !is_changed(*index)).collect()
}

/// The mark of all protected columns that the table has after the definition.
fn set_of(
    ddl: &Ddl,
    columns: &[NewColumn],
    family: Family,
    key: &MetadataKey,
) -> Result<SetMark, SchemaError> {
    let tag = |bytes: &[u8]| key.tag(bytes);
    match ddl.table.as_deref().filter(|table| table.is_protected()) {
        None => Ok(SetMark::of_new_table(columns, family, tag)),
        Some(table) => {
            let changes: Vec<Change<'_>> = changes(ddl).collect();
            alter::set_after(table, &changes, columns, family, tag)
        }
    }
}
