//! A database server of the program's own: MariaDB or MySQL on a Unix socket in a folder, not
//! reachable over the network.
//!
//! ```text
//! DIR/                     0700; 0711 where the server runs as another user, who must pass through
//!   onionskin.toml keys.json
//!   lock                   held by the onionskin that runs the server
//!   server.pid             process id of the server
//!   server.log             what the server says
//!   server/                0700, belongs to the server's user
//!     data/ files/ tmp/    files/ is the only place where SQL can write files
//!     mysql.sock
//!   scratch/               the same once more: the scratch engine (tier 3), whose temporary tables and log lie in /dev/shm
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `program` | finds the server and the tool that makes its first data directory |
//! | `installation` | the folder: made, initialised, taken back from a server that outlived its proxy |
//! | `account` | which system user the server runs as |
//! | `trial` | a server for a moment: on restored data, or on none |
//! | `own_engine` | the scratch engine of a proxy without a private server, in a folder for a while |
//! | `memory` | folders in the machine's memory |
//! | `login` | tells whether its administrator has a password |
//! | `supervisor` | starts it, waits until it answers, starts it again when it dies, stops it |
//!
//! The server runs as whoever runs the program. Under root it runs as the user `mysql` instead: its
//! administrator can make it write files, and nobody should be able to write root's. Then it can
//! reach neither the keys nor the configuration.

mod account;
mod error;
mod installation;
mod login;
mod memory;
mod own_engine;
mod program;
mod supervisor;
mod trial;

pub use account::ServerUser;
pub use error::PrivateError;
pub use installation::Installation;
pub use login::root_is_open;
pub use onionskin_backup::environment::without_ours;
pub use own_engine::OwnEngine;
pub use program::{Family, ServerProgram, foreign};
pub use supervisor::PrivateServer;
pub use trial::Trial;
