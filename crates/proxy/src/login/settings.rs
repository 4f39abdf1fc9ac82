//! The part of the configuration that logins depend on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onionskin_wire::auth::LinkTrust;
use onionskin_wire::{Capabilities, Transport};
use rustls::ServerConfig;

use super::error::{
    ANOTHER_CERTIFICATE, CERTIFICATE_REQUIRED, LoginError, LoginResult, SERVER_WITHOUT_TLS,
    TLS_REQUIRED,
};
use crate::certificates::CertificateRules;
use crate::config::{Backend, BackendTls, Config};
use crate::members::{Era, Leading};

/// The part of the configuration that logins depend on.
pub(crate) struct LoginSettings {
    pub backend: Backend,
    /// The one address at which the server is to be reached, where its monitor has found it.
    pub address: Option<SocketAddr>,
    /// How long it may take to accept a connection, where it is one of several.
    pub connecting: Option<Duration>,
    /// Why nobody may log in at the moment.
    pub closed: Option<String>,
    /// See [`crate::members`].
    pub era: Era,
    pub client_tls: Option<Arc<ServerConfig>>,
    /// Clients without TLS are refused.
    pub requires_tls: bool,
    /// The authority whose certificates they have to show.
    pub client_authority: Option<[u8; 32]>,
    pub backend_tls: BackendTls,
    pub trust: LinkTrust,
    /// The server is told where clients are.
    pub tells_clients: bool,
    /// Certificates that accounts have to show.
    pub certificates: CertificateRules,
    pub trace: bool,
}

/// Gives what holds at the moment: a reload may come while a client is logging in.
pub(crate) type Now<'a> = &'a dyn Fn() -> Arc<LoginSettings>;

impl LoginSettings {
    /// Takes it out of a configuration.
    pub fn of(config: &Config, leading: &Leading) -> Self {
        let place = leading.place.as_ref();
        Self {
            backend: place.map_or(&config.backend, |place| &place.member).clone(),
            address: place.and_then(|place| place.address),
            connecting: config.member_timeout,
            closed: leading.closed.clone(),
            era: leading.era(),
            client_tls: config.client_tls.clone(),
            requires_tls: config.requires_tls,
            client_authority: config.client_authority,
            backend_tls: config.backend_tls.clone(),
            trust: config.trust(),
            tells_clients: config.tells_clients,
            certificates: config.certificates.clone(),
            trace: config.trace,
        }
    }

    /// Those of a server that is asked without TLS, and for no client: whether it is there.
    pub fn plain(backend: Backend) -> Self {
        Self {
            backend,
            address: None,
            connecting: None,
            closed: None,
            era: Era::default(),
            client_tls: None,
            requires_tls: false,
            client_authority: None,
            backend_tls: BackendTls::Never,
            trust: LinkTrust::default(),
            tells_clients: false,
            certificates: CertificateRules::default(),
            trace: false,
        }
    }

    /// What the client is offered by a server that offers `greeted`.
    pub fn offer(&self, greeted: Capabilities) -> Capabilities {
        let mut offered = greeted & Capabilities::SUPPORTED;
        offered.set(Capabilities::SSL, self.client_tls.is_some());
        offered
    }

    /// Whether a client may log in: by its connection, and by the authority under whose rule that
    /// went over to TLS.
    /// A Unix socket is as good as TLS, as for servers.
    pub fn must_admit(&self, client: &Transport, authority: Option<[u8; 32]>) -> LoginResult<()> {
        self.admits(client.is_secure(), authority)
    }

    fn admits(&self, is_secure: bool, authority: Option<[u8; 32]>) -> LoginResult<()> {
        match self.client_authority {
            _ if self.requires_tls && !is_secure => Err(LoginError::Refused(TLS_REQUIRED)),
            Some(_) if self.client_authority != authority => {
                Err(LoginError::Refused(CERTIFICATE_REQUIRED))
            }
            _ => Ok(()),
        }
    }

    /// Whether an account may log in over a connection: by the certificate that was shown there.
    /// `account` as [`State::account`](crate::state::State) has it.
    pub fn must_fit(&self, account: &str, client: &Transport) -> LoginResult<()> {
        match self.certificates.admit(account, client.peer_certificate()) {
            true => Ok(()),
            false => Err(LoginError::Refused(ANOTHER_CERTIFICATE)),
        }
    }

    /// Whether the server is to be reached under TLS.
    pub fn wants_backend_tls(&self, greeted: Capabilities) -> LoginResult<bool> {
        let offered = greeted.contains(Capabilities::SSL);
        match (&self.backend_tls, &self.backend) {
            (BackendTls::Never, _) | (BackendTls::IfOffered(_), Backend::Unix(_)) => Ok(false),
            (BackendTls::IfOffered(_), Backend::Tcp { .. }) => Ok(offered),
            (BackendTls::Required(_) | BackendTls::Verified(_), _) if offered => Ok(true),
            (BackendTls::Required(_) | BackendTls::Verified(_), _) => {
                Err(LoginError::Refused(SERVER_WITHOUT_TLS))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(requires_tls: bool, rule: Option<u8>, is_tls: bool, shown: Option<u8>) -> bool {
        let settings = LoginSettings {
            requires_tls,
            client_authority: rule.map(|byte| [byte; 32]),
            ..LoginSettings::plain(Backend::Unix("/nowhere".into()))
        };
        settings
            .admits(is_tls, shown.map(|byte| [byte; 32]))
            .is_ok()
    }

    #[test]
    fn a_connection_is_judged_by_the_rule_of_now() {
        assert!(admits(false, None, false, None));
        assert!(!admits(true, None, false, None));
        assert!(admits(true, None, true, None));
        assert!(admits(true, Some(1), true, Some(1)));
        assert!(
            !admits(true, Some(1), true, None),
            "no certificate was asked for"
        );
        assert!(
            !admits(true, Some(1), true, Some(2)),
            "of another authority"
        );
        assert!(
            admits(true, None, true, Some(2)),
            "none is asked for any more"
        );
    }
}
