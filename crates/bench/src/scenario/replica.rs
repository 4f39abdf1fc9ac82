//! A replica that reads a private server's binary log.

use std::time::Instant;

use crate::{
    error::BenchError,
    server::{Address, Configuration, Family, Private, Server, Session, Workshop},
};

/// How long a replica may take to apply what is left.
pub const CATCH_UP_SECONDS: u32 = 120;

/// A server that reads the source's binary log from here on.
pub fn attach_replica(workshop: &Workshop, source: &Private) -> Result<Private, BenchError> {
    let family = source.family();
    let configuration = Configuration {
        options: vec![
            "--server-id=2".into(),
            "--relay-log=relay".into(),
            "--log-bin=binlog".into(),
            "--sync-binlog=0".into(),
        ],
        ..Configuration::default()
    };
    let replica = Private::start(workshop, family, &configuration)?;
    let (file, position) = binlog_end(&mut source.session()?, family)?;
    let Address {
        host,
        port,
        user,
        password,
    } = source.address();
    let mut session = replica.session()?;
    match family {
        Family::MariaDb => {
            session.run(&format!(
                "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='{password}', \
                 MASTER_LOG_FILE='{file}', MASTER_LOG_POS={position}, MASTER_USE_GTID=no"
            ))?;
            session.run("START SLAVE")?;
        }
        Family::MySql => {
            session.run(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', SOURCE_PASSWORD='{password}', \
                 SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={position}, GET_SOURCE_PUBLIC_KEY=1"
            ))?;
            session.run("START REPLICA")?;
        }
    }
    Ok(replica)
}

/// Where the source's binary log ends.
fn binlog_end(session: &mut Session, family: Family) -> Result<(String, String), BenchError> {
    let sql = match family {
        Family::MariaDb => "SHOW MASTER STATUS",
        Family::MySql => "SHOW BINARY LOG STATUS",
    };
    let rows = session.rows(sql)?;
    match rows.first().map(Vec::as_slice) {
        Some([file, position, ..]) => Ok((file.clone(), position.clone())),
        _ => Err(BenchError::Statement {
            sql: sql.into(),
            said: "the server writes no binary log".into(),
        }),
    }
}

/// Seconds until the replica has applied all that the source has written by now; `None` if it does
/// not.
pub fn catch_up(source: &Server, replica: &Private) -> Result<Option<f64>, BenchError> {
    let family = replica.family();
    let (file, position) = binlog_end(&mut source.session()?, family)?;
    let function = match family {
        Family::MariaDb => "MASTER_POS_WAIT",
        Family::MySql => "SOURCE_POS_WAIT",
    };
    let begin = Instant::now();
    let waited = replica.session()?.text(&format!(
        "SELECT {function}('{file}', {position}, {CATCH_UP_SECONDS})"
    ))?;
    Ok(matches!(waited.parse::<i64>(), Ok(0..)).then(|| begin.elapsed().as_secs_f64()))
}
