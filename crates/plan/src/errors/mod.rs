//! The one table of errors that onionskin itself raises, and the reasons of its first entry.
//! docs/errors.md is made from both.
//!
//! A statement that is not understood is refused with a [`NotUnderstood`] and with nothing else:
//! its entry is private. Nor can what a refusal is about be read back, but as a whole message. So
//! code that looks at a refusal looks at its entry or its reason, never at words.
//!
//! Errors of the server keep their numbers and pass through. Numbers from 2000 to 2999 are not
//! used: they belong to client libraries, which take them for malformed packets in an answer.

mod not_understood;

use std::fmt;

pub use self::not_understood::NotUnderstood;

/// An entry of the table. Other crates make none.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Stable code, first word of the message.
    pub code: &'static str,
    /// MySQL error number.
    pub number: u16,
    /// SQLSTATE.
    pub state: &'static str,
    /// What it means, one sentence.
    pub meaning: &'static str,
    /// The way out.
    pub way_out: &'static str,
}

macro_rules! table {
    ($($vis:vis $name:ident = $code:literal, $number:literal, $state:literal, $meaning:literal, $way:literal;)*) => {
        $(
            #[doc = $meaning]
            $vis static $name: Entry = Entry { code: $code, number: $number, state: $state, meaning: $meaning, way_out: $way };
        )*
        /// All entries, by code.
        static TABLE: &[&Entry] = &[$(&$name),*];
    };
}

