//! COM_CHANGE_USER, and what a session forgets with it and with COM_RESET_CONNECTION.

use onionskin_value::{Charset, Family};
use onionskin_wire::WireError;
use onionskin_wire::messages::ComChangeUser;

use super::{Session, Unsure};
use crate::audit::read_attributes;
use crate::error::{Failure, Outcome};
use crate::fresh_transaction::FreshTransaction;
use crate::login::database::named;
use crate::next_transaction::NextTransaction;
use crate::state::ClientTracking;
use crate::unique_keys::UniqueKeys;

impl Session {
    pub(super) fn change_user(&mut self) -> Outcome<()> {
        // it is a login
        let transport = self.client.transport();
        let admitted = self
            .shared
            .login
            .must_admit(transport, self.client_authority);
        if let Err(error) = admitted {
            crate::login::tell(&mut self.client, &error);
            return Err(Failure::Client(WireError::Closed));
        }
        let payload = self.client.last_payload().to_vec();
        let done = crate::login::change_user(
            &mut self.client,
            &mut self.server.connection,
            &payload,
            self.trust.clone(),
            self.client_capabilities,
            self.server.capabilities,
        )?;
        let Some(ok) = done else {
            return match self.state.family {
                // the user stays the same, and all else is as after a reset
                Family::MariaDb => {
                    self.current.may_lose_database = true;
                    self.forget_session()
                }
                Family::MySql => Err(Failure::Client(WireError::Closed)),
            };
        };
        let asked = ComChangeUser::decode(&payload, self.client_capabilities);
        if let Ok(asked) = &asked {
            let charset = asked.charset.and_then(Charset::from_collation_id);
            self.state.database = named(&asked.database, charset);
            let account = String::from_utf8_lossy(&asked.username).into_owned();
            let (sessions, limits) = (&self.shared.sessions, &self.shared.config.sessions);
            if let Err(too_many) = sessions.change_account(&self.activity, account, limits) {
                tracing::warn!(
                    id = self.connection_id,
                    limit = too_many.setting(),
                    "too many sessions: no change of user"
                );
                let mut out = Vec::new();
                too_many.packet().encode(&mut out);
                self.write(&out)?;
                self.flush()?;
                return Err(Failure::Client(WireError::Closed));
            }
        }
        self.forget_session()?;
        let transport = self.client.transport();
        if let Err(error) = self.shared.login.must_fit(&self.state.account, transport) {
            crate::login::tell(&mut self.client, &error);
            return Err(Failure::Client(WireError::Closed));
        }
        if let Ok(asked) = asked {
            self.state.announce(asked.charset.unwrap_or_default());
            self.audited.attributes = read_attributes(asked.connect_attrs.as_deref());
        }
        self.write_ok_payload(&ok)
    }

    /// Forgets what the session did: it begins again, perhaps with another user.
    pub(super) fn forget_session(&mut self) -> Outcome<()> {
        self.unsure = Unsure::default();
        self.statements.clear();
        self.functions.clear();
        self.diagnostics.clear();
        self.unique_keys = UniqueKeys::default();
        self.locked_tables = false;
        self.client_tracking = ClientTracking::default();
        self.next_transaction = NextTransaction::default();
        self.fresh_transaction = FreshTransaction::default();
        self.has_savepoints = false;
        self.engine = None;
        self.refresh_state()
    }
}
