//! The end of a login that the client broke off.
//!
//! Servers count connections that break off before they are logged in, and after
//! `max_connect_errors` of them in a row they block the address (error 1129). Behind a proxy that
//! is everybody's: whoever can reach it, a balancer's health check or anybody, would keep all
//! applications out. Refused logins they do not count. So each login is brought to a refusal,
//! wherever the client leaves it. What counts was found on both servers, by
//! `performance_schema.host_cache`: a connection that is closed or falls silent while the server
//! waits for a packet, a malformed packet, and answers of a length that the method does not know.

use std::time::{Duration, Instant};

use onionskin_wire::MariaDbCapabilities;
use onionskin_wire::auth::MYSQL_NATIVE_PASSWORD;
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, HandshakeResponse41, InitialHandshake, OkPacket,
};

use super::error::LoginResult;
use super::greeting::NEEDED;
use super::legs::{Legs, Owed};
use super::method::Method;
use super::settings::LoginSettings;

/// How long it may take to tell the server that nobody logs in.
const EXCUSE: Duration = Duration::from_secs(2);
/// Who then logs in: an account of this name should not be.
pub(crate) const NOBODY: &[u8] = b"onionskin: nobody";
/// `utf8mb4_general_ci`, which all supported servers know.
const UTF8MB4: u8 = 45;
/// How often a server may ask for more: another method, and that method's data.
const QUESTIONS: usize = 6;

impl Legs<'_> {
    /// Brings a login to a refusal, as it may: the client is told about its own error.
    pub fn excuse(
        &mut self,
        settings: &LoginSettings,
        greeting: &InitialHandshake,
        wants_tls: bool,
    ) {
        self.whole = Instant::now() + EXCUSE;
        if self.owed == Owed::Login {
            let _ = self.log_nobody_in(settings, greeting, wants_tls);
        } else {
            let _ = self.give_wrong_answers();
        }
    }

    /// The same for a change of user.
    pub fn excuse_change(&mut self) {
        self.whole = Instant::now() + EXCUSE;
        let _ = self.give_wrong_answers();
    }

    /// Has nobody log in. The server refuses him.
    pub(super) fn log_nobody_in(
        &mut self,
        settings: &LoginSettings,
        greeting: &InitialHandshake,
        wants_tls: bool,
    ) -> LoginResult<()> {
        let mut login = HandshakeResponse41 {
            capabilities: NEEDED & greeting.capabilities,
            mariadb_capabilities: MariaDbCapabilities::empty(),
            max_packet_size: 1 << 24,
            charset: UTF8MB4,
            username: NOBODY.to_vec(),
            auth_response: Method::Native.wrong_answer().to_vec(),
            database: None,
            auth_plugin: Some(MYSQL_NATIVE_PASSWORD.as_bytes().to_vec()),
            connect_attrs: None,
        };
        if wants_tls {
            self.upgrade_server(settings, &mut login)?;
        }
        self.write_server(|out| login.encode(out))?;
        self.give_wrong_answers()
    }

    /// Answers whatever the server asks, so that it refuses.
    fn give_wrong_answers(&mut self) -> LoginResult<()> {
        let mut method = match self.owed {
            Owed::Nothing | Owed::Login => Method::Withheld,
            Owed::Answer(method) => {
                self.send_server(method.wrong_answer())?;
                method
            }
            Owed::Password(method) => {
                self.send_server(method.wrong_continuation(AuthMoreData::FULL_AUTH))?;
                method
            }
        };
        for _ in 0..QUESTIONS {
            let payload = self.read_server()?;
            match payload.split_first() {
                Some((&AuthSwitchRequest::HEADER, _)) => {
                    method = AuthSwitchRequest::decode(&payload)
                        .map_or(Method::Native, |switch| Method::of(&switch.plugin));
                    self.send_server(method.wrong_answer())?;
                }
                Some((&AuthMoreData::HEADER, AuthMoreData::FAST_AUTH_OK)) => {}
                Some((&AuthMoreData::HEADER, data)) => {
                    self.send_server(method.wrong_continuation(data))?;
                }
                // It lets everybody in, who then leaves as one should.
                Some((&OkPacket::HEADER, _)) => {
                    const COM_QUIT: u8 = 1;
                    self.server.reset_sequence();
                    return self.send_server(&[COM_QUIT]);
                }
                _ => break,
            }
        }
        Ok(())
    }
}
