//! What lives for one statement: made when the client's command arrives, used up in what the
//! client may ask about it afterwards.

use std::ops::Range;
use std::sync::Arc;

use onionskin_plan::{Facts, Finds, Verb};
use onionskin_schema::TableName;
use onionskin_wire::StatusFlags;

use crate::bind::FromVariable;
use crate::catalog::KeyedPlan;
use crate::exchange::Rows;

/// The statement that runs.
#[derive(Default)]
pub(crate) struct StatementRun {
    /// Literals of the text that is to be run next that stand for user variables.
    pub from_variables: Vec<FromVariable>,
    /// The tables of a relayed statement, if it makes warnings of errors. Some warnings may be
    /// about rows that must not be left out.
    pub watched: Vec<TableName>,
    /// The generation of the schema in which a relayed statement was planned.
    pub relayed_of: Option<u64>,
    /// The end of an answer that is still to be written, while the server was asked about it.
    pub kept: Option<Vec<u8>>,
    /// Of one among several, its place in the client's text.
    pub part: Option<Box<Range<usize>>>,
    /// It is planned before those in front of it have run.
    pub plans_ahead: bool,
    /// It is not the last of several: its answer says that more results follow.
    pub more_results: bool,
    /// Packets of a file were read from the client, in the place of its command.
    pub read_file: bool,
    /// Rows were written to the client.
    pub wrote: bool,
    /// It has literals in the place of the client's expressions.
    pub computing: bool,
    /// An error was relayed behind other packets.
    pub sent_error: bool,
    /// What it does to `FOUND_ROWS()`.
    pub finds: Finds,
    /// It calls `VALUES()`, of which MySQL warns before anything else.
    pub calls_values: bool,
    /// One of the command's statements says COLLATE.
    pub says_collate: bool,
    /// One of them may set `collation_connection`.
    pub sets_collation: bool,
    /// One of them may set what the server tells of.
    pub sets_tracking: bool,
    /// The server has run another statement since it raised this one's error.
    pub interfered: bool,
    /// What it showed of the error before that.
    pub list: Option<Rows>,
    /// It was not sent yet, and asks for the server's list of warnings, or may leave it as it is.
    pub keeps_list: bool,
    /// It was sent within a transaction that only reads.
    pub reads_only: bool,
    /// The client was told of the server's error in other words than the server's own.
    pub reworded: bool,
    /// The value that the server's error 1062 is about, where it is known.
    pub duplicate: Option<Box<Duplicate>>,
    /// There are warnings beside the error, and it is not known which.
    pub unclear: bool,
    /// Nor is it known which of the server's stand there at a plain server: MySQL warns of
    /// `VALUES()` once more where it prepares a statement again.
    pub is_lost: bool,
    /// The text that it executes, of a statement that was prepared by name.
    pub executed: Option<Arc<[u8]>>,
    /// It has succeeded, and may have made another database the session's.
    pub has_chosen: bool,
    /// The proxy has made this database the session's.
    pub own_database: Option<String>,
    /// The session may be in no database afterwards.
    pub may_lose_database: bool,
    /// Whether a stored function may have run. `None`: no plan says it.
    pub runs_programs: Option<bool>,
    /// It may have left temporary tables behind that are not known.
    pub leaves_temporary: bool,
    /// It may have changed rows, and so have run a trigger.
    pub may_trigger: bool,
    /// It may have read or changed rows, and so have run a program that a table's definition names.
    /// `None`: no facts say it.
    pub touches: Option<bool>,
    /// It may have taken on another role.
    pub says_role: bool,
    /// How many questions there had been when the server had answered it, and `ROW_COUNT()` then.
    pub answered: Option<(u64, i64)>,
    /// `div_precision_increment` of its preparation, where that is the one that counts.
    pub increment: Option<u8>,
}

/// A key's value that met the same one.
pub(crate) struct Duplicate {
    /// The server's text.
    pub message: Vec<u8>,
    /// As a plain server shows it.
    pub value: String,
}

impl StatementRun {
    /// A statement that arrives while the server's session is in this state.
    pub fn new(status: StatusFlags) -> Self {
        StatementRun {
            reads_only: status.contains(StatusFlags::IN_TRANS_READONLY),
            ..StatementRun::default()
        }
    }

    /// Notes what its end depends on.
    pub fn note(&mut self, facts: &Facts) {
        self.finds = facts.finds;
        self.calls_values = facts.values_calls > 0;
        self.says_collate |= facts.says_collate;
        self.sets_collation |= facts.sets_collation;
        self.sets_tracking |= facts.sets_tracking;
        *self.touches.get_or_insert(false) |= facts.touches;
    }

    /// The statement is tried, or tried again. The server has said nothing of it yet, and the
    /// client has heard nothing.
    pub fn begin(&mut self) {
        self.wrote = false;
        self.interfered = false;
        self.list = None;
        self.reworded = false;
        self.duplicate = None;
        self.unclear = false;
        self.is_lost = false;
    }

    /// One of the command's statements runs by this plan.
    pub fn note_programs(&mut self, keyed: &KeyedPlan) {
        let facts = &keyed.plan.facts;
        *self.runs_programs.get_or_insert(false) |= keyed.runs_programs;
        self.leaves_temporary |= facts.leaves_temporary;
        self.may_trigger |= facts.verb != Verb::Select;
        self.says_role |= facts.says_role;
        // of a text that was prepared by name, too
        self.sets_tracking |= facts.sets_tracking;
    }

    /// Whether a stored program may have run.
    pub fn may_run_programs(&self) -> bool {
        self.runs_programs != Some(false)
    }
}
