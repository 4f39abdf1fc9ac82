//! ALTER TABLE on protected columns, as far as no cell needs to be rewritten.
//!
//! Each function gives specifications that belong into one ALTER TABLE statement, so that the
//! data's layout and the metadata change together.
//!
//! Each change of a protected column writes the comments of all of them anew, because each holds
//! the mark of all: [`set_after`] makes the mark, [`renew_comment`] is for the columns that change
//! in nothing else.
//!
//! A new CHECK constraint makes both families copy the table: that is what ADD COLUMN and a new
//! name cost. The other changes are instant.

use onionskin_value::Family;

use crate::{
    Filling,
    check::{self, Check},
    comment::ColumnMetadata,
    ddl::{
        Layout, NewColumn, check_name, check_protectable, constraint_name, gram_index_name,
        guard_name, physical_definitions,
    },
    display::normalized,
    errors::SchemaError,
    key_actions::KeyActions,
    protection::GramForm,
    quote::identifier,
    set::SetMark,
    table::{Column, Default, DefaultLiteral, Table},
};

/// Where ADD COLUMN puts a column.
#[derive(Clone, Copy, Debug)]
pub enum Position<'a> {
    /// At the end.
    Last,
    /// FIRST.
    First,
    /// AFTER a column.
    After(&'a Column),
}

/// ADD COLUMN. Rows need a [`NewColumn::filling`] if [`needs_values`] says so.
pub fn add_column(
    column: &NewColumn,
    position: Position<'_>,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let definitions = physical_definitions(column, set, family, tag)?;
    let names = column.names();
    let mut place = place_text(position);
    let mut specifications = Vec::new();
    for (definition, name) in definitions.iter().zip(names.all()) {
        let mut filling = column.filling.iter();
        specifications.push(match filling.find(|(filled, _)| filled == name) {
            Some((_, Filling::Column(there))) => {
                format!("CHANGE COLUMN {} {definition}{place}", identifier(there))
            }
            _ => format!("ADD COLUMN {definition}{place}"),
        });
        if !place.is_empty() {
            place = format!(" AFTER {}", identifier(name));
        }
    }
    let elements = definitions.iter().skip(names.all().count());
    specifications.extend(elements.map(|element| format!("ADD {element}")));
    let guard = column.guard_definition();
    specifications.extend(guard.map(|guard| format!("ADD {guard}")));
    Ok(specifications)
}

fn place_text(position: Position<'_>) -> String {
    match position {
        Position::Last => String::new(),
        Position::First => " FIRST".to_owned(),
        Position::After(before) => format!(" AFTER {}", identifier(place_name(before))),
    }
}

/// Whether rows that are already there need a sealed value that only the proxy can make: the column
/// is NOT NULL, or has a default.
pub fn needs_values(column: &NewColumn) -> bool {
    let filled = matches!(
        column.default,
        Some(DefaultLiteral::Value(_) | DefaultLiteral::Expression(_))
    );
    !column.nullable || filled
}

/// The physical column behind which a neighbour of `column` stands: the one whose place is the
/// column's. Companions may be anywhere, and stay where they are when a column is moved.
pub fn place_name(column: &Column) -> &str {
    let protection = column.protection.as_ref();
    protection.map_or(&column.name, |protection| &protection.names.enc)
}

/// DROP COLUMN.
pub fn drop_column(table: &Table, column: &Column) -> Result<Vec<String>, SchemaError> {
    let (metadata, layout_names) = known(table, column)?;
    let mut specifications = vec![drop_constraint(&metadata)];
    if !metadata.checks.is_empty() {
        let guard = guard_name(metadata.table_id, metadata.column_id);
        specifications.push(format!("DROP CONSTRAINT {}", identifier(&guard)));
    }
    specifications.extend(drop_gram_index(column));
    specifications.extend(
        layout_names
            .iter()
            .map(|name| format!("DROP COLUMN {}", identifier(name))),
    );
    Ok(specifications)
}

