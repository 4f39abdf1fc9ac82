//! The protected columns of a table as a whole.
//!
//! A comment authenticates one column. So that none can be taken out of protection unnoticed, and
//! no older comment be put back, each comment also holds a mark of all of them: a generation, which
//! every change of a protected column counts up, and a tag over the definitions of all protected
//! columns. Every definition that changes one of them writes all comments anew, in the same
//! statement.
//!
//! Tables of earlier versions have no mark. They get one with their next change.

use onionskin_value::Family;

use crate::{
    comment::{self, ColumnMetadata},
    ddl::NewColumn,
    protection::ENC_SUFFIX,
    table::Table,
};

/// What stands before the bytes that the tag covers. Comments and aliases begin in another way.
const PURPOSE: &str = "onionskin:set|";

/// Why a table is damaged whose protected columns are not all of those that were defined together.
pub(crate) const INCOMPLETE: &str =
    "its protected columns are not those that were defined together: one was taken out or put in";
/// Why a table is damaged whose comments are of different times.
pub(crate) const OF_DIFFERENT_TIMES: &str =
    "its columns have definitions of different times: an older one was put back";

/// What each comment of a table says of all its protected columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetMark {
    /// Counted up by each change of a protected column; begins with 1.
    pub generation: u64,
    /// Over the definitions of all protected columns.
    pub tag: [u8; 16],
}

impl SetMark {
    /// The mark of a table that is made with these protected columns.
    pub fn of_new_table(
        columns: &[NewColumn],
        family: Family,
        tag: impl Fn(&[u8]) -> [u8; 16],
    ) -> Self {
        let columns: Vec<ColumnMetadata> = columns.iter().map(NewColumn::metadata).collect();
        Self::of(&columns, 1, family, tag)
    }

    /// The mark of these protected columns.
    pub(crate) fn of(
        columns: &[ColumnMetadata],
        generation: u64,
        family: Family,
        tag: impl Fn(&[u8]) -> [u8; 16],
    ) -> Self {
        let members = columns.iter().map(|metadata| Member {
            physical_name: format!("{}{ENC_SUFFIX}", metadata.name),
            column_id: metadata.column_id,
            body: comment::body(metadata, family),
        });
        Self {
            generation,
            tag: tag(&tagged_bytes(generation, members.collect())),
        }
    }
}

/// How far the protected columns that a server shows are all that the table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whole {
    /// The comments have no mark: an earlier version wrote them.
    #[default]
    Unmarked,
    /// These are all. With the generation.
    All(u64),
    /// Others belong to them: a view shows a part, and so does a table to an account that may not
    /// see all columns. With the generation.
    Part(u64),
}

impl Whole {
    /// The generation of the marks; 0 without.
    pub fn generation(self) -> u64 {
        match self {
            Self::Unmarked => 0,
            Self::All(generation) | Self::Part(generation) => generation,
        }
    }
}

/// A protected column by what its own comment authenticates.
struct Member {
    physical_name: String,
    column_id: [u8; 4],
    body: String,
}

/// What the comments of a table say of their set, one after the other.
#[derive(Default)]
pub(crate) struct Members {
    members: Vec<Member>,
    marks: Vec<Option<SetMark>>,
}

impl Members {
    /// Adds a column whose comment has been found authentic for `physical_name`.
    pub(crate) fn add(&mut self, comment: &str, physical_name: &str, column_id: [u8; 4]) {
        let (body, mark) = comment::body_and_mark(comment);
        self.marks.push(mark);
        self.members.push(Member {
            physical_name: physical_name.to_owned(),
            column_id,
            body: body.to_owned(),
        });
    }

    /// What they are together; an error if they cannot be of one time.
    pub(crate) fn judged(
        self,
        verify: impl Fn(&[u8], &[u8; 16]) -> bool,
    ) -> Result<Whole, &'static str> {
        let first = self.marks.first().copied().flatten();
        if self.marks.iter().any(|mark| *mark != first) {
            return Err(OF_DIFFERENT_TIMES);
        }
        let Some(SetMark { generation, tag }) = first else {
            return Ok(Whole::Unmarked);
        };
        let bytes = tagged_bytes(generation, self.members);
        Ok(match verify(&bytes, &tag) {
            true => Whole::All(generation),
            false => Whole::Part(generation),
        })
    }
}

/// Whether protected columns that are missing from `table` ([`Table::is_part`]) are missing in the
/// account's sight only. `shown` is the text of `SHOW CREATE TABLE`, or `None` if the server does
/// not let the account have it: it has no privilege on the table as a whole then, so it sees the
/// columns that it has privileges on.
pub fn is_rightly_part(table: &Table, shown: Option<&str>) -> bool {
    let Some(shown) = shown else {
        return true;
    };
    let is_table = shown.starts_with("CREATE TABLE") || shown.starts_with("CREATE TEMPORARY TABLE");
    // a view shows what it selects; else the text has columns that the account does not see
    !is_table || shown.matches(comment::MARK).count() > table.protected_columns().count()
}

/// The order of columns does not matter. Neither names nor comments hold NUL.
fn tagged_bytes(generation: u64, mut members: Vec<Member>) -> Vec<u8> {
    members.sort_by_key(|member| member.column_id);
    let mut bytes = format!("{PURPOSE}{generation}").into_bytes();
    for member in members {
        for part in [&member.physical_name, &member.body] {
            bytes.push(0);
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    bytes
}