table! {
    NOT_UNDERSTOOD = "OS1001", 1235, "42000",
        "The statement names a protected table and could not be understood completely.",
        "Write it in a simpler form, or run it in pieces; `onionskin explain` shows what is understood.";
    pub NO_EQUALITY = "OS1002", 1235, "42000",
        "A protected column is compared for equality and has no capability for it.",
        "Give it the capability, onionskin migrate TABLE --add \"COLUMN: eq\", or leave it out of the condition.";
    pub NO_RANGE = "OS1003", 1235, "42000",
        "A protected column is compared by order and has no capability for it.",
        "Give it the capability, onionskin migrate TABLE --add \"COLUMN: range\", or leave it out of the condition.";
    pub EXPRESSION = "OS1004", 1235, "42000",
        "A protected column is used in an expression that cannot be computed on ciphertext.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or select the column and compute in the application.";
    pub NOT_CONSTANT = "OS1005", 1235, "42000",
        "A protected column is assigned something that is neither a literal nor a parameter.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or compute the value in the application and pass it as a literal or parameter.";
    pub OTHER_KEY = "OS1006", 1235, "42000",
        "Two columns are compared whose tokens are made under different keys.",
        "Give both columns the same join group, ENCRYPTED FOR (eq, join:NAME), the same type, and one data key and suite (onionskin migrate TABLE --rotate).";
    pub EXPORT = "OS1007", 1235, "42000",
        "A subquery, view or union hands a protected column on.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or select the protected column in the outermost SELECT.";
    pub STATEMENT = "OS1008", 1235, "42000",
        "This kind of statement is not supported on protected tables.",
        "Use SELECT, INSERT, REPLACE, UPDATE or DELETE.";
    pub NEEDS_KEY = "OS1009", 1235, "42000",
        "The update reads rows before it writes them and needs a primary key, which it does not change, to find them again.",
        "Give the table a primary key; change the key's own columns in a statement of their own.";
    pub AMBIGUOUS = "OS1010", 1052, "23000",
        "A column name fits more than one table, one of which protects it.",
        "Qualify the column with its table.";
    pub GROUPING = "OS1011", 1235, "42000",
        "Grouping or distinction with a protected column in this form is not supported.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or select the keys of GROUP BY and aggregates only, and aggregate other columns in a statement of their own.";
    pub INDEX = "OS1012", 1235, "42000",
        "The server cannot make this of what a protected column shows it.",
        "An index needs a column with eq or range. UNIQUE over a part of the texts, FULLTEXT, a CHECK over several columns and expressions need plaintext: leave them out, or the column (\"NAME\" = \"plain\" in [protect]).";
    pub DEFINITION = "OS1013", 1235, "42000",
        "A column cannot be protected as it is defined.",
        "Leave out the attribute that the message names, or leave the column unprotected.";
    pub ALTERATION = "OS1014", 1235, "42000",
        "This change of a protected table would need its sealed data rewritten, or is not understood.",
        "Make each change in an ALTER TABLE of its own; changes that rewrite data are a migration's work.";
    pub EXECUTABLE_COMMENT = "OS1015", 1235, "42000",
        "A statement on a protected table contains a comment that servers execute.",
        "Write the statement without it.";
    pub DYNAMIC = "OS1016", 1235, "42000",
        "A statement that is prepared by name, in SQL, touches protected tables and could not be understood completely.",
        "Give its text as one string or variable and its values as variables, or prepare it through the protocol.";
    pub TRACKING = "OS1017", 1235, "42000",
        "The server does not tell the proxy what changes in the session.",
        "Set variables by SET x or SET SESSION x, outside of comments. The server must know session tracking.";
    pub VALUE = "OS1018", 1235, "42000",
        "The value cannot be converted to the protected column's type exactly as the server would.",
        "Pass the value in the column's own type.";
    pub CHARACTER_SET = "OS1019", 1235, "42000",
        "The session's character set is not one in which statements on protected tables can be read safely.",
        "Use SET NAMES utf8mb4, or another character set of docs/charsets.md.";
    pub TIME_ZONE = "OS1020", 1235, "42000",
        "The session's time zone is not known to the proxy, and a TIMESTAMP is protected.",
        "Set time_zone to an offset such as '+00:00', or to a name of the IANA database.";
    pub UNION_OF_SEALED = "OS1021", 1235, "42000",
        "A set operation over protected columns is not supported.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or run the parts as separate statements.";
    pub COLUMN_COUNT = "OS1022", 1136, "21S01",
        "Column count doesn't match value count. Mostly in the server's own words, without the code.",
        "Give one value for each column.";
    pub UNKNOWN_COLUMN = "OS1023", 1054, "42S22",
        "Unknown column. Mostly in the server's own words, without the code.",
        "Check the column's name.";
    pub CANDIDATES = "OS1024", 1235, "42000",
        "The column's token or order key covers a part of the value only, as of a long text or with eq:BITS and range:BITS, and the proxy cannot finish this use of it.",
        "Use the comparison in the WHERE clause of a plain SELECT, UPDATE or DELETE, set engine = \"auto\" under [scratch], or keep all bits (docs/formats.md says which texts are short enough).";
    pub SCRATCH_FUNCTION = "OS1025", 1235, "42000",
        "The statement would run on the scratch engine, where this function or variable means something else, or nothing.",
        "Ask for it in a statement of its own, or leave the protected columns out of this one.";
    pub SCRATCH_TYPE = "OS1026", 1235, "42000",
        "The statement would run on the scratch engine, and values of this column's type cannot be carried there exactly.",
        "Leave the column out of the statement.";
    pub CASCADE = "OS1027", 1235, "42000",
        "A foreign key says to write into protected columns: the server would write their tokens and leave their sealed cells as they are.",
        "Change the rows that refer to the row first, in the application, or define the key with RESTRICT, NO ACTION or ON DELETE CASCADE.";
    pub VIEW = "OS1028", 1235, "42000",
        "A view over a protected table of this kind is not supported.",
        "Select columns of one protected table by their names, without groups, and compare protected columns only as the server can; write to the table itself where a view of it will not do.";
    pub HANDED_ON = "OS1031", 1235, "42000",
        "A value that is made from a protected column would be stored in a plain one, open to the server.",
        "Protect the column that it is stored in, or select the value and store it in a statement of its own.";
    pub SERVER_FILE = "OS1032", 1235, "42000",
        "The statement would have the server read a file of its own into a protected table, in the clear.",
        "Use LOAD DATA LOCAL INFILE, with a file of the client's.";
    pub SERVER_HELD = "OS1033", 1235, "42000",
        "SELECT … INTO would leave what is made from protected columns with the server, in a variable or a file, in the clear.",
        "Select it and keep it in the application; counts and unprotected columns may go INTO variables and files.";
    pub DUPLICATE_COLUMN = "OS1034", 1060, "42S21",
        "Duplicate column name. In the server's own words, without the code.",
        "Give the column a name that no other column of the table has.";
    pub COMPUTED_DEFAULT = "OS1035", 1235, "42000",
        "The column's value would come from an expression in its DEFAULT, or from ON UPDATE, which the scratch engine has to compute.",
        "Set engine = \"auto\" under [scratch], which starts a scratch engine (docs/scratch.md), or give the column's value in the statement; write the statement in a simpler form if there is one.";
    pub HIDDEN_COLUMNS = "OS1036", 1142, "42000",
        "The statement holds constants, and the server shows the account no columns of a table or view in it, so that nobody knows whether they are protected.",
        "Grant the account SELECT on the columns that it compares, or make the view anew; statements without constants go through as they are.";
    pub KEY_TOO_LONG = "OS1037", 1071, "42000",
        "Specified key was too long; max key length is 3072 bytes.",
        "Give the column fewer characters, or name a prefix in an index that is not unique.";
    pub KEY_WITHOUT_LENGTH = "OS1038", 1170, "42000",
        "BLOB or TEXT column used in key specification without a key length.",
        "Name a prefix in an index that is not unique, or make the column a VARCHAR or VARBINARY.";
    pub COUNTER_IN_HASH = "OS1039", 4169, "HY000",
        "AUTO_INCREMENT column cannot be used in a UNIQUE index that the server makes as a hash.",
        "Leave the AUTO_INCREMENT column out of the index: it is unique by itself. Or make the long column short enough for an index.";
    pub MIGRATION = "OS1040", 1235, "42000",
        "Every row would have to be sealed, opened or sealed anew, which is a migration's work.",
        "Run the command; statements go on meanwhile.";
    pub FOREIGN_KEY = "OS1041", 1235, "42000",
        "The server cannot compare the two columns of a foreign key if only one of them is protected.",
        "Keep both in plaintext, as ids usually are: \"NAME\" = \"plain\" in [protect], or \"*_id\" = \"plain\"; then make the table anew, or run onionskin migrate TABLE --decrypt NAME. Or protect both, with one join group.";
    pub FUNCTION = "OS1042", 1235, "42000",
        "The proxy cannot compute this call of a cryptographic function, and would show the server its key or its text.",
        "Give key and text as literals, as parameters, or as variables that secrets of [functions] names (docs/functions.md).";
    pub MET_ROW = "OS1043", 1235, "42000",
        "It cannot be told which rows of the statement meet others by a unique key, so that changed rows cannot be counted.",
        "Give the values of the key as literals or parameters of the column's own type, or write one row in a statement.";
    pub PROGRAM = "OS1044", 1235, "42000",
        "A stored program names a protected table and does something else than reading and writing plain columns by their names.",
        "Leave that to the application, or take the table out of the program; docs/objects.md says what programs may do.";
    pub BROKEN_VIEW = "OS1045", 1356, "HY000",
        "A view names protected tables or columns that are gone. Mostly in the server's own words, without the code.",
        "Make the view anew (CREATE OR REPLACE VIEW), or drop it.";
    pub NO_TABLE = "OS1046", 1146, "42S02",
        "An enforced section of [protect] names a table, and there is none of this name.",
        "Make the table as the section says. If the name means something else in the statement, use another one; if the section's name is wrong, correct it.";
    pub TENANT = "OS1047", 1235, "42000",
        "A table's cells are sealed under keys of their rows' tenants (KEY BY), and the statement does not say whose a row is, or gives it another tenant.",
        "Give new rows their tenant as a literal or a parameter of the column's own type, and set protected columns of rows that are there by UPDATE with literals or parameters. Another tenant takes DELETE and INSERT. docs/tenants.md";
    pub DAMAGED = "OS1101", 1105, "HY000",
        "The table's protection metadata is missing, changed or not authentic.",
        "Restore the table's definition (comments and columns) from a backup; check the keys.";
    pub TAMPERED = "OS1102", 1105, "HY000",
        "A sealed cell does not open: it was changed, moved from elsewhere, or sealed under another key.",
        "Compare the row with a backup; check that this proxy has the right keys.";
    pub UNKNOWN_KEY = "OS1103", 1105, "HY000",
        "A cell or a definition names a key that this proxy does not have.",
        "Give this proxy the newest key file, and start it anew.";
    pub SEAL_BOUND = "OS1104", 1105, "HY000",
        "A key has sealed as many values as it safely may.",
        "Give the table new keys: onionskin migrate TABLE --rotate.";
    pub STALE = "OS1105", 1105, "HY000",
        "The table changed while the statement ran, again after a refresh.",
        "Run the statement again.";
    pub PHYSICAL = "OS1106", 1105, "HY000",
        "The result would show sealed columns under their physical names.",
        "Query the protected table itself, by its logical column names.";
    pub INTERNAL = "OS1107", 1105, "HY000",
        "The proxy contradicted itself and stopped rather than guess.",
        "Report the statement's shape as a bug.";
    pub UNPROTECTED = "OS1108", 1105, "HY000",
        "[protect] enforces protection that the table does not have.",
        "Find out who changed the table. Make it as [protect] says, or encrypt it (onionskin migrate TABLE --encrypt); or change [protect].";
    pub PINNED = "OS1109", 1105, "HY000",
        "The table is not the one that was pinned.",
        "Find out who changed the table. If the change was wanted, run onionskin pin --accept; otherwise restore the table from a backup.";
    pub SNAPSHOT = "OS1110", 1412, "HY000",
        "The definition of a table has changed since the transaction began, and MySQL shows the transaction the old one.",
        "End the transaction, and run it again.";
    pub KEY_AT_REST = "OS1111", 1105, "HY000",
        "The definition of a column, or a cell, names a data key that is read-only, retired or destroyed: nothing is sealed under it any more, and a key that is retired or destroyed opens nothing.",
        "If the table belongs under this key: onionskin keys read-only N takes a retired key back, and onionskin migrate TABLE --rotate moves the table to the active key. If it does not, somebody has brought an old definition back: restore the table.";
    pub FORGOTTEN = "OS1112", 1105, "HY000",
        "The row's tenant was forgotten: its secret is destroyed, nothing of it opens any more, and nothing is sealed for it.",
        "Delete the tenant's rows, or leave them out by a condition on the tenant's column; forgotten = \"null\" shows such cells as NULL. A tenant that comes back needs another value of that column. docs/tenants.md";
    pub NO_TENANTS = "OS1113", 1105, "HY000",
        "Cells of a table are sealed under keys of their rows' tenants (KEY BY), and this proxy has no file of the tenants' secrets.",
        "Name the file in the configuration, tenants = \"file:…\"; onionskin tenants init makes one.";
    pub MEMORY = "OS1201", 1038, "HY001",
        "The rows to be finished by the proxy exceed its memory bound.",
        "Narrow the statement with conditions or LIMIT.";
    pub COMMAND = "OS1202", 1047, "08S01",
        "The protocol command is unknown or not supported.",
        "Use a client that speaks the MySQL protocol without extensions.";
    pub MALFORMED = "OS1203", 1835, "HY000",
        "A packet is malformed.",
        "Check the client library and the network.";
    pub BACKEND_GONE = "OS1204", 1158, "08S01",
        "The server went away, or its answer is not understood; the outcome of the statement is unknown.",
        "Connect again and look before repeating the statement. Where the server went away this stands in the log only: the client's connection ends, as it does without the proxy.";
    pub BACKEND_REFUSED = "OS1205", 1429, "HY000",
        "The server cannot be reached.",
        "Start the server, or correct `backend` in the configuration; where TLS fails, `backend_tls` and `backend_ca`. The proxy's log has the cause.";
    pub TOO_BIG = "OS1206", 1153, "08S01",
        "A packet is larger than the proxy, or the server's `max_allowed_packet`, accepts.",
        "Make the value smaller, or `max_allowed_packet` larger: a sealed value takes a few bytes more than a plain one, and long data in smaller pieces counts as a whole.";
    pub LOGIN = "OS1207", 1251, "08004",
        "The login cannot be relayed safely or at all.",
        "Have the proxy verify the server (`backend_tls`, `backend_ca`) or reach it over a Unix socket, and use a login method of MySQL 4.1 or later.";
    pub SCRATCH_GONE = "OS1208", 1429, "HY000",
        "The scratch engine cannot be used.",
        "Do what the text says is missing; start it, or correct `[scratch]` in the configuration; it must be of the server's family and version.";
    pub SCRATCH_BOUND = "OS1209", 1038, "HY001",
        "The statement needs more rows, time or space on the scratch engine than `scratch_rows`, `scratch_memory`, `scratch_seconds` or its temporary files allow.",
        "Narrow it with conditions that the server can apply, or raise the bounds in the configuration.";
    pub OUT_OF_STEP = "OS1210", 1835, "08S01",
        "The server sent what nobody asked for; the session is closed.",
        "Connect again, and look at the server and at what lies between.";
    pub FINISH_MEMORY = "OS1211", 1038, "HY001",
        "The statements whose rows the proxy finishes at the moment hold as much memory as `finish_memory` allows.",
        "Run the statement again later, narrow it, or raise the bound in the configuration.";
    pub FINISH_ROWS = "OS1212", 1104, "42000",
        "The proxy would have to read more rows for the statement than `finish_rows` allows.",
        "Narrow it with conditions that the server can apply, or raise the bound in the configuration.";
    pub FINISH_SECONDS = "OS1213", 3024, "HY000",
        "The rows that the proxy finishes have not arrived within `finish_seconds`.",
        "Narrow the statement with conditions that the server can apply, or raise the bound in the configuration.";
    pub AUDIT = "OS1214", 1030, "HY000",
        "The audit log has no room, and statements on protected columns do not run without it.",
        "Make room where `folder` of `[audit]` lies; nothing has to be started anew.";
    pub MASKED = "OS1215", 1143, "42000",
        "The column is masked for this account.",
        "Name it as an item of a plain SELECT and nowhere else, or let `[mask]` show it to the account.";
    pub NO_PRIMARY = "OS1216", 1429, "HY000",
        "No member of `backend` can take new sessions.",
        "Do what the text says; `onionskin status` tells what each member is. Sessions are taken again as soon as exactly one of them is the primary.";
    pub DEMOTED = "OS1217", 1053, "08S01",
        "The server of this session is no longer the primary, and the statement was not run.",
        "Connect again: new sessions go to the primary.";
    pub NO_REPLICA = "OS1218", 1429, "HY000",
        "No member of `backend` can take sessions of `listen_read`.",
        "Do what the text says; `onionskin status` tells what each member is. Sessions are taken again as soon as a replica is near enough to the primary.";
    pub NOT_FOR_READS = "OS1219", 1053, "08S01",
        "The server of this session is no longer one that `listen_read` leads to, and the statement was not run.",
        "Connect again: new sessions go to another member.";
    pub ONLY_READS = "OS1220", 1792, "25006",
        "A session of `listen_read` only reads, and this is not known to be a reading statement.",
        "Connect to `listen` for it.";
    pub NOT_CAUGHT_UP = "OS1221", 1205, "HY000",
        "The replica did not get what was written before within `causal_seconds`, and the statement was not run.",
        "Run it again, or read from `listen`.";
    pub NOT_SWITCHED = "OS1222", 1412, "HY000",
        "A table of the statement is protected at the primary and not yet at this replica, which is behind a migration.",
        "Run it again when the replica has caught up, or read from `listen`.";
    pub OTHER_DATABASE = "OS1223", 1105, "HY000",
        "The server has put the session into another database than the client has chosen.",
        "Take USE out of the server's init_connect; if there is none there, find out what lies between.";
}