/// RENAME COLUMN, or CHANGE without another change of the definition.
pub fn rename_column(
    table: &Table,
    column: &Column,
    new_name: &str,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (mut new, _) = known(table, column)?;
    new_name.clone_into(&mut new.name);
    rename(&new, table, column, Position::Last, set, family, tag)
}

/// The specifications that give a column another name, and whatever else `new` says.
fn rename(
    new: &ColumnMetadata,
    table: &Table,
    column: &Column,
    position: Position<'_>,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (old, old_names) = known(table, column)?;
    let layout = layout_of(new, column, column.nullable);
    check_name(&new.name, &layout.names)?;
    let guard = guard_name(old.table_id, old.column_id);
    let is_guarded = !old.checks.is_empty();
    let mut specifications = vec![
        drop_constraint(&old),
        format!(
            "CHANGE COLUMN {} {}{}",
            identifier(&old_names[0]),
            layout.enc_definition(set, family, tag)?,
            place_text(position)
        ),
    ];
    let rebuilt = drop_gram_index(column);
    let index = rebuilt.as_ref().and_then(|_| layout.index_definition());
    specifications.extend(rebuilt);
    for (old_name, new_name) in old_names.iter().zip(layout.names.all()).skip(1) {
        specifications.push(format!(
            "RENAME COLUMN {} TO {}",
            identifier(old_name),
            identifier(new_name)
        ));
    }
    specifications.extend(index.map(|index| format!("ADD {index}")));
    specifications.push(format!("ADD {}", layout.constraint_definition()));
    if is_guarded {
        // of constraints that were dropped
        specifications.insert(0, format!("DROP CONSTRAINT {}", identifier(&guard)));
        let guard = check::guard(&layout.names.enc, &guard);
        specifications.push(format!("ADD {guard}"));
    }
    Ok(specifications)
}

/// ALTER COLUMN … SET DEFAULT, or DROP DEFAULT with `None`. Rows that exist keep their values.
pub fn set_default(
    table: &Table,
    column: &Column,
    default: Option<&DefaultLiteral>,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (mut metadata, _) = known(table, column)?;
    metadata.default = changed_default(&metadata, column.nullable, default, family);
    check_protectable(&new_column(&metadata, column.nullable), family)?;
    modify(&metadata, column, set, family, tag)
}

/// A CHECK over the column, by its number, is dropped. The guard stays: who does not know yet that
/// the constraint is gone must not store a refused cell.
pub fn forget_check(
    table: &Table,
    column: &Column,
    number: usize,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (mut metadata, _) = known(table, column)?;
    forget(&mut metadata, number);
    modify(&metadata, column, set, family, tag)
}

fn forget(metadata: &mut ColumnMetadata, number: usize) {
    if let Some(check) = metadata.checks.get_mut(number) {
        *check = Check::dropped();
    }
}

/// What a definition says beside the type. No cell depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redefinition<'a> {
    /// The name, perhaps another one.
    pub name: &'a str,
    /// Whether there may be NULL. Another name beside it is not supported.
    pub nullable: bool,
    /// DEFAULT.
    pub default: Option<&'a DefaultLiteral>,
    /// COMMENT, the user's own.
    pub comment: &'a str,
    /// Whether it names a character set or a collation.
    pub explicit_collation: bool,
    /// Whether it leaves out the CHECK that belongs to the definition. The guard stays, as it does
    /// where a constraint is dropped.
    pub drops_check: bool,
}

impl Redefinition<'_> {
    fn apply(&self, metadata: &mut ColumnMetadata, family: Family) {
        self.name.clone_into(&mut metadata.name);
        metadata.default = changed_default(metadata, self.nullable, self.default, family);
        self.comment.clone_into(&mut metadata.comment);
        metadata.explicit_collation = self.explicit_collation;
        let own = metadata.checks.iter_mut().filter(|check| check.in_column);
        own.filter(|_| self.drops_check)
            .for_each(|check| *check = Check::dropped());
    }
}

