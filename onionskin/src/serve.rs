//! `onionskin serve`: the proxy, and the private server behind it if it is to have one.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use onionskin_audit::AuditLog;
use onionskin_proxy::{
    AuditConfig, Backend, Bound, EnginePlace, ListenAddress, Manner, Proxy, Whereabouts,
};
use signal_hook::iterator::Signals;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    admin::Admin,
    config_file::ConfigFile,
    control::Control,
    error::CommandError,
    home,
    key_place::Patience,
    keys_watch::KeysWatch,
    logging,
    members::{self, Members},
    notify,
    observe::Observing,
    private::{Installation, OwnEngine, PrivateError, PrivateServer, root_is_open},
    reload::{Beginning, Reloader},
    scratch_section::ScratchSection,
    service::{self, Service},
    setup::{Given, GivenEngine, Setup},
    sockets, start_check,
    termination::Termination,
};

/// Run the proxy until SIGTERM or SIGINT
///
/// SIGHUP has it read its configuration anew, SIGUSR2 has it start its program file anew, which
/// then takes its place.
///
/// Arguments come before what stands in the configuration. Logs go to standard error: RUST_LOG
/// chooses what is logged, ONIONSKIN_LOG=json makes every line a JSON object. A passphrase for the
/// keys comes from ONIONSKIN_PASSPHRASE, from the file that ONIONSKIN_PASSPHRASE_FILE names, or
/// from systemd's credential onionskin-passphrase.
#[derive(Args)]
pub struct Serve {
    /// The configuration [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where clients connect: host:port or unix:/path; may be given several times
    #[arg(long, value_name = "ADDR")]
    listen: Vec<ListenAddress>,
    /// The server: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Start and watch a MariaDB or MySQL server of its own in this folder; made if it is missing
    ///
    /// Without a configuration, one is made in the folder, with keys. ONIONSKIN_MYSQLD names the
    /// server's program if it is not in PATH.
    #[arg(long, value_name = "DIR", conflicts_with = "backend")]
    private: Option<PathBuf>,
    /// Start and watch a scratch engine in a folder of its own in this one; made if it is missing
    ///
    /// As engine = "auto" in [scratch] does in memory, and in the place of what [scratch] says. Its
    /// temporary tables are in memory here as well. ONIONSKIN_MYSQLD names the server's program if
    /// it is not in PATH.
    #[arg(long, value_name = "DIR", conflicts_with = "private")]
    scratch: Option<PathBuf>,
    /// Take the place of the proxy that runs with this configuration, without a lost connection
    ///
    /// It is reached by control. It serves its sessions to their end, at most for handover_seconds,
    /// and takes no new ones. Where none runs, this is an ordinary start.
    #[arg(long, conflicts_with = "private")]
    take_over: bool,
    /// Log every packet by kind and length, without its content
    #[arg(long)]
    trace: bool,
    /// Count what applications ask, and append it to this file for `assess queries`
    ///
    /// The statements' shapes, without a value of theirs, and how often each came.
    #[arg(long, value_name = "FILE")]
    observe: Option<PathBuf>,
}

/// Servers of this program's own.
#[derive(Default)]
struct Servers {
    server: Option<PrivateServer>,
    engine: Option<PrivateServer>,
}

impl Serve {
    /// Returns when the proxy was told to end.
    pub fn run(self, passed: sockets::Passed) -> Result<(), CommandError> {
        logging::start(LevelFilter::INFO);
        let passed = passed?;
        let system = |doing| move |source| CommandError::System { doing, source };
        let termination = Termination::watch().map_err(system("waiting for signals"))?;
        // From now on SIGHUP does not kill.
        let signals = service::signals().map_err(system("waiting for signals"))?;
        match self.serve(&termination, signals, passed) {
            Err(CommandError::Private(PrivateError::Interrupted)) => Ok(()),
            ended => ended,
        }
    }