/// A statement that is not done: which error, and about what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    entry: &'static Entry,
    /// Apart, so that the results of what is not refused stay small.
    about: Box<About>,
    /// There is a scratch engine, which does not help.
    has_engine: bool,
}

/// What a refusal is about. Never a value of the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// A column, a clause; or nothing.
    Words(String),
    Reason(NotUnderstood),
    /// An error of the server's own, in its words: it would raise it, if it saw the statement.
    Server(String),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Words(words) | About::Server(words) => f.write_str(words),
            About::Reason(reason) => reason.fmt(f),
        }
    }
}

/// Its code, and what it is about.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.entry.code, self.about)
    }
}

impl From<NotUnderstood> for Refusal {
    fn from(reason: NotUnderstood) -> Self {
        Refusal {
            entry: &NOT_UNDERSTOOD,
            about: Box::new(About::Reason(reason)),
            has_engine: false,
        }
    }
}

impl Refusal {
    /// A refusal about something.
    pub fn new(entry: &'static Entry, about: impl Into<String>) -> Self {
        Refusal {
            entry,
            about: Box::new(About::Words(about.into())),
            has_engine: false,
        }
    }

    /// The server's error for a name that no column has. `place` is what the server calls the
    /// clause: `where clause`.
    pub(crate) fn unknown_column(name: &str, place: &str) -> Self {
        let text = format!("Unknown column '{name}' in '{place}'");
        Self::of_server(&UNKNOWN_COLUMN, text)
    }

