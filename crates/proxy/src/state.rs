//! What lexing and values depend on in a session, as the server reports it.
//!
//! Nothing is guessed from `SET` statements: at login the proxy asks for the variables once and
//! has the server track their changes (`session_track_system_variables`).

use std::borrow::Cow;

use onionskin_functions::Cipher;
use onionskin_plan::{LexMode, Settings, UseScratch};
use onionskin_schema::Dialect;
use onionskin_value::{
    Charset, Context, Family, LATEST_TIMESTAMP, LATEST_TIMESTAMP_UNSIGNED, SqlMode, TimeZone,
};
use onionskin_wire::messages::{ColumnDefinition, SessionChange, SessionChanges};
use onionskin_wire::{DefinitionForm, WireError};

use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Server};
use crate::members::{CatchUp, Leading, Side};
use crate::packet_bound::PacketBound;
use crate::unusual::{self, Unusual};

/// The variables that the server is asked to track.
const TRACKED: &str = "autocommit,character_set_client,character_set_connection,character_set_results,sql_mode,time_zone,div_precision_increment,sql_select_limit,sql_big_selects,max_join_size,sql_notes,sql_safe_updates,session_track_system_variables,session_track_schema,session_track_state_change";

/// Behind them, in comments that servers without these variables do not read.
const TRACKED_IF_KNOWN: &str =
    "/*M!110201 ',character_set_collations,block_encryption_mode'*/ /*M!100616 ',note_verbosity'*/";

/// The variables in [`TRACKED_IF_KNOWN`].
const IF_KNOWN: [&str; 3] = [
    "character_set_collations",
    "block_encryption_mode",
    "note_verbosity",
];

/// The word of `sql_mode` that concerns definitions with the word REAL only.
pub(crate) const REAL_AS_FLOAT: &str = "REAL_AS_FLOAT";

/// The variables of whose changes a client wants to know, by its own
/// `session_track_system_variables`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientTracking {
    /// Whatever there is.
    All,
    /// These, in small letters.
    Names(Vec<String>),
}

impl Default for ClientTracking {
    fn default() -> Self {
        ClientTracking::Names(Vec::new())
    }
}

impl ClientTracking {
    /// Reads the variable's value. Words that are no names are nobody's variables.
    pub fn parse(value: &str) -> Self {
        let names = value
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase());
        let mut wanted: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        if wanted.iter().any(|name| name == "*") {
            return ClientTracking::All;
        }
        let in_names = |b: u8| b.is_ascii_alphanumeric() || b"_.".contains(&b);
        wanted.retain(|name| name.bytes().all(in_names));
        wanted.sort_unstable();
        wanted.dedup();
        ClientTracking::Names(wanted)
    }
}

/// What else a session's server is told when it begins, where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing.
    Usual,
    /// It tells the GTIDs of what the session writes.
    Writes,
    /// It takes no writes. `waits`: a node of a Galera cluster waits for what others have written.
    Reads { waits: bool },
}

impl Purpose {
    /// That of a session of this side; `waits`: there are sessions that wait for what was written.
    pub fn of(leading: &Leading, waits: bool) -> Purpose {
        match leading.side {
            Side::Primary if waits => Purpose::Writes,
            Side::Primary => Purpose::Usual,
            Side::Reading(_) => Purpose::Reads {
                waits: waits && leading.catch_up == CatchUp::Node,
            },
        }
    }
}

/// Statements of a purpose, and whether one that fails ends the session.
fn statements_of(purpose: Purpose, family: Family) -> Vec<(&'static [u8], bool)> {
    match (purpose, family) {
        // in a transaction it cannot be set, and was set before
        (Purpose::Writes, Family::MySql) => vec![(TRACK_GTIDS, false)],
        (Purpose::Usual | Purpose::Writes, _) => Vec::new(),
        (Purpose::Reads { waits }, _) => {
            let mut all: Vec<(&[u8], bool)> = vec![(b"SET SESSION TRANSACTION READ ONLY", true)];
            if waits {
                all.push((b"SET SESSION wsrep_sync_wait = 1", true));
            }
            all
        }
    }
}

/// MySQL tells the GTID of each transaction of the session.
pub(crate) const TRACK_GTIDS: &[u8] = b"SET SESSION session_track_gtids = OWN_GTID";

