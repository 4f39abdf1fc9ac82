//! `onionskin dump`: a logical dump with protected columns replaced. The work is in the crate
//! `onionskin-dump`.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use onionskin_dump::{
    DumpError, IDENTITY, KEY_BYTES, MaskKey, Output, Protections, Request, Rules,
};
use onionskin_keys::{KeySet, read_private_file};
use onionskin_proxy::Backend;
use onionskin_schema::{Column, Policy, Table, TableName};
use zeroize::Zeroizing;

use crate::{
    config_file::ConfigFile,
    definitions::{Definitions, is_of_migration},
    error::CommandError,
    home, key_place, pin,
    serve::parse_backend,
    tls,
};

/// Most bytes of a file with a key of masks.
const KEY_LIMIT: u64 = 1 << 10;

/// Write a dump for test systems, with the values of protected columns replaced
///
/// Rows come through a proxy that shows values in the clear; the server says which columns are
/// protected, and the keys of the configuration prove it. Every protected column is replaced unless
/// --keep names it. Equal values stay equal and different ones different wherever a key or a join
/// needs it. The file has its name only when it is whole.
#[derive(Args)]
pub struct Dump {
    /// The configuration, for keys, the server and TLS to it
    #[arg(short = 'c', value_name = "FILE", default_value = home::CONFIG)]
    config: PathBuf,
    /// The proxy: host:port or unix:/path [default: where the configuration listens]
    #[arg(long, value_name = "ADDR")]
    from: Option<String>,
    /// Certificate of the authority behind the proxy's certificate, which is then verified
    #[arg(long, value_name = "FILE")]
    from_ca: Option<PathBuf>,
    /// The server behind it, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that reads the tables; it logs in through the proxy, and at the server
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// A database. Once for every database
    #[arg(long, value_name = "NAME", required_unless_present = "all_databases")]
    database: Vec<String>,
    /// All databases but the server's own
    #[arg(long, conflicts_with = "database")]
    all_databases: bool,
    /// These tables alone, without views and programs: "app.users,app.order_*"
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Where it is written to, instead of standard output; it must not be there
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A mask: "app.users.note=fixed:x"; null, fixed:VALUE, hash or generate. Once for every mask
    #[arg(long, value_name = "COLUMN=MASK")]
    mask: Vec<String>,
    /// A protected column that stays as it is: app.users.city. Once for every column
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Columns that hold the same values, without a key that says so: "app.a.mail,app.b.mail"
    #[arg(long, value_name = "COLUMNS")]
    together: Vec<String>,
    /// A file with mask, keep and together
    #[arg(long, value_name = "FILE")]
    masks: Option<PathBuf>,
    /// The key of the masks, which is made if the file is not there: the same values are replaced
    /// by the same ones again [default: a new key, which is forgotten]
    #[arg(long, value_name = "FILE")]
    mask_key: Option<PathBuf>,
    /// With ENCRYPTED FOR in definitions, for a proxy whose configuration does not protect the
    /// tables; a plain server cannot load that
    #[arg(long)]
    encrypted_for: bool,
    /// Also views, triggers and routines that have constants in their texts, as they are
    #[arg(long)]
    constants: bool,
    /// Most KiB of an INSERT, unless one row has more
    #[arg(long, value_name = "KIB", default_value = "512", value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    insert_kib: u32,
    /// Nothing on standard error if all went well
    #[arg(short, long)]
    quiet: bool,
}

impl Dump {
    /// Writes it.
    pub fn run(self) -> Result<(), CommandError> {
        let rules = self.rules()?;
        let file = ConfigFile::read(&self.config)?;
        let backend = match &self.backend {
            Some(given) => parse_backend(given)?,
            None => file.one_backend()?.clone(),
        };
        let from = match &self.from {
            Some(given) => parse_backend(given)?,
            None => listening(&file)?,
        };
        let keys = key_place::load_at_start(&file)?;
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let login = tls::login(Some(&file), &backend, self.user.clone(), password.clone())?;
        let definitions = Definitions::connect(&login).map_err(CommandError::DumpSource)?;
        if self.from_ca.is_none() && !is_local(&from) {
            eprintln!(
                "onionskin: warning: nothing proves that {from} is the right proxy; name its authority with --from-ca"
            );
        }
        let mut output = match &self.out {
            Some(path) => Output::file(path).map_err(|source| CommandError::File {
                path: path.clone(),
                source,
            })?,
            None => Output::stream(Box::new(io::stdout())),
        };
        let request = Request {
            from: tls::to_proxy(&from, self.from_ca.as_deref(), self.user.clone(), password)?,
            databases: (!self.all_databases).then(|| self.database.clone()),
            tables: self.tables.clone(),
            rules,
            key: self.key()?,
            encrypted_for: self.encrypted_for,
            constants: self.constants,
            insert_bytes: self.insert_kib as usize * 1024,
            program: env!("CARGO_PKG_VERSION").into(),
        };
        let mut known = Known {
            definitions,
            file: &file,
            keys: &keys,
            policy: &file.policy,
        };
        let summary = onionskin_dump::run(&request, &mut known, &mut output)?;
        output.finish().map_err(DumpError::Write)?;
        for note in &summary.notes {
            eprintln!("onionskin: warning: not in the dump: {note}");
        }
        if !self.quiet {
            eprintln!(
                "{} tables, {} rows, {} columns replaced",
                summary.tables, summary.rows, summary.replaced
            );
        }
        Ok(())
    }