    /// The server's error for a view of tables or columns that are gone.
    pub(crate) fn broken_view(database: &str, name: &str) -> Self {
        let text = format!(
            "View '{database}.{name}' references invalid table(s) or column(s) or function(s) or \
             definer/invoker of view lack rights to use them"
        );
        Self::of_server(&BROKEN_VIEW, text)
    }

    /// The server's error for a name that may mean two columns, of which one is assigned.
    pub(crate) fn ambiguous_column(name: &str) -> Self {
        let text = format!("Column '{name}' in field list is ambiguous");
        Self::of_server(&AMBIGUOUS, text)
    }

    /// The server's error for a new row, counted from 1, with more or fewer values than columns.
    pub(crate) fn column_count(row: usize) -> Self {
        let text = format!("Column count doesn't match value count at row {row}");
        Self::of_server(&COLUMN_COUNT, text)
    }

    /// The server's error for a name that two columns would have.
    pub(crate) fn duplicate_column(name: &str) -> Self {
        Self::of_server(&DUPLICATE_COLUMN, format!("Duplicate column name '{name}'"))
    }

    fn of_server(entry: &'static Entry, text: String) -> Self {
        Refusal {
            entry,
            about: Box::new(About::Server(text)),
            has_engine: false,
        }
    }

    /// The same as a refusal, with its code, if it is an error in the server's words.
    pub fn coded(&self) -> Option<Self> {
        match self.about.as_ref() {
            About::Server(words) => Some(Refusal::new(self.entry, words.clone())),
            About::Words(_) | About::Reason(_) => None,
        }
    }

