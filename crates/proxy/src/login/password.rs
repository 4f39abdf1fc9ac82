//! Passwords that pass through the proxy: which link they may leave it over.
//!
//! Where a method sends the password itself, the proxy has it in the clear for a moment, unless
//! neither leg is secure: then the client encrypts it for the server, and what it takes for the
//! server's key is its own affair. What the proxy has in the clear goes to a server only that is
//! known to be the right one ([`LinkTrust`]): over a Unix socket, under TLS with a certificate that
//! was verified, or under an RSA key that the configuration names. TLS that verifies nothing may
//! end at anybody, and so may an RSA key that the peer sends.

use std::sync::OnceLock;

use onionskin_wire::auth::{PasswordKey, cleartext_password};
use onionskin_wire::messages::AuthMoreData;
use onionskin_wire::{WireError, WireResult};
use zeroize::Zeroizing;

use super::error::{LoginError, LoginResult};
use super::legs::{Legs, Owed, Secret};
use super::method::Method;

pub(crate) const UNTRUSTED: &str = "the login method sends the password, and nothing proves that the server is the right one: set backend_ca and backend_tls = \"verify\" (\"required\" where the certificate names no host, as MySQL's own), reach the server over a Unix socket, or set backend_tls = \"never\" and name its public_key.pem in backend_rsa_key";
pub(crate) const FOREIGN_KEY: &str =
    "the password is encrypted under a key that is not the proxy's";
pub(crate) const OTHER_SERVER_KEY: &str =
    "the server's RSA key is not the one that backend_rsa_key names";

impl Legs<'_> {
    /// Whether the server may be given a password.
    pub fn server_is_trusted(&self) -> bool {
        self.trust.covers(self.server.transport())
    }

    /// Refuses, before the client is asked, to have a password that could not be passed on.
    pub fn check_password_way(&self, method: Method) -> LoginResult<()> {
        let pinned = self.trust.rsa_key.is_some() && !self.server.transport().is_tls();
        let client = self.client_hands_over(method);
        if client && !self.server_is_trusted() && !pinned {
            return Err(LoginError::Refused(UNTRUSTED));
        }
        Ok(())
    }

    /// Whether the client, or its RSA exchange, gives the password to the proxy.
    fn client_hands_over(&self, method: Method) -> bool {
        let (client, server) = self.security(method);
        client || server
    }

    /// Which of client and server take the connection for one that a password can go over as it is.
    fn security(&self, method: Method) -> (bool, bool) {
        match method {
            // Here a Unix socket does not count: clients and servers ask for TLS.
            Method::Sha256 => (
                self.client.transport().is_tls(),
                self.server.transport().is_tls(),
            ),
            _ => (self.client.is_secure(), self.server.is_secure()),
        }
    }

    /// Passes the password on, which the client sends now. `request` is how a method asks for an
    /// RSA key.
    ///
    /// Returns a packet of the server that is not the key it was asked for.
    pub fn relay_password(
        &mut self,
        method: Method,
        request: &[u8],
        scramble: &[u8],
    ) -> LoginResult<Option<Vec<u8>>> {
        let secure = self.security(method);
        let answer = self.read_client()?;
        // An account without a password needs no protection for it. An empty packet MySQL counts as
        // a broken greeting.
        let blank = answer.is_empty() || answer[..] == [0];
        match secure {
            _ if blank => self.send_server(&[0])?,
            (true, true) => {
                self.check_password_way(method)?;
                self.send_server(&answer)?;
            }
            (false, false) => return self.relay_encrypted(method, request, answer),
            (true, false) => {
                let password = answer.strip_suffix(&[0]).unwrap_or(&answer);
                return self.encrypt_for_server(method, request, password, scramble);
            }
            (false, true) => {
                let password = self.decrypt_from_client(request, answer, scramble)?;
                self.check_password_way(method)?;
                self.send_server(&Zeroizing::new(cleartext_password(&password)))?;
            }
        }
        Ok(None)
    }

    /// Client and server agree on a key by themselves.
    fn relay_encrypted(
        &mut self,
        method: Method,
        request: &[u8],
        answer: Secret,
    ) -> LoginResult<Option<Vec<u8>>> {
        self.send_server(&answer)?;
        if answer[..] != *request {
            return Ok(None);
        }
        let key = self.read_server()?;
        let Ok(data) = AuthMoreData::decode(&key) else {
            return Ok(Some(key));
        };
        self.owed = Owed::Answer(method);
        if let Some(pinned) = &self.trust.rsa_key
            && !pinned.is(data.data)
        {
            return Err(LoginError::Refused(OTHER_SERVER_KEY));
        }
        self.write_client(&key)?;
        let encrypted = self.read_client()?;
        self.send_server(&encrypted)?;
        Ok(None)
    }

    /// Under the key that is configured, or else one that comes over a link that nobody else is at
    /// the end of.
    fn encrypt_for_server(
        &mut self,
        method: Method,
        request: &[u8],
        password: &[u8],
        scramble: &[u8],
    ) -> LoginResult<Option<Vec<u8>>> {
        self.check_password_way(method)?;
        let encrypted = match &self.trust.rsa_key {
            Some(pinned) => pinned.encrypt_password(password, scramble),
            None => {
                self.send_server(request)?;
                let payload = self.read_server()?;
                let Ok(key) = AuthMoreData::decode(&payload) else {
                    return Ok(Some(payload));
                };
                self.owed = Owed::Answer(method);
                onionskin_wire::auth::encrypt_password(password, scramble, key.data)
            }
        };
        self.send_server(&encrypted.map_err(LoginError::Server)?)?;
        Ok(None)
    }

    /// The client is shown a key of the proxy's.
    fn decrypt_from_client(
        &mut self,
        request: &[u8],
        answer: Secret,
        scramble: &[u8],
    ) -> LoginResult<Zeroizing<Vec<u8>>> {
        let own: &PasswordKey = password_key().map_err(LoginError::Client)?;
        let mut encrypted = answer;
        if encrypted[..] == *request {
            let mut key = Vec::new();
            let data = own.public_pem().as_bytes();
            AuthMoreData { data }.encode(&mut key);
            self.write_client(&key)?;
            encrypted = self.read_client()?;
        }
        // Otherwise it has a key already, hopefully ours from an earlier login.
        own.decrypt_password(&encrypted, scramble)
            .map(Zeroizing::new)
            .map_err(|_: WireError| LoginError::Refused(FOREIGN_KEY))
    }
}

/// The proxy's own RSA key, made when it is first needed.
pub(crate) fn password_key() -> WireResult<&'static PasswordKey> {
    static KEY: OnceLock<Option<PasswordKey>> = OnceLock::new();
    KEY.get_or_init(|| PasswordKey::generate().ok())
        .as_ref()
        .ok_or(WireError::Malformed("no RSA key could be made"))
}