/// The variables that cryptographic functions depend on: behind those that are tracked, and as they
/// are asked for. The rest of MariaDB's is in [`TRACKED_IF_KNOWN`].
fn of_functions(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::MySql => (
            ",block_encryption_mode",
            "CONCAT('0,', @@block_encryption_mode)",
        ),
        Family::MariaDb => (
            ",old_passwords",
            "CONCAT(@@old_passwords, ',' /*M!110201 , @@block_encryption_mode*/)",
        ),
    }
}

/// Whether the proxy has the server track this variable, by its list.
fn is_tracked(list: &str, name: &str) -> bool {
    list.split(',')
        .chain(IF_KNOWN)
        .any(|tracked| tracked == name)
}

/// A value of `sql_select_limit`, unless it is the one without a limit.
fn limiting(value: &str) -> Option<String> {
    (value != u64::MAX.to_string()).then(|| value.to_owned())
}

/// A character set in which statements, and names and numbers in results, can be read.
fn readable(name: &str) -> Option<Charset> {
    Charset::from_name(name).filter(|charset| charset.has_ascii())
}

/// Whether this word of `sql_mode` is one of those under which texts are read here as the servers
/// read them. `MSSQL` is none: names stand in square brackets there. Nor is a word that a later
/// version brings.
fn is_known_mode(word: &str) -> bool {
    const WORDS: [&str; 36] = [
        "REAL_AS_FLOAT",
        "PIPES_AS_CONCAT",
        "ANSI_QUOTES",
        "IGNORE_SPACE",
        "IGNORE_BAD_TABLE_OPTIONS",
        "ONLY_FULL_GROUP_BY",
        "NO_UNSIGNED_SUBTRACTION",
        "NO_DIR_IN_CREATE",
        "POSTGRESQL",
        "ORACLE",
        "DB2",
        "MAXDB",
        "NO_KEY_OPTIONS",
        "NO_TABLE_OPTIONS",
        "NO_FIELD_OPTIONS",
        "MYSQL323",
        "MYSQL40",
        "ANSI",
        "NO_AUTO_VALUE_ON_ZERO",
        "NO_BACKSLASH_ESCAPES",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ALLOW_INVALID_DATES",
        "INVALID_DATES",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "TRADITIONAL",
        "NO_AUTO_CREATE_USER",
        "HIGH_NOT_PRECEDENCE",
        "NO_ENGINE_SUBSTITUTION",
        "PAD_CHAR_TO_FULL_LENGTH",
        "EMPTY_STRING_IS_NULL",
        "SIMULTANEOUS_ASSIGNMENT",
        "TIME_ROUND_FRACTIONAL",
        "TIME_TRUNCATE_FRACTIONAL",
    ];
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// A session's settings.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub family: Family,
    /// The form of column definitions.
    pub form: DefinitionForm,
    /// `None`: a character set in which text cannot be lexed safely.
    pub client_charset: Option<Charset>,
    pub connection_charset: Option<Charset>,
    /// `None`: not one that we can convert to. Binary stands for "as stored".
    pub results_charset: Option<Charset>,
    /// The collation id that string columns of results have; 0: each its own.
    pub results_collation: u16,
    /// `character_set_results` was set, and which collation that means has to be asked: servers
    /// tell the name of the character set alone. MariaDB announces another collation after SET
    /// NAMES, after SET NAMES … COLLATE and after SET character_set_results, MySQL after SET NAMES
    /// … COLLATE.
    pub asks_collation: bool,
    pub sql_mode: SqlMode,
    /// What of `sql_mode` decides how a text is read.
    lex_mode: LexMode,
    /// No word of `sql_mode` changes in another way how a text is read.
    pub mode_is_read: bool,
    /// The word of `sql_mode` under which constants are other values, `''` NULL, or statements have
    /// another grammar, of which the proxy's own are not.
    pub odd_values: Option<&'static str>,
    /// The word under which definitions have other types: REAL is FLOAT ([`REAL_AS_FLOAT`], also a
    /// part of ANSI), TIMESTAMP is DATETIME.
    pub odd_types: Option<&'static str>,
    /// The word under which SHOW CREATE TABLE leaves out what a definition that is made of its text
    /// has to have: collations, AUTO_INCREMENT, comments of indexes with the lengths of prefixes.
    pub shortened: Option<&'static str>,
    /// Variables with values under which statements would mean something else here.
    pub unusual: Unusual,
    /// `sql_notes`, and `basic` in `note_verbosity`: both have to be on for the server to keep
    /// notes.
    notes: [bool; 2],
    /// `sql_safe_updates`: rows are changed only where a key tells which.
    pub safe_updates: bool,
    pub time_zone: TimeZone,
    pub system_time_zone: String,
    /// The last second of a TIMESTAMP.
    pub latest_timestamp: u64,
    /// The server keeps the sign of a zero.
    pub signed_zero: bool,
    /// The server is MariaDB 11.8 or later, for what cannot be asked. Which version between 10.11
    /// and it began with that is not known.
    pub is_mariadb_118: bool,
    /// `REFERENCES` in a column's definition makes a foreign key.
    pub columns_make_keys: bool,
    /// The server runs statements of its own where an account logs in: `init_connect`.
    pub begins_by_itself: bool,
    pub database: Option<String>,
    /// What the server has called it last, until that is held against what the client has asked
    /// for.
    pub told_database: Option<Option<String>>,
    pub div_precision_increment: u8,
    /// `block_encryption_mode`; `None`: the server has one mode, and takes the name of none.
    pub block_cipher: Option<Cipher>,
    /// `old_passwords`: what `PASSWORD()` gives.
    pub old_passwords: bool,
    /// `user@host` as the server authenticated it, and the roles that are active: what it shows
    /// depends on both.
    pub account: String,
    pub default_collation: String,
    /// The collation that the session's database had when it was selected, if that is known.
    pub present_collation: Option<String>,
    /// `character_set_collations`, if the server has it.
    pub charset_collations: String,
    pub found_rows: bool,
    /// The server tracks changes; without that the settings are not known.
    pub tracked: bool,
    /// The client has set whether the server tells the GTIDs of its transactions.
    pub gtids_lost: bool,
    /// Something that plans depend on changed.
    pub changed: bool,
}

