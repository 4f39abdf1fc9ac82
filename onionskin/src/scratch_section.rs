//! `[scratch]`: the server on the trusted side that does what neither the server behind nor the
//! proxy can.

use std::path::{Path, PathBuf};

use onionskin_proxy::{EnginePlace, Whereabouts};
use serde::Deserialize;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Words")]
pub enum ScratchSection {
    /// `engine = "auto"`: the program starts one for itself.
    Auto {
        /// `folder`: where it makes the engine's. In memory if nobody says.
        folder: Option<PathBuf>,
    },
    /// One that runs.
    At {
        /// Its Unix socket.
        socket: PathBuf,
        /// An account without a password, or one that is recognized by its system user.
        user: String,
    },
}

/// The section as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    engine: Option<Engine>,
    folder: Option<PathBuf>,
    socket: Option<PathBuf>,
    user: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Engine {
    Auto,
}

impl TryFrom<Words> for ScratchSection {
    type Error = &'static str;

    fn try_from(words: Words) -> Result<Self, Self::Error> {
        match words {
            Words {
                engine: Some(Engine::Auto),
                folder,
                socket: None,
                user: None,
            } => Ok(Self::Auto { folder }),
            Words {
                engine: None,
                folder: None,
                socket: Some(socket),
                user,
            } => Ok(Self::At {
                socket,
                user: user.unwrap_or_else(|| "root".into()),
            }),
            Words {
                engine: None,
                socket: None,
                ..
            } => Err("[scratch] needs engine = \"auto\", or the socket of an engine that runs"),
            _ => Err("[scratch] has either engine = \"auto\" (and folder), or socket (and user)"),
        }
    }
}

impl ScratchSection {
    /// Where the engine is, and the account. Relative paths start at `folder`.
    pub fn place(&self, folder: &Path) -> (EnginePlace, &str) {
        match self {
            Self::At { socket, user } => {
                let socket = folder.join(socket);
                (EnginePlace::new(Whereabouts::At(socket)), user)
            }
            // whoever starts it makes a place of his own
            Self::Auto { .. } => (EnginePlace::new(Whereabouts::Starting), "root"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ScratchSection, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_engine_is_started_or_named() {
        let auto = read("engine = \"auto\"").expect("sound");
        assert_eq!(auto, ScratchSection::Auto { folder: None });
        let named = read("socket = \"s\"").expect("sound");
        let user = "root".to_owned();
        let socket = PathBuf::from("s");
        assert_eq!(named, ScratchSection::At { socket, user });
        for bad in [
            "",
            "user = \"a\"",
            "engine = \"auto\"\nsocket = \"s\"",
            "engine = \"auto\"\nuser = \"a\"",
            "socket = \"s\"\nfolder = \"f\"",
        ] {
            let error = read(bad).expect_err(bad);
            assert!(error.contains("engine = \"auto\""), "{error}");
        }
        assert!(
            read("engine = \"never\"")
                .expect_err("unknown")
                .contains("`auto`")
        );
    }
}
