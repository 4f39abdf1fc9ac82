//! What stands between the load and the server: HAProxy, onionskin, or somebody else's proxy.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use crate::{
    error::BenchError,
    process::{self, Running, find_program, last_lines},
    server::{Address, Workshop, free_port},
};

/// How long a relay may take to listen.
const START: Duration = Duration::from_secs(30);

/// The proxy's account at its scratch engine.
pub const SCRATCH_USER: &str = "scratch";

/// A relay that runs until it is dropped.
pub struct Relay {
    running: Running,
    port: u16,
}

impl Relay {
    /// HAProxy in TCP mode.
    pub fn haproxy(workshop: &Workshop, server: &Address) -> Result<Self, BenchError> {
        let program = find_program("haproxy").ok_or_else(|| BenchError::Program {
            program: "haproxy".into(),
            said: "not installed".into(),
        })?;
        let (folder, port) = (workshop.new_folder("h")?, free_port()?);
        let config = folder.join("haproxy.cfg");
        let text = format!(
            "global\n  maxconn 5000\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n\
             listen mysql\n  bind 127.0.0.1:{port}\n  server s {}\n",
            server.text()
        );
        fs::write(&config, text).map_err(BenchError::system(config.display().to_string()))?;
        let arguments = ["-db".into(), "-f".into(), config.display().to_string()];
        Self::start(workshop, &program, &arguments, &folder, port)
    }

    /// `onionskin serve` with keys of its own, and with the scratch engine at a socket.
    pub fn onionskin(
        workshop: &Workshop,
        server: &Address,
        protect: Option<(&str, &str)>,
        scratch: Option<&Path>,
    ) -> Result<Self, BenchError> {
        let port = free_port()?;
        let home = home(workshop, server, protect)?;
        if let Some(socket) = scratch {
            let path = home.join("onionskin.toml");
            let at = || BenchError::system(path.display().to_string());
            let mut text = fs::read_to_string(&path).map_err(at())?;
            text += &format!(
                "\n[scratch]\nsocket = \"{}\"\nuser = \"{SCRATCH_USER}\"\n",
                socket.display()
            );
            fs::write(&path, text).map_err(at())?;
        }
        let arguments = [
            "serve".into(),
            "-c".into(),
            home.join("onionskin.toml").display().to_string(),
            "--listen".into(),
            format!("127.0.0.1:{port}"),
        ];
        Self::start(workshop, &workshop.onionskin, &arguments, &home, port)
    }

    fn start(
        workshop: &Workshop,
        program: &Path,
        arguments: &[String],
        folder: &Path,
        port: u16,
    ) -> Result<Self, BenchError> {
        let log = folder.join("relay.log");
        let running = Running::start(
            workshop.tie,
            program,
            arguments,
            &BTreeMap::new(),
            None,
            &log,
        )?;
        let mut relay = Self { running, port };
        let begin = Instant::now();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if workshop.stop.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            if relay.running.ended().is_some() || begin.elapsed() > START {
                return Err(BenchError::Program {
                    program: program.display().to_string(),
                    said: last_lines(&fs::read_to_string(&log).unwrap_or_default(), 3),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(relay)
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

/// A folder with `onionskin.toml` and keys. `protect`: a database, and lines for its tables
/// separated by `;`.
pub fn home(
    workshop: &Workshop,
    server: &Address,
    protect: Option<(&str, &str)>,
) -> Result<PathBuf, BenchError> {
    let home = workshop.new_folder("o")?;
    let mut init = Command::new(&workshop.onionskin);
    init.args(["init", "--dir"])
        .arg(&home)
        .args(["--backend", &server.text()]);
    let ended = process::run(&mut init, &workshop.stop, Duration::from_secs(60))?;
    if !ended.success {
        return Err(BenchError::Program {
            program: "onionskin init".into(),
            said: ended.last_words(),
        });
    }
    let path = home.join("onionskin.toml");
    let at = || BenchError::system(path.display().to_string());
    let made = fs::read_to_string(&path).map_err(at())?;
    // who measures an engine names one
    let made: String = made
        .lines()
        .filter(|line| *line != "[scratch]" && *line != "engine = \"auto\"")
        .map(|line| format!("{line}\n"))
        .collect();
    let tables = protect.map_or_else(String::new, |(database, lines)| {
        format!(
            "\n[protect.\"{database}.*\"]\n{}\n",
            lines.replace("; ", "\n")
        )
    });
    // MySQL would offer TLS, which costs CPU that the other paths do not pay. Columns with `like`
    // are to have their index on either server.
    let settings = "backend_tls = \"never\"\nlike_index = true\n";
    fs::write(&path, format!("{settings}{made}{tables}")).map_err(at())?;
    Ok(home)
}

/// Why a variant cannot be run here: what it needs and is not there.
pub fn missing(needs: &[String], workshop: &Workshop) -> Option<String> {
    needs.iter().find_map(|need| {
        if let Some(command) = need.strip_prefix("onionskin ") {
            // `help` knows exactly the commands that there are.
            let found = Command::new(&workshop.onionskin)
                .args(["help", command])
                .output()
                .is_ok_and(|output| output.status.success());
            return (!found).then(|| format!("this onionskin has no command {command} yet"));
        }
        if let Some(capability) = need.strip_prefix("capability ") {
            return (!has_capability(capability, workshop))
                .then(|| format!("this onionskin has no capability {capability} yet"));
        }
        find_program(need)
            .is_none()
            .then(|| format!("{need} is not installed"))
    })
}

/// A configuration that names an unknown capability is refused before anything is served.
fn has_capability(name: &str, workshop: &Workshop) -> bool {
    let nowhere = Address {
        host: "127.0.0.1".into(),
        port: 1,
        user: String::new(),
        password: String::new(),
    };
    let protect = format!("c = [\"{name}\"]");
    let Ok(home) = home(workshop, &nowhere, Some(("bench", &protect))) else {
        return false;
    };
    let config = home.join("onionskin.toml").display().to_string();
    let Ok(output) = Command::new(&workshop.onionskin)
        .args(["serve", "-c", &config, "--listen", "127.0.0.1:nonsense"])
        .output()
    else {
        return false;
    };
    // Either the capability or the address is refused; the configuration is read first.
    !String::from_utf8_lossy(&output.stderr).contains(name)
}
