//! The stream of raw events, as a server sends it to its replicas.

use std::sync::Arc;
use std::time::Duration;

use onionskin_wire::Socket;

use super::error::{BinlogError, BinlogResult};
use super::event::{
    CHECKSUM, EventHead, FormatDescription, HEAD, checksum_matches, decode_rotate, kind,
};
use super::position::{GtidPosition, Position};
use super::requirements::check_binlog;
use crate::client::{Client, ClientError, ConnectOptions, Family};

/// How the log is asked for.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The server id under which we register; no replica of the server may have the same, or the
    /// server ends the older stream.
    pub server_id: u32,
    /// How often the server speaks when it has nothing to say. Three times that in silence is a
    /// lost connection.
    pub heartbeat: Duration,
    /// End at the end of the log instead of waiting for more.
    pub stop_at_end: bool,
    /// For how long the server waits when nothing is taken from it, in whole seconds, before it
    /// ends the stream. Whoever reads may be busy writing for minutes.
    pub patience: Duration,
    /// MariaDB: also send the events that hold the texts of statements, which a reader of rows does
    /// not need.
    pub annotations: bool,
}

impl StreamOptions {
    /// Waits for more, with a heartbeat each second.
    pub fn new(server_id: u32) -> Self {
        Self {
            server_id,
            heartbeat: Duration::from_secs(1),
            stop_at_end: false,
            patience: Duration::from_secs(3600),
            annotations: false,
        }
    }
}

/// One event and where it belongs.
pub struct RawEvent<'a> {
    /// Its head.
    pub head: EventHead,
    /// All of it, checksum included.
    pub bytes: &'a [u8],
    /// Length of the checksum at its end: 0 or 4.
    pub checksum: usize,
}

impl RawEvent<'_> {
    /// Behind the head, without the checksum.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEAD..self.bytes.len() - self.checksum]
    }
}

/// A replica's connection.
pub struct EventStream {
    client: Client,
    file: Arc<str>,
    offset: u64,
    format: Option<FormatDescription>,
    silence: Duration,
}

/// COM_REGISTER_SLAVE
const REGISTER: u8 = 0x15;
/// COM_BINLOG_DUMP
const DUMP: u8 = 0x12;
/// COM_BINLOG_DUMP_GTID
const DUMP_GTID: u8 = 0x1e;
/// Of both dump commands: end at the end of the log.
const NON_BLOCK: u16 = 1;
/// Of MariaDB's dump command: with the texts of statements.
const ANNOTATIONS: u16 = 2;
/// Of COM_BINLOG_DUMP_GTID: the set of GTIDs is to be used.
const THROUGH_GTID: u16 = 4;

/// An error if the server does not let this account read its log as a replica does. Something that
/// stands between does not, either.
pub fn check_reader(connect: &ConnectOptions, server_id: u32) -> BinlogResult<()> {
    let mut client = Client::connect(connect)?;
    register(&mut client, server_id)
}

impl EventStream {
    /// Connects, registers and asks for the log from `from`. Its file may be empty if it has GTIDs:
    /// the server then finds the file itself.
    pub fn open(
        connect: &ConnectOptions,
        options: &StreamOptions,
        from: &Position,
    ) -> BinlogResult<Self> {
        let mut client = Client::connect(connect)?;
        check_binlog(&mut client)?;
        client.query(&format!(
            "SET net_write_timeout = {}",
            options.patience.as_secs().max(1)
        ))?;
        // In nanoseconds. What a server does not know is a user variable without meaning.
        let period = options.heartbeat.as_nanos();
        client.query(&format!(
            "SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}, \
             @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4"
        ))?;
        if client.family() == Family::MySql {
            // A server ends streams of the same UUID; ours follows from the id.
            let uuid = format!("6f6e696f-6e73-6b69-6e00-0000{:08x}", options.server_id);
            client.query(&format!(
                "SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"
            ))?;
        }
        register(&mut client, options.server_id)?;
        let by_gtid = from.file.is_empty();
        let mut flags = if options.stop_at_end { NON_BLOCK } else { 0 };
        match client.family() {
            Family::MySql if by_gtid => {
                let set = from
                    .gtid
                    .as_ref()
                    .and_then(GtidPosition::encode_mysql)
                    .ok_or_else(|| BinlogError::Unsupported {
                        what: "the GTIDs to begin with are not a set of MySQL".into(),
                        way_out: "begin with a file and an offset",
                    })?;
                flags |= THROUGH_GTID;
                let mut arguments = flags.to_le_bytes().to_vec();
                arguments.extend_from_slice(&options.server_id.to_le_bytes());
                arguments.extend_from_slice(&0u32.to_le_bytes());
                arguments.extend_from_slice(&4u64.to_le_bytes());
                arguments.extend_from_slice(&(set.len() as u32).to_le_bytes());
                arguments.extend_from_slice(&set);
                client.command(DUMP_GTID, &arguments)?;
            }
            family => {
                if by_gtid {
                    let Some(GtidPosition::MariaDb(_)) = &from.gtid else {
                        return Err(BinlogError::Malformed("GTID position"));
                    };
                    let state = from.gtid.as_ref().map(ToString::to_string);
                    client.query(&format!(
                        "SET @slave_connect_state = '{}', @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0",
                        state.unwrap_or_default()
                    ))?;
                }
                if family == Family::MariaDb && options.annotations {
                    flags |= ANNOTATIONS;
                }
                let offset = u32::try_from(from.offset).map_err(|_| BinlogError::Unsupported {
                    what: format!("{from} lies beyond 4 GiB, where no stream can begin"),
                    way_out: "begin at the beginning of the file",
                })?;
                let mut arguments = offset.to_le_bytes().to_vec();
                arguments.extend_from_slice(&flags.to_le_bytes());
                arguments.extend_from_slice(&options.server_id.to_le_bytes());
                arguments.extend_from_slice(from.file.as_bytes());
                client.command(DUMP, &arguments)?;
            }
        }
        let silence = (options.heartbeat * 3).max(Duration::from_secs(10));
        client.set_read_timeout(Some(silence))?;
        Ok(Self {
            client,
            file: Arc::clone(&from.file),
            offset: from.offset,
            format: None,
            silence,
        })
    }