    /// The same under another entry, which says better what to do about it.
    pub fn under(self, entry: &'static Entry) -> Self {
        Refusal::new(entry, self.about.to_string())
    }

    /// Its entry.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Whether this is its entry.
    pub fn is(&self, entry: &'static Entry) -> bool {
        self.entry == entry
    }

    /// Whether one of these is its entry.
    pub fn is_any(&self, entries: &[&'static Entry]) -> bool {
        entries.contains(&self.entry)
    }

    /// The same where there is a scratch engine: the way out does not name it.
    pub(crate) fn beside_engine(mut self) -> Self {
        self.has_engine = true;
        self
    }

    /// What can be done.
    fn way_out(&self) -> String {
        let way_out = self.entry.way_out;
        let rest = way_out
            .strip_prefix("Set engine = \"auto\" under [scratch]")
            .filter(|_| self.has_engine)
            .and_then(|rest| rest.split_once(", or "));
        match rest {
            Some((_, rest)) => {
                let (first, behind) = rest.split_at(rest.chars().next().map_or(0, char::len_utf8));
                format!("{}{behind}", first.to_uppercase())
            }
            None => way_out.to_owned(),
        }
    }

    /// What was not understood, if that is why.
    pub fn reason(&self) -> Option<&NotUnderstood> {
        match self.about.as_ref() {
            About::Words(_) | About::Server(_) => None,
            About::Reason(reason) => Some(reason),
        }
    }

    /// Its code.
    pub fn code(&self) -> &'static str {
        self.entry.code
    }