    fn serve(
        self,
        termination: &Termination,
        signals: Signals,
        passed: Vec<(String, OwnedFd)>,
    ) -> Result<(), CommandError> {
        let system = |doing| move |source| CommandError::System { doing, source };
        let file = self.config_file()?;
        let observing = self.observe.as_deref().map(Observing::begin).transpose()?;
        let mut given = self.given(termination, observing.as_ref())?;
        let own_engine = self.own_engine(&file)?;
        if let Some((engine, _)) = &own_engine {
            given.engine = Some(engine.clone());
        }
        let addresses = given.all_addresses(&file);
        let open = open_address(&addresses)?;
        let mut setup = Setup::read(&file, &given)?;
        let mut sockets = sockets::Given::find(&file, self.take_over, passed)?;
        let listeners = sockets.listeners(&addresses)?;
        let admin = Admin::bind(&file, setup.token.take(), &mut sockets)?;
        let control = file.control_path();
        let control = control.map(|path| Control::bind(&path, &mut sockets));
        let control = control.transpose()?;
        let servers = self.start_servers(&file, open, termination)?;
        if let Some(server) = &servers.server {
            given.server = Some(server.socket().to_owned());
            given.engine = servers.engine.as_ref().map(|engine| GivenEngine {
                place: engine.place().clone(),
                is_argument: false,
            });
            setup = Setup::read(&file, &given)?;
        } else if matches!(setup.config.backend, Backend::Unix(_)) && open.is_some() {
            tracing::warn!(
                "the server is reached over a Unix socket, and the proxy from other machines: accounts that are \
                 recognized by their system user (unix_socket, auth_socket) see the proxy's, so that everybody can use the one of that name"
            );
        }
        let audit = begin_audit(&file, &setup)?;
        setup.config.audit = audit.clone();
        let begun = Beginning::of(&setup, &file);
        // from now on the keys are there
        given.patience = Patience::Once;
        let members = setup.members.take();
        let backend = match &members {
            Some(_) => sockets::listed(&file.backends),
            None => setup.config.backend.to_string(),
        };
        let listeners = bind_rest(&addresses, listeners)?;
        let proxy = proxy_on(listeners, given.addresses(&file).len(), setup.config);
        let proxy = proxy.map_err(system("listening"))?;
        let reloader = Reloader::new(&file.path, given, begun, proxy.reload());
        let has_servers = self.private.is_some();
        let service = Service::new(
            reloader,
            proxy.stopper(),
            proxy.listeners(),
            file.handover,
            has_servers,
        );
        let service = service.map_err(system("duplicating a socket"))?;
        let members = begin_members(&proxy, members);
        service.keep_members(members.map_err(system("asking the members"))?);
        if admin.is_some() || control.is_some() {
            let observer = proxy.observer().map_err(system("watching the server"))?;
            service.keep_observer(Arc::new(observer));
        }
        let admin = admin.zip(service.observer());
        let admin = admin.map(|(admin, observer)| admin.serve(observer));
        let admin = admin.transpose();
        service.keep_admin(admin.map_err(system("serving the administration address"))?);
        // The program before goes on until here, whatever has failed.
        sockets.finish()?;
        if let Some(control) = control {
            let served = service.serve_control(control);
            served.map_err(system("serving the control socket"))?;
        }
        service
            .serve_signals(signals)
            .map_err(system("waiting for signals"))?;
        let ends = service.clone();
        termination.on_signal(move || ends.begin_to_end());
        for listener in proxy.listeners() {
            tracing::info!("listening on {listener}");
        }
        notify::ready();
        let own_engine = own_engine
            .map(|(engine, base)| {
                OwnEngine::begin(base, engine.place, proxy.question(), termination)
            })
            .transpose()
            .map_err(system("starting a scratch engine"))?;
        if !has_servers {
            start_check::begin(proxy.question(), backend, own_engine.is_some());
        }
        let ttl = file.keys.ttl;
        let watch = ttl.map(|ttl| KeysWatch::begin(&service, ttl));
        let watch = watch
            .transpose()
            .map_err(system("watching the provider of the root key"))?;
        let ended = proxy.run();
        drop(observing);
        service.end();
        if let Some(audit) = audit {
            match audit.log.close() {
                Ok(head) => tracing::info!(
                    run = head.run,
                    n = head.n,
                    link = head.link,
                    "audit log closed"
                ),
                Err(error) => tracing::error!(%error, "the audit log has no last line"),
            }
        }
        drop(own_engine);
        servers.stop();
        ended.map_err(system("accepting clients"))?;
        tracing::info!("ended");
        if let Some((_, ttl)) = watch.zip(ttl).filter(|(watch, _)| watch.has_expired()) {
            return Err(CommandError::KeysExpired(ttl.as_secs_f64()));
        }
        Ok(())
    }

    /// What the arguments say.
    fn given(
        &self,
        termination: &Termination,
        observing: Option<&Observing>,
    ) -> Result<Given, CommandError> {
        Ok(Given {
            listen: self.listen.clone(),
            backend: self.backend.as_deref().map(parse_backend).transpose()?,
            trace: self.trace,
            shapes: observing.map(Observing::shapes),
            // where it is comes later
            server: self.private.as_ref().map(|_| Default::default()),
            patience: Patience::Until(termination.clone()),
            ..Given::default()
        })
    }

    /// Starts the private server, and its scratch engine if no other is configured.
    fn start_servers(
        &self,
        file: &ConfigFile,
        open: Option<&ListenAddress>,
        termination: &Termination,
    ) -> Result<Servers, CommandError> {
        let Some(folder) = &self.private else {
            return Ok(Servers::default());
        };
        let mut servers = Servers::default();
        let installation = Installation::open(folder, termination)?;
        if !matches!(file.scratch, Some(ScratchSection::At { .. })) {
            let scratch = Installation::open_scratch(&installation, termination)?;
            servers.engine = Some(PrivateServer::start(scratch, termination)?);
        }
        let server = PrivateServer::start(installation, termination)?;
        if let Some(address) = open.filter(|_| root_is_open(server.socket())) {
            let address = address.to_string();
            return Err(CommandError::OpenRoot { address });
        }
        servers.server = Some(server);
        Ok(servers)
    }