/// The cipher of a value of `block_encryption_mode`, which may be the number of one.
fn block_cipher(family: Family, value: &str) -> Option<Cipher> {
    let server = match family {
        Family::MySql => onionskin_functions::Server::MySql,
        Family::MariaDb => onionskin_functions::Server::MariaDb,
    };
    Cipher::named(server, value.as_bytes())
}

/// A switch, as session tracking or SELECT shows it.
fn is_on(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("on")
}

/// The session's database, in UTF-8 likewise: under another name its tables would not be known.
const DATABASE: &str = "CAST(CONVERT(DATABASE() USING utf8mb4) AS BINARY)";

/// Who the session is, in UTF-8 whatever the client's character set: rules about accounts are held
/// against it.
const ACCOUNT: &str =
    "CAST(CONVERT(CONCAT_WS(' as ', CURRENT_USER(), CURRENT_ROLE()) USING utf8mb4) AS BINARY)";

/// What a sum has beside 0, or 4 where there is an `init_connect`, by the server's version: 1 of
/// MariaDB 11.8, 2 where columns make keys.
fn versions(family: Family) -> &'static str {
    match family {
        Family::MariaDb => "/*M!110800 + 1*/ /*M!100500 + 2*/",
        Family::MySql => "/*!90000 + 2*/",
    }
}

fn text(cell: Option<&Option<Vec<u8>>>) -> Option<String> {
    cell?
        .as_ref()
        .map(|b| String::from_utf8_lossy(b).into_owned())
}