    /// The server's family.
    pub fn family(&self) -> Family {
        self.client.family()
    }

    /// The server's version as it greets.
    pub fn version(&self) -> &str {
        self.client.version()
    }

    /// The file that the stream is in.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Where the last event ended in its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What the present file says of itself.
    pub fn format(&self) -> Option<&FormatDescription> {
        self.format.as_ref()
    }

    /// Whether an event can be read without waiting.
    pub fn has_event(&self) -> bool {
        self.client.has_packet()
    }

    /// A handle with which another thread can end the stream.
    pub fn closer(&self) -> Result<Socket, ClientError> {
        self.client.closer()
    }

    /// The next event with its checksum verified; `None` at the end of the log, if that was asked
    /// for. Heartbeats are events, too. The stream has followed it: [`EventStream::file`] and
    /// [`EventStream::offset`] are those behind it.
    pub fn next_event(&mut self) -> BinlogResult<Option<RawEvent<'_>>> {
        let silence = self.silence.as_secs();
        let bytes = match self.client.read_streamed() {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(ClientError::Wire(error)) if error.is_timeout() => {
                return Err(BinlogError::Silent(silence));
            }
            Err(error) => return Err(error.into()),
        };
        let head = EventHead::decode(bytes)?;
        let checksum = match (&self.format, head.kind) {
            (_, kind::FORMAT_DESCRIPTION) => {
                let format = FormatDescription::decode(bytes)?;
                let checksums = format.checksums;
                self.format = Some(format);
                // The room for a checksum is there, whether or not it is used.
                match checksums && !checksum_matches(bytes) {
                    false => CHECKSUM,
                    true => return Err(wrong_checksum(&self.file, head)),
                }
            }
            // The first file's name comes before its format, with a checksum if the server writes
            // them now.
            (None, _) => usize::from(checksum_matches(bytes)) * CHECKSUM,
            (Some(format), _) if format.checksums => match checksum_matches(bytes) {
                true => CHECKSUM,
                false => return Err(wrong_checksum(&self.file, head)),
            },
            (Some(_), kind::ROTATE) if head.is_artificial() => {
                usize::from(checksum_matches(bytes)) * CHECKSUM
            }
            (Some(_), _) => 0,
        };
        if bytes.len() < HEAD + checksum {
            return Err(BinlogError::Malformed("size of an event"));
        }
        if head.kind == kind::ROTATE {
            let (file, offset) = decode_rotate(&bytes[HEAD..bytes.len() - checksum])?;
            self.file = file.into();
            self.offset = offset;
        } else if !head.is_artificial() {
            self.offset = head.behind(self.offset);
        }
        Ok(Some(RawEvent {
            head,
            bytes,
            checksum,
        }))
    }
}

impl EventStream {
    /// Reads on to a place in the present file and tells nothing of what lies before it. No server
    /// takes a place beyond 4 GiB to begin a stream at, so whoever goes on at one begins with the
    /// file and skips.
    pub fn skip_to(&mut self, offset: u64) -> BinlogResult<()> {
        let file = Arc::clone(&self.file);
        let no_such_place = || BinlogError::Unsupported {
            what: format!("no event of the binlog ends at {file}:{offset}"),
            way_out: "the file is not the one that was read before: begin anew",
        };
        while self.offset < offset {
            let Some(event) = self.next_event()? else {
                return Err(no_such_place());
            };
            // A heartbeat is what comes at the end of the log.
            let is_at_end = matches!(event.head.kind, kind::HEARTBEAT | kind::HEARTBEAT_V2);
            if is_at_end || *self.file != *file {
                return Err(no_such_place());
            }
        }
        match self.offset == offset {
            true => Ok(()),
            false => Err(no_such_place()),
        }
    }
}

fn wrong_checksum(file: &Arc<str>, head: EventHead) -> BinlogError {
    BinlogError::Checksum {
        file: file.to_string(),
        offset: head.end.into(),
    }
}

fn register(client: &mut Client, server_id: u32) -> BinlogResult<()> {
    let mut arguments = server_id.to_le_bytes().to_vec();
    // Host, user and password, as SHOW REPLICAS would show them; port, rank, the source's id.
    arguments.extend_from_slice(&[0; 3]);
    arguments.extend_from_slice(&[0; 2]);
    arguments.extend_from_slice(&[0; 8]);
    client.command(REGISTER, &arguments)?;
    Ok(client.read_ok()?)
}
