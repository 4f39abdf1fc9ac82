//! A private server for a moment: on restored data, to see whether they are good, or on none, to
//! load a dump into.
//!
//! It neither replicates nor runs events: what it holds is a copy of somebody's data, and must not
//! act as if it were the original.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, lchown},
    path::{Path, PathBuf},
};

use super::{
    Family, Installation, PrivateError, PrivateServer, ServerProgram,
    installation::{Wanted, at, data_in, server_in},
};
use crate::termination::Termination;

/// A server that runs. Dropping it stops it; its folder stays.
pub struct Trial {
    server: PrivateServer,
    folder: PathBuf,
    program: ServerProgram,
}

impl Trial {
    /// Starts a server of this family in a folder of its own. `data`, if there is one, is moved
    /// into that folder, and served without asking for accounts; otherwise everything is new, and
    /// root has no password. Only who may enter the folder can reach the socket.
    pub fn start(
        folder: &Path,
        family: Family,
        data: Option<&Path>,
        options: &[String],
        termination: &Termination,
    ) -> Result<Self, PrivateError> {
        if let Some(data) = data {
            let server = server_in(folder);
            DirBuilder::new()
                .mode(0o700)
                .create(&server)
                .map_err(at(&server))?;
            fs::rename(data, data_in(folder)).map_err(at(data))?;
        }
        let mut installation = Installation::open_as(Wanted::Family(family), folder, termination)?;
        let more = &mut installation.more_options;
        more.push("--event-scheduler=OFF".into());
        // What it is given was written by others: it reads no files of clients, and follows no
        // links out of its data.
        more.push("--local-infile=OFF".into());
        more.push("--loose-skip-symbolic-links".into());
        more.push(match family {
            Family::MariaDb => "--skip-slave-start".into(),
            Family::MySql => "--skip-replica-start".into(),
        });
        if family == Family::MySql {
            // It would write certificates into the data.
            more.push("--auto-generate-certs=OFF".into());
            more.push("--caching-sha2-password-auto-generate-rsa-keys=OFF".into());
        }
        if data.is_some() {
            more.push("--skip-grant-tables".into());
        }
        more.extend_from_slice(options);
        let user = installation.user.as_ref().map(|user| (user.uid, user.gid));
        if let (Some(user), true) = (user, data.is_some()) {
            give(&server_in(&installation.folder), user)?;
        }
        let (folder, program) = (installation.folder.clone(), installation.program.clone());
        Ok(Self {
            server: PrivateServer::start(installation, termination)?,
            folder,
            program,
        })
    }

    /// The server's program.
    pub fn program(&self) -> &ServerProgram {
        &self.program
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        self.server.socket()
    }

    /// A folder in which the server can make files and folders.
    pub fn room(&self) -> PathBuf {
        server_in(&self.folder)
    }

    /// Asks the server to end, waits for that, and tells where the data are.
    pub fn stop(self) -> PathBuf {
        self.server.stop();
        data_in(&self.folder)
    }
}

/// Gives a folder and all its content to a user.
fn give(folder: &Path, user: (u32, u32)) -> Result<(), PrivateError> {
    lchown(folder, Some(user.0), Some(user.1)).map_err(at(folder))?;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        match fs::symlink_metadata(&path).map_err(at(&path))?.is_dir() {
            true => give(&path, user)?,
            false => lchown(&path, Some(user.0), Some(user.1)).map_err(at(&path))?,
        }
    }
    Ok(())
}
