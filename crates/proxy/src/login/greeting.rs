//! The server's greeting and the client's answer to it, up to the authentication.

use onionskin_value::{Charset, Family};
use onionskin_wire::auth::MYSQL_NATIVE_PASSWORD;
use onionskin_wire::messages::{ErrPacket, HandshakeResponse41, InitialHandshake, SslRequest};
use onionskin_wire::{Capabilities, DefinitionForm, MariaDbCapabilities};

use super::database;
use super::error::{BAD_HANDSHAKE, LoginError, LoginResult, OLD_CLIENT, STRANGE_CHARSET};
use super::legs::{Legs, Owed, read};
use super::method::{Method, is_for_clients, withhold};
use super::settings::{LoginSettings, Now};
use crate::config::BackendTls;

/// What the proxy asks of the server whatever the client chose. Results are not formed differently
/// by these, or are made to fit when they are passed on.
pub(crate) const NEEDED: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS);

/// What was settled before the authentication.
pub(crate) struct Agreed {
    pub client_capabilities: Capabilities,
    pub server_capabilities: Capabilities,
    /// The form of column definitions, on both sides.
    pub form: DefinitionForm,
    pub family: Family,
    pub server_version: String,
    pub connection_id: u32,
    pub user: String,
    pub database: Option<String>,
    pub charset: u8,
    pub attributes: Option<Vec<u8>>,
    pub client_authority: Option<[u8; 32]>,
}

/// A client's login, and the authority under whose rule the connection went over to TLS.
type Response = (HandshakeResponse41, Option<[u8; 32]>);

/// The login from the server's greeting on.
pub(crate) fn relay_greeted(
    legs: &mut Legs<'_>,
    settings: &LoginSettings,
    now: Now<'_>,
    greeting: &InitialHandshake,
    wants_tls: bool,
) -> LoginResult<Option<(Agreed, Vec<u8>)>> {
    let offered = settings.offer(greeting.capabilities);
    let mariadb = greeting.mariadb_capabilities & MariaDbCapabilities::SUPPORTED;
    legs.greet(&InitialHandshake {
        capabilities: offered,
        mariadb_capabilities: mariadb,
        ..greeting.clone()
    })?;
    let (mut response, client_authority) = legs.read_response(settings, now)?;
    let client_capabilities = response.capabilities & offered;
    if !client_capabilities.contains(Capabilities::SECURE_CONNECTION) {
        return Err(LoginError::Refused(OLD_CLIENT));
    }
    if !is_for_clients(response.charset) {
        return Err(LoginError::Refused(STRANGE_CHARSET));
    }

    response.mariadb_capabilities &= mariadb;
    response.capabilities = (client_capabilities | NEEDED) & greeting.capabilities;
    if wants_tls {
        legs.upgrade_server(settings, &mut response)?;
    } else {
        response.capabilities.remove(Capabilities::SSL);
    }
    let server_capabilities = response.capabilities;
    let form = response.mariadb_capabilities.into();
    let named = client_capabilities.contains(Capabilities::PLUGIN_AUTH);
    let method = legs.first_method(
        named,
        &mut response.auth_plugin,
        &mut response.auth_response,
    );
    response.database = response.database.filter(|name| !name.is_empty());
    // A name that is ill-formed in its character set MariaDB counts as a broken greeting: it is
    // asked for afterwards.
    let later = response.database.take_if(|name| !name.is_ascii());
    legs.write_server(|out| response.encode(out))?;
    legs.owed = Owed::Nothing;

    let user = text(&response.username);
    let scramble = greeting.auth_data.clone();
    let Some(ok) = legs.authenticate(method, scramble, named)? else {
        return Ok(None);
    };
    if let Some(name) = &later
        && !legs.use_database(name)?
    {
        return Ok(None);
    }
    let agreed = Agreed {
        client_capabilities,
        server_capabilities,
        form,
        family: family_of(greeting),
        server_version: version_of(greeting),
        connection_id: greeting.connection_id,
        user,
        database: response.database.or(later).and_then(|name| {
            database::named(
                &name,
                Charset::from_collation_id(u16::from(response.charset)),
            )
        }),
        charset: response.charset,
        attributes: response.connect_attrs,
        client_authority,
    };
    Ok(Some((agreed, ok)))
}

