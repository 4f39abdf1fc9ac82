//! Which system user the private server runs as.

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::Command,
};

use super::PrivateError;

/// The user that owns the server's folder, where that is not the user who runs the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUser {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl ServerUser {
    /// For the folder `server` in `folder`; the former may not exist yet. `None`: whoever runs the
    /// program.
    pub fn choose(folder: &Path, server: &Path) -> Result<Option<Self>, PrivateError> {
        let me = rustix::process::geteuid().as_raw();
        // Its owner could put links in the place of what is written there.
        if fs::metadata(folder).is_ok_and(|found| found.uid() != me) {
            return Err(PrivateError::NotOurs(folder.to_owned()));
        }
        match fs::symlink_metadata(server) {
            // Data that are there decide: their files belong to somebody already.
            Ok(found) if found.uid() == me && me != 0 => Ok(None),
            Ok(found) if me == 0 && found.uid() != 0 => Ok(Some(Self {
                name: name_of(found.uid()).unwrap_or_else(|| found.uid().to_string()),
                uid: found.uid(),
                gid: found.gid(),
            })),
            Ok(_) if me != 0 => Err(PrivateError::NotOurs(server.to_owned())),
            _ if me != 0 => Ok(None),
            _ => Self::mysql().map(Some).ok_or(PrivateError::NoServerUser),
        }
    }

    /// For servers in new folders of ours: nobody owns data there yet.
    pub fn for_new_folders() -> Result<Option<Self>, PrivateError> {
        match rustix::process::geteuid().is_root() {
            true => Self::mysql().map(Some).ok_or(PrivateError::NoServerUser),
            false => Ok(None),
        }
    }

    fn mysql() -> Option<Self> {
        accounts().find(|account| account.name == "mysql" && account.uid != 0)
    }

    /// Runs `command` as this user.
    pub fn applied_to<'a>(user: Option<&Self>, command: &'a mut Command) -> &'a mut Command {
        if let Some(user) = user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

fn name_of(uid: u32) -> Option<String> {
    accounts()
        .find(|account| account.uid == uid)
        .map(|account| account.name)
}

/// The accounts of this machine. Those of a directory service are not among them: `mysql` never is
/// one.
fn accounts() -> impl Iterator<Item = ServerUser> {
    let lines = fs::read_to_string("/etc/passwd").unwrap_or_default();
    lines
        .lines()
        .filter_map(account)
        .collect::<Vec<_>>()
        .into_iter()
}

fn account(line: &str) -> Option<ServerUser> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(ServerUser { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_account_file_is_read() {
        let mysql =
            account("mysql:x:102:105:MySQL Server,,,:/nonexistent:/bin/false").expect("sound");
        assert_eq!(
            (mysql.name.as_str(), mysql.uid, mysql.gid),
            ("mysql", 102, 105)
        );
        assert_eq!(account("broken:x:no:1"), None);
        assert_eq!(account(""), None);
    }
}