/// The statement that has the server track changes: of the variables that the proxy has to know,
/// and of those that the client wants to know. `session_track_state_change` has it tell that a
/// temporary table was made, and be it by a trigger; of settings and prepared texts it tells by the
/// same sign. A program that turns that off is told of by it, too: only what comes next is not.
pub(crate) fn tracking(family: Family, client: &ClientTracking, purpose: Purpose) -> String {
    let mut track = TRACKED.to_owned();
    track += of_functions(family).0;
    for name in unusual::names(family) {
        track = track + "," + name;
    }
    if purpose == Purpose::Writes {
        track += match family {
            Family::MySql => ",session_track_gtids",
            Family::MariaDb => ",last_gtid",
        };
    }
    let track = match client {
        ClientTracking::All => "'*'".to_owned(),
        ClientTracking::Names(names) => {
            // MySQL refuses a list with a name in it twice
            let is_new = |name: &&String| !is_tracked(&track, name);
            let more: String = names
                .iter()
                .filter(is_new)
                .map(|n| format!(",{n}"))
                .collect();
            format!("'{track}{more}' {TRACKED_IF_KNOWN}")
        }
    };
    format!(
        "SET SESSION session_track_schema=ON, SESSION session_track_state_change=ON, SESSION session_track_system_variables={track}"
    )
}

/// What the session's settings are asked with.
fn questions(family: Family) -> String {
    let versions = versions(family);
    let (_, asked_function) = of_functions(family);
    let asked: String = unusual::asked(family)
        .map(|name| format!(", @@{name}"))
        .collect();
    format!(
        "SELECT @@sql_mode, @@character_set_client, @@character_set_connection, \
          @@character_set_results, @@time_zone, @@system_time_zone, {DATABASE}, \
          @@div_precision_increment, {ACCOUNT}, @@collation_database, \
          CONCAT(@@sql_select_limit, ',', @@sql_big_selects), \
          CONVERT_TZ('2040-01-01 00:00:00', '+00:00', '+01:00') = '2040-01-01 00:00:00', \
          -0e0, IF(LENGTH(@@init_connect) > 0, 4, 0) {versions}, @@max_allowed_packet, @@sql_safe_updates, \
          CONCAT(@@sql_notes /*M!100616 , ',', @@note_verbosity*/), {asked_function}{asked} \
          /*M!110201 , @@character_set_collations*/{ALL_ROWS}",
    )
}

impl State {
    /// Asks the server, and has it track changes from now on: of the variables that the proxy has
    /// to know, and of those that the client wants to know.
    pub fn read(
        server: &mut Server,
        family: Family,
        found_rows: bool,
        client: &ClientTracking,
        purpose: Purpose,
    ) -> Outcome<State> {
        let mut first = Vec::new();
        for (statement, must) in statements_of(purpose, family) {
            first.push((server.put_query(statement)?, must));
        }
        let tracks = server.put_query(tracking(family, client, purpose).as_bytes())?;
        let settings = server.put_query(questions(family).as_bytes())?;
        server.flush()?;
        for (question, must) in first {
            match server.read_ok(question) {
                Err(Failure::Server { .. }) if !must => {}
                done => drop(done?),
            }
        }
        let tracked = match server.read_ok(tracks) {
            Ok(_) => true,
            Err(Failure::Server { code, .. }) => {
                tracing::warn!(code, "the server does not track session variables");
                false
            }
            Err(other) => return Err(other),
        };
        let (definitions, row) = server.one_row(settings)?;
        let cell = |i: usize| text(row.get(i));
        let system_time_zone = cell(5).unwrap_or_default();
        let version: u8 = cell(13).and_then(|sum| sum.parse().ok()).unwrap_or(0);
        // behind the ones with places of their own
        let places = 18..18 + unusual::asked(family).count();
        let mut state = State {
            family,
            form: server.form,
            client_charset: None,
            connection_charset: None,
            results_charset: None,
            results_collation: 0,
            asks_collation: false,
            sql_mode: SqlMode::parse(""),
            lex_mode: LexMode::default(),
            mode_is_read: false,
            odd_values: None,
            odd_types: None,
            shortened: None,
            unusual: Unusual::default(),
            notes: [true; 2],
            safe_updates: false,
            time_zone: TimeZone::parse("", &system_time_zone),
            system_time_zone,
            // Beyond TIMESTAMP's range MariaDB's function gives back what it was given. MySQL's
            // knows later moments than its columns.
            latest_timestamp: match (family, cell(11).as_deref()) {
                (Family::MariaDb, Some("0")) => LATEST_TIMESTAMP_UNSIGNED,
                _ => LATEST_TIMESTAMP,
            },
            signed_zero: cell(12).is_some_and(|zero| zero.starts_with('-')),
            is_mariadb_118: version & 1 != 0,
            columns_make_keys: version & 2 != 0,
            begins_by_itself: version & 4 != 0,
            database: cell(6),
            told_database: None,
            div_precision_increment: cell(7).and_then(|t| t.parse().ok()).unwrap_or(4),
            account: cell(8).unwrap_or_default(),
            block_cipher: None,
            old_passwords: false,
            default_collation: cell(9).unwrap_or_default(),
            present_collation: cell(9),
            charset_collations: cell(places.end).unwrap_or_default(),
            found_rows,
            tracked,
            gtids_lost: false,
            changed: true,
        };
        state.set("sql_mode", &cell(0).unwrap_or_default());
        state.set("character_set_client", &cell(1).unwrap_or_default());
        state.set("character_set_connection", &cell(2).unwrap_or_default());
        state.set("character_set_results", &cell(3).unwrap_or_default());
        state.set("time_zone", &cell(4).unwrap_or_default());
        state.set("sql_safe_updates", &cell(15).unwrap_or_default());
        let notes = cell(16).unwrap_or_default();
        let (notes, verbosity) = notes.split_once(',').unwrap_or((&notes, "basic"));
        let functions = cell(17).unwrap_or_default();
        let (old_passwords, mode) = functions.split_once(',').unwrap_or_default();
        state.set("old_passwords", old_passwords);
        state.set("block_encryption_mode", mode);
        state.set("sql_notes", notes);
        state.set("note_verbosity", verbosity);
        for (name, place) in unusual::asked(family).zip(places) {
            state.set(name, &cell(place).unwrap_or_default());
        }
        if state.asks_collation {
            let definition = definitions.first().ok_or(WireError::Malformed("no column"));
            let definition = definition.and_then(|d| ColumnDefinition::decode(d, server.form));
            state.learn_collation(definition.map_err(Failure::Backend)?.charset);
        }
        server.changes.clear();
        server.told_state = false;
        let limits = cell(10).unwrap_or_default();
        let (limit, big_selects) = limits.split_once(',').unwrap_or((&limits, "1"));
        server.select_limit = limiting(limit);
        server.bounds_joins = !is_on(big_selects);
        // no session can change its own
        let packet = cell(14).and_then(|t| t.parse().ok());
        server.bound = PacketBound {
            packet: packet.unwrap_or(usize::MAX),
            lex: state.lex_mode,
            introduced: false,
        };
        Ok(state)
    }

