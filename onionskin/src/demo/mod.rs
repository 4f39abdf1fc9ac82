//! `onionskin demo`: a private server, the proxy before it, statements with known answers, and what
//! is left on disk.
//!
//! Everything is checked while it is shown: an answer that is not the one that MySQL gives to the
//! same statement, a refusal that does not come, or a plaintext that is found in the server's files
//! ends the demonstration with an error. All of it lives in a temporary folder, which is removed at
//! the end.
//!
//! | file | what it holds |
//! |---|---|
//! | `script` | the statements, and what must come back |
//! | `client` | sessions, to the proxy and past it |
//! | `screen` | how it looks |
//! | `search` | looks for plaintexts in files |
//! | `assess` | `demo assess`: from plain tables to a protected installation |

mod assess;
mod client;
mod screen;
mod script;
mod search;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    thread,
    time::Instant,
};

use clap::{Args, Subcommand};
use onionskin_keys::{KeySet, Suite};
use onionskin_proxy::{
    Backend, BackendTls, Bound, CertificateRules, Config, FinishLimits, LoginLimits, Masks, Proxy,
    ScratchConfig, SessionLimits, SlowLimits,
};
use onionskin_schema::Policy;
use tracing_subscriber::filter::LevelFilter;

use self::{
    client::{Client, Password, Reply},
    screen::Screen,
    script::{Expected, Step},
};
use crate::{
    error::CommandError,
    home, logging,
    private::{Installation, PrivateServer},
    termination::Termination,
};

/// Show what an application sees and what the server stores
///
/// Starts a database server of its own in a temporary folder and the proxy before it, runs
/// statements through it, looks at the same tables past it, searches the server's files for what
/// must not be there, and removes everything.
#[derive(Args)]
pub struct Demo {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    Assess(assess::DemoAssess),
}

impl Demo {
    /// Returns an error if anything was not as it must be.
    pub fn run(self) -> Result<(), CommandError> {
        match self.what {
            None => both_sides(),
            Some(What::Assess(assess)) => assess.run(),
        }
    }
}

