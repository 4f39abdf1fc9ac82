//! `onionskin explain`: what the proxy would do with a statement, and what the server would learn
//! from it.

use std::{
    fs,
    io::{Read, stdin},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use onionskin_keys::KeySet;
use onionskin_proxy::{
    Backend, BackendTls, CertificateRules, Config, EnginePlace, Explained, FinishLimits,
    ListenAddress, LoginLimits, Masks, SessionLimits, SlowLimits, Whereabouts, explain, statements,
    used_database,
};
use onionskin_rowstream::session::SqlError;
use onionskin_schema::{Policy, Table, TableName};
use onionskin_value::Family;

use crate::{
    config_file::ConfigFile,
    definitions::Definitions,
    error::CommandError,
    home, key_place,
    private::{self, ServerProgram},
    scratch_section::ScratchSection,
    serve::parse_backend,
    setup::pins,
    tls,
};

/// Where a private server's engine is, beside the configuration.
const PRIVATE_ENGINE: &str = "scratch";
/// Characters of a statement that a list shows.
const MAX_SHOWN: usize = 100;

/// Show at which tier a statement runs, the text that the server gets, and what it learns
///
/// Nothing is executed. The definitions of the tables are read from the server, hence the account.
/// Tier 1 is done by the server, tier 2 is finished by the proxy, tier 3 is the scratch engine's.
/// Of several statements, separated by semicolons, each gets a line. The exit code is 1 if one is
/// refused.
#[derive(Args)]
pub struct Explain {
    /// The configuration
    #[arg(short = 'c', value_name = "FILE", default_value = home::CONFIG)]
    config: PathBuf,
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that may read the definitions of the tables
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// The database that names without one belong to; USE changes it
    #[arg(long)]
    database: Option<String>,
    /// A file of statements
    #[arg(long, value_name = "FILE", conflicts_with = "sql")]
    file: Option<PathBuf>,
    /// The statement, or several; - for standard input
    #[arg(required_unless_present = "file")]
    sql: Option<String>,
}

impl Explain {
    /// Prints the explanation.
    pub fn run(self) -> Result<(), CommandError> {
        let text = self.text()?;
        let statements = statements(&text).map_err(CommandError::Explain)?;
        if statements.is_empty() {
            return Err(CommandError::Arguments("no statement is given".into()));
        }
        let file = ConfigFile::read(&self.config)?;
        let keys = key_place::load_at_start(&file)?;
        let backend = match &self.backend {
            Some(given) => parse_backend(given)?,
            None => file.one_backend()?.clone(),
        };
        not_the_proxy(&backend, &file.listen)?;
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let login = tls::login(Some(&file), &backend, self.user.clone(), password)?;
        let mut definitions = Definitions::connect(&login).map_err(CommandError::Explain)?;
        let family = definitions.family().map_err(unread)?;
        let version = definitions.version().map_err(unread)?;
        let scratch = file.scratch_engine(own_engine(&file, family, &version));
        let pins = pins(&file, &keys)?;
        let functions = file.functions()?;
        let config = Config {
            backend,
            keys: Arc::new(keys),
            keys_provider: None,
            suite: file.suite,
            policy: file.policy,
            // it is nobody's account
            masks: Masks::default(),
            pins,
            client_tls: None,
            proxy_networks: Vec::new(),
            requires_tls: false,
            client_authority: None,
            certificates_end: Vec::new(),
            certificates: CertificateRules::default(),
            tells_clients: false,
            member_timeout: None,
            causal: None,
            backend_tls: BackendTls::Never,
            backend_rsa_key: None,
            login: LoginLimits::default(),
            trace: false,
            sessions: SessionLimits::default(),
            finish: FinishLimits::default(),
            audit: None,
            slow: SlowLimits::default(),
            shapes: None,
            scratch,
            like_index: file.like_index,
            counts: false,
            functions,
        };
        let mut explainer = Explainer {
            config,
            family,
            definitions,
            database: None,
        };
        if let Some(name) = self.database {
            explainer.change_database(&name)?;
        }
        match statements.as_slice() {
            [one] => {
                let explained = explainer.explain(one)?;
                print(&explained);
                match explained.refused {
                    Some(_) => Err(CommandError::Explain("the statement is refused".into())),
                    None => Ok(()),
                }
            }
            several => explainer.list(several),
        }
    }

    fn text(&self) -> Result<String, CommandError> {
        let (path, read) = match (&self.file, self.sql.as_deref()) {
            (Some(path), _) => (path.clone(), fs::read(path)),
            (None, Some("-")) => {
                let mut bytes = Vec::new();
                let read = stdin().lock().read_to_end(&mut bytes);
                ("standard input".into(), read.map(|_| bytes))
            }
            (None, sql) => return Ok(sql.unwrap_or_default().to_owned()),
        };
        let bytes = read.map_err(|source| CommandError::File {
            path: path.clone(),
            source,
        })?;
        String::from_utf8(bytes)
            .map_err(|_| CommandError::Explain(format!("{}: it is not UTF-8", path.display())))
    }
}

/// The engine that `serve` would start: by `engine = "auto"`, where there is a program for it, or
/// beside a private server.
fn own_engine(file: &ConfigFile, family: Family, version: &str) -> Option<EnginePlace> {
    let is_private = file.folder().join(PRIVATE_ENGINE).is_dir();
    let state = match &file.scratch {
        Some(ScratchSection::At { .. }) => return None,
        None if !is_private => return None,
        None => Whereabouts::Starting,
        Some(ScratchSection::Auto { .. }) if is_private => Whereabouts::Starting,
        Some(ScratchSection::Auto { .. }) => {
            match ServerProgram::nearest(private::Family::of(family), version) {
                Ok(_) => Whereabouts::Starting,
                Err(error) => Whereabouts::Nowhere(error.to_string()),
            }
        }
    };
    Some(EnginePlace::new(state))
}

/// What it says where the server does not show its definitions.
fn unread(error: SqlError) -> CommandError {
    CommandError::Explain(format!(
        "the definitions of the tables cannot be read: {error}; see --user and --password-env"
    ))
}

/// The proxy shows tables as applications see them, so nothing can be explained by what it says.
fn not_the_proxy(backend: &Backend, listen: &[ListenAddress]) -> Result<(), CommandError> {
    match listen.iter().any(|address| address.answers(backend)) {
        true => Err(CommandError::Arguments(format!(
            "{backend} is where this configuration's proxy listens: explain asks the server itself; see --backend"
        ))),
        false => Ok(()),
    }
}

/// A server's definitions, and what is set in the session that the statements would be sent in.
struct Explainer {
    config: Config,
    family: Family,
    definitions: Definitions,
    database: Option<String>,
}

impl Explainer {
    fn change_database(&mut self, name: &str) -> Result<(), CommandError> {
        match self.definitions.collation(name).map_err(unread)? {
            Some(_) => {
                self.database = Some(name.to_owned());
                Ok(())
            }
            None => Err(CommandError::Explain(format!(
                "there is no database {name}, or the account cannot see it"
            ))),
        }
    }

    fn explain(&mut self, sql: &str) -> Result<Explained, CommandError> {
        let mut failed = None;
        let Self {
            config,
            family,
            definitions,
            database,
        } = self;
        let explained = explain(
            config,
            sql,
            database.as_deref(),
            *family,
            &mut |names| match tables(definitions, names, &config.keys, &config.policy) {
                Ok(tables) => tables,
                Err(error) => {
                    failed.get_or_insert(error);
                    Vec::new()
                }
            },
        );
        match failed {
            Some(error) => Err(unread(error)),
            None => explained.map_err(CommandError::Explain),
        }
    }

    /// A line for each statement, and one for all.
    fn list(&mut self, statements: &[&str]) -> Result<(), CommandError> {
        let mut tiers = [0; 4];
        let mut refused = 0;
        for sql in statements {
            if let Some(name) = used_database(sql) {
                self.change_database(&name)?;
            }
            let explained = self.explain(sql)?;
            let what = match &explained.refused {
                Some(reason) => {
                    refused += 1;
                    format!("refused {reason}")
                }
                None => {
                    tiers[usize::from(explained.tier).min(3)] += 1;
                    match explained.tier {
                        0 => "relayed".to_owned(),
                        tier => format!("tier {tier}"),
                    }
                }
            };
            println!("{what:9} {}", in_one_line(sql));
            for line in &explained.findings {
                println!("  warning {line}");
            }
        }
        let [relayed, server, proxy, engine] = tiers;
        println!(
            "{} statements: {relayed} relayed untouched, {server} done by the server, {proxy} finished by the proxy, \
             {engine} by the scratch engine, {refused} refused",
            statements.len()
        );
        match refused {
            0 => Ok(()),
            1 => Err(CommandError::Explain("a statement is refused".into())),
            several => Err(CommandError::Explain(format!(
                "{several} statements are refused"
            ))),
        }
    }
}

/// A statement without its line ends, and not all of it if it is long.
fn in_one_line(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn print(explained: &Explained) {
    println!("{}", explained.what);
    if explained.tier > 0 {
        println!("tier    {}", explained.tier);
    }
    if !explained.server_text.is_empty() {
        println!("server  {}", explained.server_text);
    }
    match explained.learns.as_slice() {
        [] if explained.tier > 0 && !explained.server_text.is_empty() => {
            println!("learns  nothing of any protected value")
        }
        lines => lines.iter().for_each(|line| println!("learns  {line}")),
    }
    for line in &explained.findings {
        println!("warning {line}");
    }
}

/// Tables by their names. An empty name in a database asks for the database's collation: the answer
/// is a table without columns that has the collation as its name.
fn tables(
    definitions: &mut Definitions,
    names: &[TableName],
    keys: &KeySet,
    policy: &Policy,
) -> Result<Vec<Table>, SqlError> {
    let (databases, names): (Vec<_>, Vec<_>) = names
        .iter()
        .cloned()
        .partition(|table| table.name.is_empty());
    let mut found = definitions.tables(&names, keys, policy)?;
    for TableName { database, .. } in databases {
        let collation = definitions.collation(&database)?;
        found.extend(collation.map(|name| Table::named(database, name)));
    }
    Ok(found)
}