/// MODIFY COLUMN, or CHANGE if it has another name. `position` is [`Position::Last`] where it says
/// none: the column stays in its place.
pub fn redefine(
    table: &Table,
    column: &Column,
    new: &Redefinition<'_>,
    position: Position<'_>,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (mut metadata, _) = known(table, column)?;
    new.apply(&mut metadata, family);
    check_protectable(&new_column(&metadata, new.nullable), family)?;
    let changes_null = new.nullable != column.nullable;
    if metadata.name != column.name {
        if changes_null {
            return Err(SchemaError::DefinitionNotUnderstood {
                table: table.name.clone(),
            });
        }
        return rename(&metadata, table, column, position, set, family, tag);
    }
    let layout = layout_of(&metadata, column, new.nullable);
    let enc = layout.enc_definition(set, family, tag)?;
    let mut specifications = vec![format!("MODIFY COLUMN {enc}{}", place_text(position))];
    if changes_null {
        // the companions are NULL where the cell is, and the CHECK says how
        specifications.insert(0, drop_constraint(&metadata));
        let companions = layout.searched_definitions();
        specifications.extend(companions.map(|definition| format!("MODIFY COLUMN {definition}")));
        specifications.push(format!("ADD {}", layout.constraint_definition()));
    }
    Ok(specifications)
}

/// Other actions of the foreign keys whose first column it is.
pub fn set_actions(
    table: &Table,
    column: &Column,
    actions: KeyActions,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (mut metadata, _) = known(table, column)?;
    metadata.actions = actions;
    modify(&metadata, column, set, family, tag)
}

/// The same definition under the mark of a new set.
pub fn renew_comment(
    table: &Table,
    column: &Column,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let (metadata, _) = known(table, column)?;
    modify(&metadata, column, set, family, tag)
}

