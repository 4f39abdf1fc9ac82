//! TLS on each leg.

use crate::server::check::{Check, known, must_be_on};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Account, Facts, Link},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "tls-missing",
        layer: Layer::Network,
        title: "whether the server offers TLS",
        judge: offered,
    },
    Check {
        code: "tls-optional",
        layer: Layer::Network,
        title: "whether connections have to be under TLS",
        judge: required,
    },
    Check {
        code: "tls-versions",
        layer: Layer::Network,
        title: "old versions of TLS",
        judge: versions,
    },
    Check {
        code: "tls-accounts",
        layer: Layer::Network,
        title: "accounts that may log in without TLS",
        judge: accounts,
    },
    Check {
        code: "tls-this-connection",
        layer: Layer::Network,
        title: "the connection that this report was made over",
        judge: this_connection,
    },
    Check {
        code: "local-infile",
        layer: Layer::Network,
        title: "files of clients (LOAD DATA LOCAL)",
        judge: local_infile,
    },
];

fn offered(facts: &Facts) -> Verdict {
    if matches!(facts.link, Link::Encrypted | Link::Verified) {
        return Verdict::closed("this connection is under TLS");
    }
    match (facts.variable("have_ssl"), facts.variable("ssl_cert")) {
        (Some("YES"), _) => Verdict::closed("have_ssl = YES"),
        (Some(other), _) => Verdict::open(
            Severity::High,
            "Everything on the network between the proxy and the server can be read, but for protected columns.",
            vec![format!("have_ssl = {other}")],
            "ssl_cert = server-cert.pem\nssl_key = server-key.pem",
        ),
        (None, Some("")) => Verdict::open(
            Severity::High,
            "Everything on the network between the proxy and the server can be read, but for protected columns.",
            vec!["ssl_cert is not set".into()],
            "ssl_cert = server-cert.pem\nssl_key = server-key.pem",
        ),
        (None, Some(_)) if facts.variable("tls_version").is_some_and(|v| !v.is_empty()) => {
            Verdict::closed("ssl_cert and tls_version are set")
        }
        (None, Some(_)) => Verdict::open(
            Severity::High,
            "Everything on the network between the proxy and the server can be read, but for protected columns.",
            vec!["tls_version is empty".into()],
            "tls_version = TLSv1.2,TLSv1.3",
        ),
        (None, None) => Verdict::hidden("a server that shows the variable ssl_cert"),
    }
}

fn required(facts: &Facts) -> Verdict {
    if facts.is_on("skip_networking") {
        return Verdict::closed("skip_networking = ON");
    }
    must_be_on(facts, "require_secure_transport", |seen| {
        let mut evidence = vec![seen];
        if let Some(sessions) = facts.plain_sessions.known() {
            let line = |session: &String| format!("now without TLS: {session}");
            evidence.extend(sessions.iter().map(line));
        }
        Verdict::open(
            Severity::Medium,
            "A client that asks for no TLS gets none, and somebody between can take it away.",
            evidence,
            "SET GLOBAL require_secure_transport = ON;\nand in the proxy's configuration: backend_tls = \"verify\"",
        )
    })
}

fn versions(facts: &Facts) -> Verdict {
    let mut old = Vec::new();
    let mut seen = Vec::new();
    for name in ["tls_version", "admin_tls_version"] {
        let Some(value) = facts.variable(name) else {
            continue;
        };
        seen.push(format!("{name} = {value}"));
        let is_old = |version: &str| {
            ["TLSV1", "TLSV1.0", "TLSV1.1"].contains(&version.trim().to_uppercase().as_str())
        };
        if value.split(',').any(is_old) {
            old.push(format!("{name} = {value}"));
        }
    }
    match (seen.is_empty(), old.is_empty()) {
        (true, _) => Verdict::hidden("a server that shows the variable tls_version"),
        (_, true) => Verdict::Closed(seen),
        (_, false) => Verdict::open(
            Severity::Low,
            "TLS 1.0 and 1.1 are broken in parts, and no client needs them.",
            old,
            "tls_version = TLSv1.2,TLSv1.3",
        ),
    }
}

fn accounts(facts: &Facts) -> Verdict {
    if facts.is_on("require_secure_transport") {
        return Verdict::closed("require_secure_transport = ON, for every account");
    }
    known(&facts.accounts, "", |accounts| {
        let is_remote =
            |a: &&Account| !["localhost", "127.0.0.1", "::1"].contains(&a.host.as_str());
        let open: Vec<&Account> = accounts
            .iter()
            .filter(|a| !a.locked && !a.role && !a.requires_tls)
            .filter(is_remote)
            .collect();
        let Some(first) = open.first() else {
            return Verdict::closed("every account that may come over the network needs TLS");
        };
        let (user, host) = first.name.rsplit_once('@').unwrap_or_default();
        let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
        Verdict::open(
            Severity::Medium,
            "They may log in without TLS from another machine.",
            open.iter().map(|account| account.name.clone()).collect(),
            format!("ALTER USER {}@{} REQUIRE SSL;", quote(user), quote(host)),
        )
    })
}

fn this_connection(facts: &Facts) -> Verdict {
    match facts.link {
        Link::Socket => Verdict::closed("a Unix socket: nobody is between"),
        Link::Verified => Verdict::closed("TLS, with a certificate that was verified"),
        Link::Encrypted => Verdict::open(
            Severity::Low,
            "It was under TLS, but nothing says that the server is the right one: somebody between can have \
             answered, and read along.",
            vec!["TLS without verification".into()],
            "backend_tls = \"verify\" and backend_ca in the configuration, which -c names",
        ),
        Link::Plain => Verdict::open(
            Severity::Low,
            "Names of tables, accounts and settings went over the network in plain, and the password's check \
             could be listened to. On the loopback device nobody else listens.",
            vec!["TCP without TLS".into()],
            "backend_tls = \"verify\" and backend_ca in the configuration, which -c names",
        ),
    }
}

fn local_infile(facts: &Facts) -> Verdict {
    match facts.variable("local_infile") {
        None => Verdict::hidden("a server that shows the variable local_infile"),
        Some(_) if !facts.is_on("local_infile") => Verdict::closed("local_infile = OFF"),
        Some(_) => Verdict::open(
            Severity::Low,
            "Clients that allow it hand over any of their files that the server asks for.",
            vec!["local_infile = ON".into()],
            "SET GLOBAL local_infile = OFF;",
        ),
    }
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::samples::facts;

    #[test]
    fn old_versions_are_told() {
        let of = |versions| versions_of(versions);
        fn versions_of(text: &str) -> Verdict {
            versions(&facts(Family::MariaDb, &[("tls_version", text)]))
        }
        assert!(matches!(of("TLSv1.1,TLSv1.2"), Verdict::Open { .. }));
        assert!(matches!(of("TLSv1,TLSv1.3"), Verdict::Open { .. }));
        assert!(matches!(of("TLSv1.2,TLSv1.3"), Verdict::Closed(_)));
    }

    #[test]
    fn an_unverified_connection_is_told() {
        let mut facts = facts(Family::MySql, &[]);
        for (link, is_open) in [
            (Link::Socket, false),
            (Link::Verified, false),
            (Link::Encrypted, true),
            (Link::Plain, true),
        ] {
            facts.link = link;
            let verdict = this_connection(&facts);
            assert_eq!(
                matches!(verdict, Verdict::Open { .. }),
                is_open,
                "{verdict:?}"
            );
        }
    }
}
