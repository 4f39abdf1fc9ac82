//! A transaction of the client's in which the server has been asked nothing yet.
//!
//! MySQL reads definitions in the transaction's snapshot, and the first read makes the snapshot. A
//! client that locks a row and reads then what others have committed before it got the lock would
//! miss that, if a look-up of tables came before the lock. So a transaction that has done nothing
//! yet is ended for a look-up, and begun again as the client has begun it.

use onionskin_wire::StatusFlags;

use crate::error::Outcome;
use crate::exchange::Server;

/// Ends such a transaction.
pub(crate) const END: &[u8] = b"ROLLBACK AND NO CHAIN NO RELEASE";

/// How the client has begun its transaction.
#[derive(Default)]
pub(crate) struct FreshTransaction {
    /// What it said of this one transaction before it began.
    said: Vec<Vec<u8>>,
    /// The statement that began it; empty if there is none that could be said again.
    begun: Vec<u8>,
    /// How many questions the server had been asked by then.
    asked: u64,
    /// It only reads. MySQL keeps to that in a BEGIN that ends such a transaction, too.
    reads_only: bool,
}

impl FreshTransaction {
    /// Notes what a transaction was begun with: what was said of it before, and the statement.
    pub fn note(&mut self, begun: &[u8], said: &[Vec<u8>], server: &Server) {
        if !server.keeps_snapshots || !server.is_in_transaction() {
            return;
        }
        self.begun.clear();
        self.begun.extend_from_slice(begun);
        self.said.clear();
        self.said.extend_from_slice(said);
        self.asked = server.asked();
        self.reads_only = server.status.contains(StatusFlags::IN_TRANS_READONLY);
    }

    /// Whether the client has asked nothing in it.
    pub fn is_fresh(&self, server: &Server) -> bool {
        !self.begun.is_empty()
            && self.asked == server.asked()
            && server.keeps_snapshots
            && server.is_in_transaction()
    }

    /// The proxy has asked something, and the client nothing.
    pub fn asked_aside(&mut self, server: &Server) {
        self.asked = server.asked();
    }

    /// Begins the transaction anew, as the client has begun it.
    pub fn begin_again(mut self, server: &mut Server) -> Outcome<FreshTransaction> {
        self.begin(server)?;
        if self.reads_only && !server.status.contains(StatusFlags::IN_TRANS_READONLY) {
            server.run(END)?;
            server.run(b"SET TRANSACTION READ ONLY")?;
            self.begin(server)?;
        }
        self.asked = server.asked();
        Ok(self)
    }

    fn begin(&self, server: &mut Server) -> Outcome<()> {
        for sql in &self.said {
            server.run(sql)?;
        }
        server.run(&self.begun)?;
        Ok(())
    }
}