pub(super) fn family_of(greeting: &InitialHandshake) -> Family {
    match greeting.is_mariadb() {
        true => Family::MariaDb,
        false => Family::MySql,
    }
}

/// The server's version, without what MariaDB puts before it for old replicas.
pub(super) fn version_of(greeting: &InitialHandshake) -> String {
    let version = &greeting.server_version;
    text(version.strip_prefix(b"5.5.5-").unwrap_or(version))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Legs<'_> {
    /// Greets the client.
    fn greet(&mut self, greeting: &InitialHandshake) -> LoginResult<()> {
        let mut payload = Vec::new();
        greeting.encode(&mut payload).map_err(LoginError::Server)?;
        self.write_client(&payload)
    }

    /// Reads the client's login, after TLS if it asks for it: all of that is one turn.
    fn read_response(&mut self, settings: &LoginSettings, now: Now<'_>) -> LoginResult<Response> {
        self.waits(false)?;
        let response = self.read_response_in_turn(settings, now);
        self.goes_on()?;
        response
    }

    fn read_response_in_turn(
        &mut self,
        settings: &LoginSettings,
        now: Now<'_>,
    ) -> LoginResult<Response> {
        let turn = self.turn();
        self.limit_client(turn)?;
        let mut payload = read(self.client).map_err(LoginError::Client)?;
        let mut authority = None;
        if SslRequest::is_ssl_request(&payload) {
            // the client may have been greeted before a reload
            let now = now();
            let rules = now.client_tls.as_ref().map_or(settings, |_| &now);
            let Some(config) = &rules.client_tls else {
                return Err(LoginError::Refused(BAD_HANDSHAKE));
            };
            // The login under TLS says all of it again.
            SslRequest::decode(&payload).map_err(LoginError::Client)?;
            self.waits(true)?;
            self.client
                .upgrade_server_tls(config.clone())
                .map_err(LoginError::Client)?;
            authority = rules.client_authority;
            payload = read(self.client).map_err(LoginError::Client)?;
        }
        now().must_admit(self.client.transport(), authority)?;
        let response = HandshakeResponse41::decode(&payload).map_err(LoginError::Client)?;
        Ok((response, authority))
    }

    /// Chooses a database that was left out of the login. False if the server refuses; the client
    /// has its error then.
    fn use_database(&mut self, name: &[u8]) -> LoginResult<bool> {
        const COM_INIT_DB: u8 = 2;
        self.server.reset_sequence();
        self.send_server(&[&[COM_INIT_DB], name].concat())?;
        let payload = self.read_server()?;
        if ErrPacket::is_err(&payload) {
            self.write_client(&payload)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Goes on under TLS with the server, and makes the login say so.
    pub fn upgrade_server(
        &mut self,
        settings: &LoginSettings,
        response: &mut HandshakeResponse41,
    ) -> LoginResult<()> {
        let (BackendTls::IfOffered(config)
        | BackendTls::Required(config)
        | BackendTls::Verified(config)) = &settings.backend_tls
        else {
            return Ok(());
        };
        let name = settings
            .backend
            .server_name()
            .map_err(|e| LoginError::Unreachable(std::io::Error::other(e)))?;
        response.capabilities |= Capabilities::SSL;
        let request = response.ssl_request();
        self.write_server(|out| {
            request.encode(out);
            Ok(())
        })?;
        self.server
            .upgrade_client_tls(config.clone(), name)
            .map_err(LoginError::Server)
    }

    /// The method of the client's first answer, which is taken out of the login unless it can only
    /// be one to the scramble.
    pub fn first_method(
        &self,
        named: bool,
        plugin: &mut Option<Vec<u8>>,
        answer: &mut Vec<u8>,
    ) -> Method {
        let name = plugin.get_or_insert_default();
        if !named || name.is_empty() {
            // Clients that do not name their method have this one.
            *name = MYSQL_NATIVE_PASSWORD.into();
        }
        match Method::of(name) {
            method @ (Method::Native | Method::CachingSha2) if method.accepts(answer) => method,
            _ => {
                withhold(plugin, answer);
                Method::Withheld
            }
        }
    }
}