/// A change of a protected column that the table has, by the column's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// DROP COLUMN.
    Drop(usize),
    /// RENAME COLUMN.
    Rename(usize, &'a str),
    /// ALTER COLUMN … SET DEFAULT or DROP DEFAULT.
    Default(usize, Option<&'a DefaultLiteral>),
    /// MODIFY COLUMN.
    Redefine(usize, Redefinition<'a>),
    /// DROP CONSTRAINT of the CHECK with this number.
    ForgetCheck(usize, usize),
    /// ADD FOREIGN KEY with actions that the server's key does not have.
    Actions(usize, KeyActions),
}

/// The mark of all protected columns that a table has after these changes.
pub fn set_after(
    table: &Table,
    changes: &[Change<'_>],
    added: &[NewColumn],
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<SetMark, SchemaError> {
    let mut columns = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        if column.protection.is_none() {
            continue;
        }
        let (mut metadata, _) = known(table, column)?;
        let mut stays = true;
        for change in changes {
            match change {
                Change::Drop(which) if *which == index => stays = false,
                Change::Rename(which, name) if *which == index => {
                    (*name).clone_into(&mut metadata.name);
                }
                Change::Default(which, default) if *which == index => {
                    metadata.default =
                        changed_default(&metadata, column.nullable, *default, family);
                }
                Change::ForgetCheck(which, number) if *which == index => {
                    forget(&mut metadata, *number);
                }
                Change::Actions(which, actions) if *which == index => {
                    metadata.actions = *actions;
                }
                Change::Redefine(which, new) if *which == index => {
                    new.apply(&mut metadata, family);
                }
                _ => {}
            }
        }
        columns.extend(stays.then_some(metadata));
    }
    columns.extend(added.iter().map(NewColumn::metadata));
    let generation = table.generation().saturating_add(1);
    Ok(SetMark::of(&columns, generation, family, tag))
}

fn changed_default(
    metadata: &ColumnMetadata,
    nullable: bool,
    default: Option<&DefaultLiteral>,
    family: Family,
) -> Option<DefaultLiteral> {
    match default {
        Some(default) => Some(normalized(default, &metadata.sql_type)),
        // MariaDB knows no nullable column without a default.
        None if family == Family::MariaDb && nullable => Some(DefaultLiteral::Null),
        None => None,
    }
}

fn modify(
    metadata: &ColumnMetadata,
    column: &Column,
    set: &SetMark,
    family: Family,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> Result<Vec<String>, SchemaError> {
    let layout = layout_of(metadata, column, column.nullable);
    Ok(vec![format!(
        "MODIFY COLUMN {}",
        layout.enc_definition(set, family, tag)?
    )])
}

fn layout_of<'m>(metadata: &'m ColumnMetadata, column: &Column, nullable: bool) -> Layout<'m> {
    let form = column.grams().map_or(GramForm::Words, |(_, form)| form);
    Layout::new(metadata, nullable, column.invisible, form)
}

/// A full-text index follows its column. A key over an expression holds on to it, and MySQL refuses
/// to rename or drop the column.
fn drop_gram_index(column: &Column) -> Option<String> {
    let protection = column.protection.as_ref()?;
    let (_, GramForm::Numbers) = column.grams()? else {
        return None;
    };
    let name = gram_index_name(protection.column_id);
    Some(format!("DROP KEY {}", identifier(&name)))
}

fn drop_constraint(metadata: &ColumnMetadata) -> String {
    format!(
        "DROP CONSTRAINT {}",
        identifier(&constraint_name(metadata.table_id, metadata.column_id))
    )
}

fn new_column(metadata: &ColumnMetadata, nullable: bool) -> NewColumn {
    NewColumn {
        name: metadata.name.clone(),
        sql_type: metadata.sql_type,
        explicit_collation: metadata.explicit_collation,
        deprecated: Vec::new(),
        nullable,
        default: metadata.default.clone(),
        lost_default: nullable && metadata.default.is_none(),
        on_update: metadata.on_update,
        comment: Some(metadata.comment.clone()),
        checks: metadata.checks.clone(),
        own_checks: Vec::new(),
        invisible: false,
        capabilities: metadata.capabilities.clone(),
        without_grams: metadata.without_grams,
        filling: Vec::new(),
        actions: metadata.actions,
        column_id: metadata.column_id,
        table_id: metadata.table_id,
        key_id: metadata.key_id,
        suite: metadata.suite,
        cell_version: metadata.cell_version,
    }
}

/// The definition of a protected column of a sound table, with its physical names.
fn known(table: &Table, column: &Column) -> Result<(ColumnMetadata, Vec<String>), SchemaError> {
    if let Some(reason) = &table.damaged {
        return Err(SchemaError::DamagedTable {
            table: table.name.clone(),
            reason: reason.clone(),
        });
    }
    let not_protected = || SchemaError::NotProtected {
        column: column.name.clone(),
    };
    let protection = column.protection.as_ref().ok_or_else(not_protected)?;
    let metadata = ColumnMetadata {
        name: column.name.clone(),
        sql_type: protection.sql_type,
        explicit_collation: column.explicit_collation,
        default: match &column.default {
            Some(Default::Literal(literal)) => Some(literal.clone()),
            _ => None,
        },
        on_update: column.on_update,
        comment: column.comment.clone(),
        checks: protection.checks.clone(),
        capabilities: protection.capabilities.clone(),
        without_grams: protection.capabilities.like && protection.names.gram.is_none(),
        actions: protection.actions,
        column_id: protection.column_id,
        table_id: table.table_id.ok_or_else(not_protected)?,
        key_id: protection.key_id,
        suite: protection.suite,
        cell_version: protection.cell_version,
    };
    Ok((
        metadata,
        protection.names.all().map(str::to_owned).collect(),
    ))
}