    /// What the definition of a column that the proxy makes begins with, where the form has a
    /// place for it.
    pub fn extended(&self) -> Option<Cow<'static, [u8]>> {
        (self.form == DefinitionForm::Extended).then_some(Cow::Borrowed(b""))
    }

    /// Whose form definitions have.
    pub fn dialect(&self) -> Dialect {
        Dialect {
            family: self.family,
            binary_in_hex: self.is_mariadb_118,
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        match name {
            "sql_mode" => {
                self.sql_mode = SqlMode::parse(value);
                let has = |word: &str| value.split(',').any(|w| w.eq_ignore_ascii_case(word));
                self.lex_mode.ansi_quotes = has("ANSI_QUOTES") || has("ANSI");
                self.lex_mode.no_backslash_escapes = has("NO_BACKSLASH_ESCAPES");
                self.lex_mode.ignore_space = has("IGNORE_SPACE");
                self.mode_is_read = value
                    .split(',')
                    .all(|word| word.is_empty() || is_known_mode(word));
                let first = |words: &[&'static str]| words.iter().copied().find(|word| has(word));
                self.odd_values = first(&["EMPTY_STRING_IS_NULL", "ORACLE"]);
                self.odd_types = first(&["MAXDB", REAL_AS_FLOAT]);
                self.shortened = first(&[
                    "NO_FIELD_OPTIONS",
                    "NO_KEY_OPTIONS",
                    "NO_TABLE_OPTIONS",
                    "POSTGRESQL",
                    "DB2",
                    "MAXDB",
                    "MYSQL323",
                    "MYSQL40",
                    "ANSI",
                ]);
            }
            "character_set_client" => {
                self.client_charset = readable(value);
                self.lex_mode.charset = self.client_charset.unwrap_or_default();
            }
            "character_set_connection" => self.connection_charset = readable(value),
            "character_set_results" => {
                // NULL: no conversion
                let charset = if value.is_empty() {
                    Some(Charset::Binary)
                } else {
                    readable(value)
                };
                self.results_charset = charset;
                // without conversion each column is announced with its own
                self.results_collation = match value {
                    "" => 0,
                    _ => charset.map_or(0, |c| c.default_collation_id(self.family)),
                };
                self.asks_collation = self.results_collation != 0;
            }
            "time_zone" => self.time_zone = TimeZone::parse(value, &self.system_time_zone),
            "character_set_collations" => self.charset_collations = value.to_owned(),
            "div_precision_increment" => {
                self.div_precision_increment = value.parse().unwrap_or(4);
                return;
            }
            "old_passwords" => {
                self.old_passwords = is_on(value);
                return;
            }
            "block_encryption_mode" => {
                self.block_cipher = block_cipher(self.family, value);
                return;
            }
            "sql_safe_updates" => {
                self.safe_updates = is_on(value);
                return;
            }
            "sql_notes" => {
                self.notes[0] = is_on(value);
                return;
            }
            "note_verbosity" => {
                self.notes[1] = value.split(',').any(|w| w.eq_ignore_ascii_case("basic"));
                return;
            }
            "session_track_system_variables" | "session_track_schema" => self.tracked = false,
            "session_track_state_change" if is_on(value) => return,
            "session_track_state_change" => self.tracked = false,
            "session_track_gtids" => {
                self.gtids_lost = !value.eq_ignore_ascii_case("OWN_GTID");
                return;
            }
            other if self.unusual.learn(other, value) => {}
            _ => return,
        }
        self.changed = true;
    }

    /// What the session has set `sql_select_limit` to, if these changes tell: the inner value is
    /// `None` where it limits nothing.
    pub fn select_limit(changes: &[u8]) -> Option<Option<String>> {
        let set = SessionChanges(changes).filter_map(|change| match change {
            Ok(SessionChange::SystemVariable { name, value }) if name == b"sql_select_limit" => {
                Some(limiting(&String::from_utf8_lossy(value)))
            }
            _ => None,
        });
        set.last()
    }

    /// Whether `max_join_size` bounds what a `SELECT` reads, if these changes tell. Setting it sets
    /// `sql_big_selects`, of which the server does not tell then.
    pub fn bounds_joins(changes: &[u8]) -> Option<bool> {
        let (mut by_switch, mut by_size) = (None, None);
        for change in SessionChanges(changes) {
            let Ok(SessionChange::SystemVariable { name, value }) = change else {
                continue;
            };
            let value = String::from_utf8_lossy(value);
            match name {
                b"sql_big_selects" => by_switch = Some(!is_on(&value)),
                b"max_join_size" => by_size = Some(limiting(&value).is_some()),
                _ => {}
            }
        }
        // what is told is how it is in the end
        by_switch.or(by_size)
    }

    /// Takes over what the server said in its answers.
    pub fn observe(&mut self, changes: &[u8]) {
        for change in SessionChanges(changes) {
            match change {
                Ok(SessionChange::SystemVariable { name, value }) => {
                    if let (Ok(name), Ok(value)) =
                        (std::str::from_utf8(name), std::str::from_utf8(value))
                    {
                        self.set(name, value);
                    } else {
                        self.tracked = false;
                    }
                }
                Ok(SessionChange::Schema(name)) => {
                    self.present_collation = None;
                    match std::str::from_utf8(name) {
                        Ok(name) => {
                            self.told_database = Some((!name.is_empty()).then(|| name.to_owned()));
                        }
                        // servers tell it in UTF-8, whatever the client's character set
                        Err(_) => self.tracked = false,
                    }
                    self.changed = true;
                }
                Ok(_) => {}
                Err(_) => {
                    self.tracked = false;
                    self.changed = true;
                }
            }
        }
    }

    /// What the server announces string columns with.
    pub fn learn_collation(&mut self, id: u16) {
        self.asks_collation = false;
        if Charset::from_collation_id(id) == self.results_charset {
            self.results_collation = id;
        }
    }

    /// The collation that the client named at login. MySQL announces string columns with it until
    /// the next SET NAMES.
    pub fn announce(&mut self, collation: u16) {
        let charset = Charset::from_collation_id(collation);
        if self.family == Family::MySql && charset.is_some() && charset == self.results_charset {
            self.results_collation = collation;
        }
    }

    /// A name in the character set of results, with question marks for what that lacks, as servers
    /// send it.
    pub fn shown_name<'n>(&self, name: &'n str) -> Cow<'n, [u8]> {
        let is_utf8 =
            |c: &Charset| matches!(c, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary);
        let Some(charset) = self.results_charset.filter(|c| !is_utf8(c)) else {
            return name.as_bytes().into();
        };
        if name.is_ascii() {
            return name.as_bytes().into();
        }
        let mut shown = Vec::with_capacity(name.len());
        for character in name.chars() {
            if !charset.encode(character.into(), &mut shown) {
                shown.push(b'?');
            }
        }
        shown.into()
    }

    /// Whether the server keeps notes among a statement's warnings.
    pub fn keeps_notes(&self) -> bool {
        self.notes == [true; 2]
    }

    /// Nothing about the session's variables stands in the way of statements near protected tables.
    pub fn is_usual(&self) -> bool {
        self.tracked
            && self.mode_is_read
            && self.odd_values.is_none()
            && self.odd_types.is_none()
            && self.shortened.is_none()
            && self.unusual.none()
    }

    pub fn lex_mode(&self) -> LexMode {
        self.lex_mode
    }

    /// What storing a value in a column depends on, of a statement without IGNORE and its first
    /// row.
    #[inline]
    pub fn context<'c>(
        &'c self,
        column: &'c str,
        database: &'c str,
        table: &'c str,
    ) -> Context<'c> {
        Context {
            sql_mode: self.sql_mode,
            time_zone: &self.time_zone,
            family: self.family,
            latest_timestamp: self.latest_timestamp,
            signed_zero: self.signed_zero,
            enum_takes_zero: self.is_mariadb_118,
            ignore: false,
            row: 1,
            column,
            database,
            table,
        }
    }

    /// See [`Settings::forbidden_dates`].
    fn forbidden_dates(&self) -> SqlMode {
        let mode = self.sql_mode;
        let if_set = |flag: SqlMode| match mode.contains(flag) {
            true => flag,
            false => SqlMode::empty(),
        };
        match mode.is_strict() {
            true => if_set(SqlMode::NO_ZERO_DATE) | if_set(SqlMode::NO_ZERO_IN_DATE),
            false => if_set(SqlMode::NO_ZERO_IN_DATE),
        }
    }

    /// What planning depends on.
    pub fn settings(&self, scratch: UseScratch) -> Settings {
        Settings {
            family: self.family,
            lex: self.lex_mode(),
            database: self.database.clone(),
            strict: self.sql_mode.is_strict(),
            forbidden_dates: self.forbidden_dates(),
            high_not: self.sql_mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
            found_rows: self.found_rows,
            default_collation: self.default_collation.clone(),
            charset_collations: self.charset_collations.clone(),
            columns_make_keys: self.columns_make_keys,
            scratch,
        }
    }

    /// Identifies everything that a cached plan depends on beside the schema.
    pub fn settings_key(&self) -> Vec<u8> {
        let s = self.settings(UseScratch::Never);
        let flags = [
            u8::from(s.lex.ansi_quotes),
            u8::from(s.lex.no_backslash_escapes),
            u8::from(s.lex.ignore_space),
            u8::from(s.strict),
            u8::from(s.forbidden_dates.contains(SqlMode::NO_ZERO_DATE)),
            u8::from(s.forbidden_dates.contains(SqlMode::NO_ZERO_IN_DATE)),
            u8::from(s.high_not),
            u8::from(s.found_rows),
            u8::from(s.columns_make_keys),
            self.client_charset.map_or(255, Charset::number),
        ];
        let mut key = flags.to_vec();
        // what is refused in one session must not find a plan of another
        key.push(u8::from(self.is_usual()));
        key.extend_from_slice(&self.unusual.bits().to_le_bytes());
        let words = [self.odd_values, self.odd_types, self.shortened];
        key.extend(words.map(|word| word.map_or(0, |w| w.as_bytes()[0])));
        key.extend_from_slice(s.charset_collations.as_bytes());
        key.push(0);
        key.extend_from_slice(s.database.unwrap_or_default().as_bytes());
        key
    }
}