    /// The scratch engine that is to be started without a private server, and the folder for it.
    fn own_engine(
        &self,
        file: &ConfigFile,
    ) -> Result<Option<(GivenEngine, Option<PathBuf>)>, CommandError> {
        let (base, is_argument) = match (&self.scratch, &file.scratch) {
            _ if self.private.is_some() => return Ok(None),
            (Some(base), _) => (Some(base.clone()), true),
            (None, Some(ScratchSection::Auto { folder })) => {
                let base = folder.as_ref().map(|folder| file.folder().join(folder));
                (base, false)
            }
            (None, _) => return Ok(None),
        };
        // Servers are told their paths, and have a working folder of their own.
        let whole = base.map(|base| {
            std::path::absolute(&base).map_err(|source| CommandError::File { path: base, source })
        });
        let engine = GivenEngine {
            place: EnginePlace::new(Whereabouts::Starting),
            is_argument,
        };
        Ok(Some((engine, whole.transpose()?)))
    }

    /// The configuration that was named, or else the private server's own, or else the one in this
    /// folder.
    fn config_file(&self) -> Result<ConfigFile, CommandError> {
        if let Some(path) = &self.config {
            return Ok(ConfigFile::read(path)?);
        }
        let here = home::default_config();
        match &self.private {
            // Its data were written under the keys beside them, wherever the program is started
            // from.
            Some(folder) if folder.join(home::CONFIG).exists() => {
                Ok(ConfigFile::read(&folder.join(home::CONFIG))?)
            }
            Some(folder) if !here.exists() => {
                make_private_home(folder)?;
                Ok(ConfigFile::read(&folder.join(home::CONFIG))?)
            }
            _ => Ok(ConfigFile::read(&here)?),
        }
    }
}

impl Servers {
    fn stop(self) {
        for server in self.server.into_iter().chain(self.engine) {
            server.stop();
        }
    }
}

/// A proxy on sockets, of which those from this one on are for sessions that only read.
fn proxy_on(
    mut listeners: Vec<Bound>,
    reading_from: usize,
    config: onionskin_proxy::Config,
) -> std::io::Result<Proxy> {
    let reading = listeners.split_off(reading_from);
    Proxy::on(listeners, config)?.and_reading_on(reading)
}

/// Begins to ask the members. No client comes before a primary is known, if there is one; a program
/// that is to be taken over serves until then.
fn begin_members(
    proxy: &Proxy,
    settings: Option<members::Settings>,
) -> std::io::Result<Option<Members>> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let members = Members::begin(proxy.lead(), proxy.reads(), settings)?;
    members.wait();
    Ok(Some(members))
}

/// Begins to write the audit log, if the configuration has one.
fn begin_audit(file: &ConfigFile, setup: &Setup) -> Result<Option<AuditConfig>, CommandError> {
    let Some((section, settings)) = file.audit.as_ref().zip(file.audit()) else {
        return Ok(None);
    };
    let log = AuditLog::begin(settings, setup.config.keys.audit_key())?;
    Ok(Some(AuditConfig {
        log,
        stops: section.stops(),
    }))
}

/// Nothing needs to be configured: the first start makes what is missing.
fn make_private_home(folder: &Path) -> Result<(), CommandError> {
    home::create_folder(folder)?;
    let keys = folder.join(home::KEYS);
    if !keys.exists() {
        // New keys would not open what is there.
        if Installation::is_initialised(folder) {
            return Err(CommandError::KeysLost {
                data: folder.join("server/data"),
                keys,
            });
        }
        home::create_keys(&keys)?;
        tracing::warn!(
            "new keys in {}: keep a copy in a safe place, without it nothing that is encrypted can be read",
            keys.display()
        );
    }
    let socket = Installation::socket_of(folder)?;
    home::write_config(
        &folder.join(home::CONFIG),
        &format!("unix:{}", socket.display()),
        // it has one by itself
        false,
    )
}

/// An address that was given as an argument.
pub fn parse_backend(text: &str) -> Result<Backend, CommandError> {
    text.parse::<Backend>()
        .map_err(|error| CommandError::BackendAddress(error.to_string()))
}

/// The first address that other machines can reach.
fn open_address(addresses: &[ListenAddress]) -> Result<Option<&ListenAddress>, CommandError> {
    for address in addresses {
        let is_local = address
            .is_local()
            .map_err(|source| CommandError::ListenAddress {
                address: address.to_string(),
                source,
            })?;
        if !is_local {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

/// Binds the addresses that no socket was given for.
fn bind_rest(
    addresses: &[ListenAddress],
    given: Vec<Option<Bound>>,
) -> Result<Vec<Bound>, CommandError> {
    let bind = |(address, given): (&ListenAddress, Option<Bound>)| match given {
        Some(bound) => Ok(bound),
        None => address
            .bind(Manner::CLIENTS)
            .map_err(|source| sockets::cannot_listen(address, source)),
    };
    addresses.iter().zip(given).map(bind).collect()
}
