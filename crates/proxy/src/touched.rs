//! Cells that a statement opens and seals, by column.
//!
//! They are counted where cells are opened (`open`) and sealed (`bind/fill.rs`), so that no way of
//! carrying out a statement can leave them out, nor one that ends in the middle. What opens cells
//! is made in many places, and tells its counts when it is dropped: to its thread, which is the
//! session's.

use std::cell::RefCell;
use std::sync::Arc;

use onionskin_plan::ColumnUse;

/// Cells, and, where an audit log is written, of which columns.
#[derive(Default)]
pub(crate) struct Cells {
    total: u64,
    names_columns: bool,
    by_column: Vec<(ColumnUse, u64)>,
}

impl Cells {
    /// Whether columns are told apart from now on.
    pub fn name_columns(&mut self, names: bool) {
        self.names_columns = names;
    }

    /// So many more of this column.
    #[inline]
    pub fn add(&mut self, used: &ColumnUse, cells: u64) {
        self.total += cells;
        if self.names_columns {
            self.add_named(used, cells);
        }
    }

    fn add_named(&mut self, used: &ColumnUse, cells: u64) {
        let known = self
            .by_column
            .iter_mut()
            .find(|(known, _)| is_same(known, used));
        match known {
            Some((_, count)) => *count += cells,
            None => self.by_column.push((used.clone(), cells)),
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Those of each column, if they are told apart.
    pub fn by_column(&self) -> &[(ColumnUse, u64)] {
        &self.by_column
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.total = 0;
        self.by_column.clear();
    }
}

/// Whether both are the same column of the same snapshot.
pub(crate) fn is_same(one: &ColumnUse, other: &ColumnUse) -> bool {
    one.index == other.index && Arc::ptr_eq(&one.table, &other.table)
}

thread_local! {
    static OPENED: RefCell<Cells> = RefCell::default();
}

/// Cells of this column were opened on this thread.
pub(crate) fn opened(used: &ColumnUse, cells: u64) {
    OPENED.with_borrow_mut(|opened| opened.add(used, cells));
}

/// What this thread has opened since it was asked last goes to `cells`, which begins anew.
pub(crate) fn take_opened(cells: &mut Cells) {
    cells.clear();
    OPENED.with_borrow_mut(|opened| {
        opened.names_columns = cells.names_columns;
        std::mem::swap(opened, cells);
    });
}