    fn rules(&self) -> Result<Rules, CommandError> {
        let mut rules = Rules::default();
        if let Some(path) = &self.masks {
            let text = fs::read_to_string(path).map_err(|source| CommandError::File {
                path: path.clone(),
                source,
            })?;
            rules
                .file(&text)
                .map_err(|error| CommandError::Arguments(format!("{}: {error}", path.display())))?;
        }
        for mask in &self.mask {
            rules.mask(mask)?;
        }
        for column in &self.keep {
            rules.keep(column)?;
        }
        for columns in &self.together {
            rules.together(columns.split(','))?;
        }
        Ok(rules)
    }

    /// The key of the masks.
    fn key(&self) -> Result<MaskKey, CommandError> {
        let Some(path) = &self.mask_key else {
            return Ok(MaskKey::new(rand::random()));
        };
        if fs::symlink_metadata(path).is_err() {
            make_key(path).map_err(|source| CommandError::File {
                path: path.clone(),
                source,
            })?;
            eprintln!("onionskin: {} is a new key of masks", path.display());
        }
        let text = read_private_file(path, KEY_LIMIT)?;
        let digits = text.trim_ascii_end();
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let is_key = digits.len() == 2 * KEY_BYTES
            && key
                .iter_mut()
                .zip(digits.chunks_exact(2))
                .all(|(byte, pair)| {
                    let pair = std::str::from_utf8(pair).unwrap_or_default();
                    let digit = u8::from_str_radix(pair, 16);
                    *byte = *digit.as_ref().unwrap_or(&0);
                    digit.is_ok() && !pair.starts_with('+')
                });
        match is_key {
            true => Ok(MaskKey::new(*key)),
            false => Err(CommandError::Arguments(format!(
                "{}: a key of masks is {} hexadecimal digits",
                path.display(),
                2 * KEY_BYTES
            ))),
        }
    }
}

fn make_key(path: &Path) -> io::Result<()> {
    let key = Zeroizing::new(rand::random::<[u8; KEY_BYTES]>());
    let mut text = Zeroizing::new(String::new());
    for byte in key.iter() {
        text.push_str(&format!("{byte:02x}"));
    }
    text.push('\n');
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Where clients of this configuration connect.
fn listening(file: &ConfigFile) -> Result<Backend, CommandError> {
    let address = file
        .listen
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let address = match address.strip_prefix("0.0.0.0:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => address,
    };
    parse_backend(&address)
}

fn is_local(address: &Backend) -> bool {
    match address {
        Backend::Unix(_) => true,
        Backend::Tcp { host, .. } => ["localhost", "127.0.0.1", "::1"].contains(&host.as_str()),
    }
}

/// What the server, the keys, the pins and the policy say of tables.
struct Known<'a> {
    definitions: Definitions,
    file: &'a ConfigFile,
    keys: &'a KeySet,
    policy: &'a Policy,
}

impl Protections for Known<'_> {
    fn tables(&mut self, names: &[TableName]) -> Result<Vec<Table>, String> {
        if let Some(name) = names.iter().find(|name| is_of_migration(name)) {
            return Err(format!(
                "{name} belongs to a migration: finish it first, or name the tables with --tables"
            ));
        }
        let found = self.definitions.tables(names, self.keys, self.policy);
        let found = found.map_err(|error| error.to_string())?;
        for name in names {
            let pinned = pin::pinned(self.file, self.keys, (&name.database, &name.name));
            let Some(pinned) = pinned.map_err(|error| error.to_string())? else {
                continue;
            };
            let table = found.iter().find(|table| {
                TableName::folded(&table.database, &table.name)
                    == TableName::folded(&name.database, &name.name)
            });
            if let Some(difference) = pinned.difference(table) {
                return Err(format!(
                    "{name} is not the table that was pinned: {difference}"
                ));
            }
        }
        Ok(found)
    }

    fn is_wanted(&self, table: &Table, column: &Column) -> bool {
        let surrogate = column.surrogate();
        let wanted =
            self.policy
                .capabilities(&table.database, &table.name, &column.name, surrogate);
        // what cannot be protected as it was asked for is still a secret
        wanted.map_or(true, |wanted| wanted.is_some())
    }

    fn identity(&mut self) -> Result<String, String> {
        let rows = self
            .definitions
            .texts(IDENTITY)
            .map_err(|error| error.to_string())?;
        let cell = rows.into_iter().flatten().flatten().next();
        cell.ok_or_else(|| "the server does not say who it is".into())
    }
}