fn both_sides() -> Result<(), CommandError> {
    logging::start(LevelFilter::WARN);
    let begin = Instant::now();
    let termination = Termination::watch().map_err(|source| CommandError::System {
        doing: "waiting for signals",
        source,
    })?;
    let folder = temporary_folder()?;
    let mut screen = Screen::default();

    screen.chapter("A database server of its own, and the proxy before it");
    let installation = Installation::open(&folder.path().join("server"), &termination)?;
    let scratch = Installation::open_scratch(&installation, &termination)?;
    let server = PrivateServer::start(installation, &termination)?;
    let engine = PrivateServer::start(scratch, &termination)?;
    // Before the proxy listens.
    let password = Password::set(server.socket())?;
    let (proxy, address) = bind(folder.path(), &server, &engine)?;
    let stopper = proxy.stopper();
    let stopper_on_signal = stopper.clone();
    termination.on_signal(move || stopper_on_signal.stop());
    let proxy_thread = thread::Builder::new()
        .name("proxy".into())
        .spawn(move || proxy.run())
        .map_err(|source| CommandError::System {
            doing: "starting a thread",
            source,
        })?;

    let shown = show(&mut screen, address, &server, &password);
    stopper.stop();
    let proxy_ended = proxy_thread.join();
    let data = server.data().to_owned();
    // Everything that it still has in memory goes to its files.
    server.stop();
    engine.stop();
    shown?;
    match proxy_ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(failed(format!("the proxy: {error}"))),
        Err(_) => return Err(failed("the proxy ended with a panic")),
    }
    search_files(&mut screen, &data)?;

    let at = folder.path().to_owned();
    folder
        .close()
        .map_err(|source| CommandError::File { path: at, source })?;
    screen.text(&format!(
        "\nAll answers were right, and everything is removed again. {:.1} s.",
        begin.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn failed(text: impl Into<String>) -> CommandError {
    CommandError::Demo(text.into())
}

/// The socket's path must be short, and `TMPDIR` can be long.
fn temporary_folder() -> Result<tempfile::TempDir, CommandError> {
    let made = tempfile::Builder::new().prefix("onionskin-demo-").tempdir();
    let folder = made.map_err(|source| CommandError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    if rustix::process::geteuid().is_root() {
        // The server's user must pass through. It cannot list the folder.
        home::let_others_pass(folder.path())?;
    }
    Ok(folder)
}

fn bind(
    folder: &Path,
    server: &PrivateServer,
    engine: &PrivateServer,
) -> Result<(Proxy, SocketAddr), CommandError> {
    let keys = folder.join(home::KEYS);
    KeySet::create_file(&keys, None, &mut rand::rng())?;
    // Any port that is free.
    let failed = |source| CommandError::Listen {
        address: "127.0.0.1".to_owned(),
        source,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let config = Config {
        backend: Backend::Unix(server.socket().to_owned()),
        keys: Arc::new(KeySet::load("file:keys.json", folder, None)?),
        keys_provider: None,
        suite: Suite::Aes,
        policy: Policy::default(),
        masks: Masks::default(),
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
        scratch: Some(ScratchConfig::new(engine.place().clone(), "root")),
        like_index: false,
        functions: None,
        counts: false,
        pins: None,
    };
    let proxy = Proxy::on(vec![Bound::Tcp(listener, address)], config).map_err(failed)?;
    Ok((proxy, address))
}

/// The statements, and both sides of the tables that they leave.
fn show(
    screen: &mut Screen,
    address: SocketAddr,
    server: &PrivateServer,
    password: &Password,
) -> Result<(), CommandError> {
    let mut direct = Client::past_the_proxy(server.socket(), password)?;
    let mut application = Client::through_the_proxy(address, password)?;
    screen.text(&format!(
        "{}, reached through onionskin on {address}.",
        direct.server()?
    ));
    let mut listener = client::Listener::start(&mut direct, application.id())?;

    screen.chapter("What the application sends, what the server gets, what comes back");
    for step in script::STEPS {
        listener.forget(&mut direct)?;
        let reply = step.run(&mut application)?;
        screen.step(step, &listener.heard(&mut direct)?, &reply);
        check(step, &reply)?;
    }

    screen.chapter("The same rows, on both sides");
    let seen = application.rows(script::LOGICAL_TABLE)?;
    let columns = direct.columns(script::DATABASE, script::TABLE)?;
    let stored = direct.rows(&format!(
        "SELECT {} FROM {}.{} ORDER BY id",
        columns
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
        script::DATABASE,
        script::TABLE
    ))?;
    screen.both_sides(&seen, &stored);
    screen.text(&format!("\n{}", script::LOOK));

    screen.chapter("A client that goes past the proxy");
    for sql in script::PAST_THE_PROXY {
        let reply = direct.run(sql)?;
        screen.refusal(sql, &reply);
        if !matches!(reply, Reply::Refused { .. }) {
            return Err(failed(format!("the server took {sql}")));
        }
    }
    Ok(())
}

fn check(step: &Step, reply: &Reply) -> Result<(), CommandError> {
    let right = match (&step.expected, reply) {
        (Expected::Affected(expected), Reply::Done { affected }) => expected == affected,
        (Expected::Rows(expected), Reply::Rows(table)) => {
            table.rows.len() == expected.len()
                && table.rows.iter().zip(*expected).all(|(row, expected)| {
                    row.len() == expected.len()
                        && row.iter().zip(*expected).all(|(cell, text)| cell.is(text))
                })
        }
        (Expected::Refused(names), Reply::Refused { text, .. }) => text.contains(names),
        _ => false,
    };
    match (right, reply) {
        (true, _) => Ok(()),
        (false, Reply::Refused { code, text }) => {
            Err(failed(format!("{} → {code}: {text}", step.sql)))
        }
        (false, _) => Err(failed(format!(
            "{} has another answer than it must have",
            step.sql
        ))),
    }
}

fn search_files(screen: &mut Screen, data: &Path) -> Result<(), CommandError> {
    screen.chapter("What is left in the server's files");
    let files = search::files(data).map_err(|source| CommandError::File {
        path: data.to_owned(),
        source,
    })?;
    let mut leaked = Vec::new();
    for (what, text, protected) in script::TRACES {
        let places =
            search::find(&files, text.as_bytes()).map_err(|source| CommandError::File {
                path: data.to_owned(),
                source,
            })?;
        screen.trace(what, text, *protected, &places, data);
        match protected {
            true if !places.is_empty() => leaked.push(*text),
            // Whoever finds nothing at all cannot search.
            false if places.is_empty() => {
                return Err(failed(format!(
                    "{text} is stored as it is, but was not found"
                )));
            }
            _ => {}
        }
    }
    screen.text(&format!(
        "Searched: {} files, {} MB, the server's log of all statements among them.",
        files.len(),
        search::megabytes(&files)
    ));
    match leaked.as_slice() {
        [] => Ok(()),
        _ => Err(failed(format!(
            "plaintext in the server's files: {}",
            leaked.join(", ")
        ))),
    }
}
