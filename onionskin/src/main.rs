//! `onionskin`: an application speaks to it as if it were its MySQL or MariaDB server, and the
//! server behind it stores ciphertext. This program is wiring only: a file for each command, a
//! struct for each command's arguments.
//!
//! | file | what it is |
//! |---|---|
//! | `init`, `serve`, `explain`, `demo` | the commands of the proxy |
//! | `reload` | the commands `reload` and `check`, and what a running proxy does then |
//! | `status` | how the running proxy is |
//! | `start_check` | which servers are not there when the proxy begins to serve |
//! | `members`, `health_section` | which of several servers is the primary |
//! | `setup`, `flattened`, `differences` | what a configuration comes to, and how another one differs from it |
//! | `service`, `control`, `sockets`, `notify` | what an operator has a running proxy do, and by which ways |
//! | `admin` | the administration address: `/live`, `/ready`, `/metrics`, `/status` |
//! | `keys` | the data keys and the passphrase of `keys.json` |
//! | `tenants` | who was forgotten, of the tenants whose values have keys of their own |
//! | `identity` | makes an identity, whose recipient backups are sealed to |
//! | `seal`, `open`, `verify`, `backup`, `restore` | the commands of sealed streams |
//! | `migrate` | changes a table while it is written |
//! | `pin` | keeps in a file what is protected |
//! | `archive`, `replay` | the binlog in sealed segments, and what `restore --binlogs` does with them |
//! | `audit_log`, `audit_section` | the audit log: looked at, and where it is written |
//! | `assess` | says what still lies open |
//! | `dump` | a dump for test systems, with protected columns replaced |
//! | `bench` | measures what each layer costs |
//! | `completions` | what shells and `man` know of the commands, for packages |
//! | `tied` | a hidden command: runs the private server, and ends it with its parent |
//! | `token` | a hidden command: asks a token that speaks PKCS#11, in a process of its own |
//! | `config_file`, `scratch_section`, `config_template` | `onionskin.toml`, and the one that `init` writes |
//! | `hardening` | no core dumps, nobody looks into the process |
//! | `passphrase` | where a passphrase comes from |
//! | `key_place`, `provider_section`, `keys_watch` | where keys come from, who unwraps their root key, and what is done if nobody does |
//! | `home` | a folder with `onionskin.toml` and `keys.json` |
//! | `stream_keys`, `stream_io`, `chain`, `meter` | what those share: keys, files and pipes, backups that continue each other, progress |
//! | `trial_start` | what `verify --start` does |
//! | `tls` | TLS on both sides, from the configuration |
//! | `private` | the private server: found, initialised, started, watched, stopped |
//! | `termination`, `logging`, `error` | signals, logs, what a command ends with |

mod admin;
mod archive;
mod assess;
mod audit_log;
mod audit_section;
mod backup;
mod bench;
mod chain;
mod completions;
mod config_file;
mod config_template;
mod control;
mod definitions;
mod demo;
mod differences;
mod dump;
mod error;
mod explain;
mod flattened;
mod functions_section;
mod hardening;
mod health_section;
mod home;
mod identity;
mod init;
mod key_place;
mod keys;
mod keys_watch;
mod logging;
mod members;
mod meter;
mod migrate;
mod notify;
mod observe;
mod open;
mod passphrase;
mod pin;
mod place;
mod private;
mod provider_section;
mod reads_section;
mod reload;
mod replay;
mod restore;
mod scratch_section;
mod seal;
mod serve;
mod service;
mod setup;
mod sockets;
mod start_check;
mod status;
mod stream_io;
mod stream_keys;
mod tenants;
mod termination;
mod tied;
mod tls;
mod tls_section;
mod token;
mod trial_start;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "onionskin", version, about, propagate_version = true)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Init),
    Serve(serve::Serve),
    Check(reload::Check),
    Reload(reload::Reload),
    Status(status::Show),
    Explain(explain::Explain),
    Demo(demo::Demo),
    Keys(keys::Keys),
    Tenants(tenants::TenantsCommand),
    Identity(identity::NewIdentity),
    Seal(seal::Seal),
    Open(open::Open),
    Verify(verify::Verify),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Migrate(Box<migrate::Migrate>),
    Pin(pin::Pin),
    Archive(archive::Archive),
    AuditLog(audit_log::AuditLog),
    Assess(assess::Assess),
    Dump(Box<dump::Dump>),
    Bench(bench::Bench),
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(completions::Man),
    #[command(hide = true)]
    Tied(tied::Tied),
    #[command(hide = true)]
    Token(token::Token),
}

fn main() -> ExitCode {
    // before anything is opened
    let passed = sockets::passed_by_systemd();
    hardening::keep_memory_private();
    let ended = match Program::parse().command {
        Command::Init(init) => init.run(),
        Command::Serve(serve) => serve.run(passed),
        Command::Check(check) => check.run(),
        Command::Reload(reload) => reload.run(),
        Command::Status(status) => status.run(),
        Command::Explain(explain) => explain.run(),
        Command::Demo(demo) => demo.run(),
        Command::Keys(keys) => keys.run(),
        Command::Tenants(tenants) => tenants.run(),
        Command::Identity(identity) => identity.run(),
        Command::Seal(seal) => seal.run(),
        Command::Open(open) => open.run(),
        Command::Verify(verify) => verify.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Pin(pin) => pin.run(),
        Command::Archive(archive) => archive.run(),
        Command::AuditLog(log) => log.run(),
        Command::Assess(assess) => assess.run(),
        Command::Dump(dump) => dump.run(),
        Command::Bench(bench) => bench.run(),
        Command::Completions(completions) => completions.run(Program::command()),
        Command::Man(man) => man.run(Program::command()),
        Command::Tied(tied) => tied.run(),
        Command::Token(token) => token.run(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onionskin: {error}");
            error.exit_code()
        }
    }
}
