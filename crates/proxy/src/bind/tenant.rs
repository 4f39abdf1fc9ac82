//! Whose a new row is, by the value that it gives the tenant's column.

use onionskin_physical::tenant_id;
use onionskin_plan::Piece;

use super::{Binder, PlainColumn};

impl Binder<'_> {
    /// Takes notice of whose the row is whose cells come next. `column` is a protected column of
    /// its table, `value` what the row gives the column that tells the tenant.
    ///
    /// Where that is not known before the server stores it, no cell can be sealed.
    pub(super) fn note_tenant(&mut self, column: usize, value: &[Piece], base: usize, row: u64) {
        self.tenant = None;
        let table = &self.keyed.plan.columns[column].table;
        let Some(tenant) = table.tenant() else {
            return;
        };
        let said = table.column(&tenant.column);
        let Some((said, ty)) = said.and_then(|c| Some((c, c.sql_type.as_ref()?))) else {
            return;
        };
        let column = PlainColumn {
            name: &said.name,
            ty,
            nullable: said.nullable,
            auto_increment: said.auto_increment,
            prefix: None,
        };
        if let Some(text) = self.plain_text(&column, value, base, row) {
            self.tenant = tenant_id(self.keyed.keys.tenants(), tenant, ty, &text);
        }
    }
}