    /// MySQL's error number.
    pub fn number(&self) -> u16 {
        self.entry.number
    }

    /// SQLSTATE.
    pub fn state(&self) -> &'static str {
        self.entry.state
    }

    /// The text for the client: code, what it is about, meaning, way out; of an error of the
    /// server's own, its text. At most 511 bytes.
    pub fn message(&self) -> String {
        let e = self.entry;
        let about = self.about.to_string();
        let way_out = self.way_out();
        let mut text = match self.about.as_ref() {
            About::Server(text) => text.clone(),
            _ if about.is_empty() => format!("{}: {} {way_out}", e.code, e.meaning),
            _ => format!("{} {about}: {} {way_out}", e.code, e.meaning),
        };
        if text.len() > 511 {
            let cut = (0..=511)
                .rev()
                .find(|&i| text.is_char_boundary(i))
                .unwrap_or(0);
            text.truncate(cut);
        }
        text
    }
}

/// The codes of the table, in its order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.code)
}

/// docs/errors.md.
pub fn markdown() -> String {
    let mut page = String::from(
        "<!-- The table in crates/plan/src/errors makes this page; do not edit it. -->\n\
         # Errors\n\n\
         What the proxy and the commands say when they refuse. Errors of the server itself keep their\n\
         numbers and texts.\n\n\
         | code | MySQL number | SQLSTATE | meaning | way out |\n|---|---|---|---|---|\n",
    );
    for e in TABLE {
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            e.code, e.number, e.state, e.meaning, e.way_out
        ));
    }
    page.push_str(&not_understood::markdown());
    page
}

