//! COM_CHANGE_USER: a login on connections that exist.

use std::time::{Duration, Instant};

use onionskin_wire::auth::LinkTrust;
use onionskin_wire::messages::ComChangeUser;
use onionskin_wire::{Capabilities, Connection, WireError};

use super::authenticate::Verdict;
use super::error::{LoginError, LoginResult, tell};
use super::legs::{Legs, Timing};
use super::method::{Method, withhold};
use crate::error::{Failure, Outcome};

/// How long a change of user may take as a whole.
const CHANGE_OF_USER: Duration = Duration::from_secs(30);

/// Relays COM_CHANGE_USER with all that follows. `payload` is the command, which was just read from
/// the client.
///
/// The server's OK is returned, not passed on. `None`: the server refused, and the client was told
/// so. MySQL then closes the connection; MariaDB leaves it open for the user that it had, with
/// everything else reset.
pub(crate) fn change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    trust: LinkTrust,
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> Outcome<Option<Vec<u8>>> {
    let done = relay_change_user(
        client,
        server,
        payload,
        trust,
        client_capabilities,
        server_capabilities,
    );
    match done {
        Ok(verdict) => Ok(verdict),
        Err(LoginError::Client(e)) => Err(Failure::Client(e)),
        Err(LoginError::Server(e)) => Err(Failure::Backend(e)),
        Err(error) => {
            // The server waits in the middle of a login; it can be used for nothing else.
            tracing::info!(%error, "no change of user");
            tell(client, &error);
            Err(Failure::Client(WireError::Closed))
        }
    }
}

fn relay_change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    trust: LinkTrust,
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> LoginResult<Verdict> {
    let mut command =
        ComChangeUser::decode(payload, client_capabilities).map_err(LoginError::Client)?;
    let timing = Timing {
        whole: Instant::now() + CHANGE_OF_USER,
        pace: None,
    };
    let mut legs = Legs::new(client, server, timing, trust);
    let named = client_capabilities.contains(Capabilities::PLUGIN_AUTH);
    let mut method = legs.first_method(named, &mut command.auth_plugin, &mut command.auth_response);
    if method == Method::CachingSha2 && !legs.are_alike() {
        // To encrypt a password takes the scramble, so have the server send one.
        withhold(&mut command.auth_plugin, &mut command.auth_response);
        method = Method::Withheld;
    }
    legs.asks_unnamed = true;
    legs.server.reset_sequence();
    legs.write_server(|out| command.encode(out, server_capabilities))?;
    let verdict = legs.authenticate(method, Vec::new(), named);
    if let Err(LoginError::Client(_) | LoginError::Refused(_)) = &verdict {
        legs.excuse_change();
    }
    let verdict = verdict?;
    legs.end()?;
    Ok(verdict)
}
