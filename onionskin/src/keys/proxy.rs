//! The proxy that runs beside this command, told of a change of the key file.

use crate::{
    config_file::ConfigFile,
    control::{self, Verdict},
    error::CommandError,
};

/// What has come of it.
pub enum Told {
    /// It runs with the file as it is now.
    Reloaded,
    /// Nobody could be told, and why.
    Nobody(String),
}

/// Has the proxy that the configuration's control socket leads to read the key file anew. An error
/// if it refuses.
pub fn tell(file: &ConfigFile) -> Result<Told, CommandError> {
    let Some(socket) = file.control_path() else {
        let why = "the configuration names no control socket";
        return Ok(Told::Nobody(why.into()));
    };
    match control::ask(&socket, "reload")? {
        // Statements that began before know the keys that they began with.
        Some((Verdict::Done | Verdict::StillRunning, _)) => Ok(Told::Reloaded),
        Some((Verdict::Refused, text)) => Err(CommandError::Reload(text)),
        None => Ok(Told::Nobody(format!(
            "no proxy listens on {}",
            socket.display()
        ))),
    }
}

/// The same where nothing depends on it: what was not done is printed.
pub fn tell_if_there(file: &ConfigFile) {
    let why = match tell(file) {
        Ok(Told::Reloaded) => return,
        Ok(Told::Nobody(why)) => why,
        Err(error) => error.to_string(),
    };
    eprintln!("onionskin: no proxy was told of the change of the key file: {why}");
}