/// What planning a part comes to, or why the statement is refused.
pub(crate) type Planned<T> = Result<T, Refusal>;

impl NotUnderstood {
    /// Refuses the statement for this reason.
    pub(crate) fn refuse<T>(self) -> Planned<T> {
        Err(self.into())
    }
}

pub(crate) fn refuse<T>(entry: &'static Entry, about: impl Into<String>) -> Planned<T> {
    Err(Refusal::new(entry, about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(TABLE.windows(2).all(|w| w[0].code < w[1].code));
        assert!(TABLE.iter().all(|e| e.state.len() == 5));
        assert!(TABLE.iter().all(|e| !(2000..3000).contains(&e.number)));
    }

    #[test]
    fn a_message_fits_a_packet_of_old_clients() {
        let long = Refusal::new(&EXPRESSION, "ä".repeat(600));
        assert!(long.message().len() <= 511);
    }

    #[test]
    fn an_engine_that_is_there_is_no_way_out() {
        let refusal = Refusal::new(&EXPRESSION, "a");
        assert!(refusal.message().contains("starts a scratch engine"));
        let message = refusal.beside_engine().message();
        assert!(message.ends_with("Select the column and compute in the application."));
        let other = Refusal::new(&NO_RANGE, "a").beside_engine().message();
        assert!(other.ends_with(NO_RANGE.way_out));
    }

    #[test]
    fn the_page_is_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            page,
            markdown(),
            "run ONIONSKIN_UPDATE=1 cargo test -p onionskin-plan"
        );
    }
}
