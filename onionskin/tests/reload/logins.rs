//! TLS and certificates that a reload asks for: also of clients that were there before.

use super::*;

/// The command, and what follows it: root without a password, no database, utf8mb4.
const COM_CHANGE_USER: u8 = 17;
const CHANGE_TO_ROOT: &[u8] = b"root\0\0\0\x2d\0mysql_native_password\0";

fn must_be_kept_out(what: &str, reply: &Reply) {
    assert!(matches!(reply, Reply::Error(3159, _)), "{what}: {reply:?}");
}

pub fn clients_without_tls_are_kept_out(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let proxy = Reloadable::start(&server, "");
    let port = proxy.proxy.port();
    let mut open = proxy.proxy.connect();
    let sound = proxy.config();
    let plain = Cli::tcp(kind, port, "root", "").without_tls();
    let secure = Cli::tcp(kind, port, "root", "").with_tls();
    let secure = match kind {
        // a self-signed certificate is not verified
        Kind::MariaDb => secure.option("--disable-ssl-verify-server-cert"),
        Kind::MySql => secure,
    };
    assert_eq!(plain.must("SELECT 1").lines().last(), Some("1"));
    let before = shown_certificate(port);
    // one is greeted, and one is logged in, when the rule comes
    let mut greeted = RawClient::connect(port);
    assert!(matches!(greeted.read(), Reply::Packet(_)), "a greeting");
    let mut other = RawClient::login(port);

    proxy.write(&format!("{sound}\n[tls]\nrequire = true\n"));
    assert!(proxy.must_reload().contains("tls.require: not set → true"));
    let refused = plain.run("SELECT 1");
    assert!(!refused.success, "{refused:?}");
    assert!(refused.err.contains("3159"), "{refused:?}");
    assert!(
        refused
            .err
            .contains("the proxy takes logins under TLS only"),
        "{refused:?}"
    );
    greeted.send(&packet(1, &login_payload(b"mysql_native_password")));
    must_be_kept_out("greeted before", &greeted.read());
    assert!(matches!(other.query(b"DO 1"), Reply::Packet(_)));
    other.command(COM_CHANGE_USER, CHANGE_TO_ROOT);
    must_be_kept_out("another user", &other.read());
    assert!(other.closes(), "the session has ended");
    assert_eq!(secure.must("SELECT 1").lines().last(), Some("1"));
    assert_eq!(
        shown_certificate(port),
        before,
        "the proxy's own certificate stays"
    );
    assert_eq!(
        open.text("SELECT 1").expect("a session stays as it is"),
        "1"
    );

    let speaks = |version: &str| {
        let output = Command::new("timeout")
            .args([
                "20",
                "openssl",
                "s_client",
                "-starttls",
                "mysql",
                version,
                "-connect",
            ])
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        String::from_utf8_lossy(&output.stdout).contains("-----BEGIN CERTIFICATE-----")
    };
    assert!(speaks("-tls1_2") && speaks("-tls1_3"));
    proxy.write(&format!("{sound}\n[tls]\nmin_version = \"1.3\"\n"));
    proxy.must_reload();
    assert!(!speaks("-tls1_2") && speaks("-tls1_3"));
    assert_eq!(plain.must("SELECT 1").lines().last(), Some("1"));
    proxy.write(&format!("{sound}\n[tls]\nmin_version = \"1.1\"\n"));
    let (done, said) = proxy.reload();
    assert!(
        !done && said.contains("1.2") && said.contains("nothing was changed"),
        "{said}"
    );
}
