use super::*;
use crate::config_template::template;
use crate::sockets::listed;

fn parse(text: &str) -> Result<ConfigFile, String> {
    ConfigFile::parse(Path::new("dir/onionskin.toml"), text).map_err(|error| error.to_string())
}

fn error(text: &str) -> String {
    parse(text).expect_err("must be refused")
}

#[test]
fn the_documented_file_is_understood() {
    let config = parse(
        r#"
        listen  = "127.0.0.1:3310"
        backend = "unix:/run/mysqld/mysqld.sock"
        keys    = "file:other.json"
        suite   = "sm"
        backend_tls = "never"
        [tls]
        cert = "a.pem"
        key = "b.pem"
        [protect."sbtest.*"]
        k   = ["eq", "range"]
        c   = []
        "*" = ["join:g"]
        "#,
    )
    .expect("sound");
    assert_eq!(listed(&config.listen), "127.0.0.1:3310");
    assert_eq!(config.suite, Suite::Sm);
    assert_eq!(config.keys.locator, "file:other.json");
    assert_eq!(config.backend_tls, Some(BackendTlsMode::Never));
    assert_eq!(config.folder(), Path::new("dir"));
    let found = config.policy.find("sbtest", "t", "k").expect("matched");
    assert!(found.capabilities.eq && found.capabilities.range);
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = parse("").expect("sound");
    assert_eq!(
        (
            listed(&config.listen).as_str(),
            config.keys.locator.as_str()
        ),
        (DEFAULT_LISTEN, "file:keys.json")
    );
    assert!(config.policy.is_empty() && config.tls.is_none() && config.backend_tls.is_none());
}

#[test]
fn the_template_says_what_the_defaults_are() {
    let auto = parse(&template(DEFAULT_BACKEND, true)).expect("sound");
    assert!(matches!(auto.scratch, Some(ScratchSection::Auto { .. })));
    for backend in [DEFAULT_BACKEND, "unix:/a \"strange\"/path"] {
        let config = parse(&template(backend, false)).expect("sound");
        assert_eq!(config.listen, default_listen());
        assert_eq!(config.suite, Suite::Aes);
        assert!(config.policy.is_empty() && config.tls.is_none() && config.backend_tls.is_none());
    }
    // The examples in it are right, too, as soon as they are no comments any more.
    let live: String = template(DEFAULT_BACKEND, false)
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(code) if code.starts_with('[') || code.contains(" = ") && !code.contains(": ") => {
                code
            }
            _ => line,
        })
        .fold(String::new(), |text, line| text + line + "\n");
    let config = parse(&live).expect("sound");
    assert_eq!(config.backend_tls, Some(BackendTlsMode::Verify));
    assert!(config.scratch.is_some());
    assert!(config.tls.is_some() && !config.policy.is_empty());
    assert_eq!(config.backend_rsa_key, Some("public_key.pem".into()));
    let (said, default) = (config.login, LoginLimits::default());
    assert_eq!(said.time, default.time);
    assert_eq!(
        (said.logins, said.logins_per_address),
        (default.logins, default.logins_per_address)
    );
}

#[test]
fn sections_are_enforced_as_they_say_or_as_the_file_says() {
    let unmet = |text: &str| {
        let config = parse(text).expect("sound");
        config.policy.unmet("a", "b", None).is_some()
    };
    assert!(!unmet("[protect.\"a.b\"]\nc = []\n"));
    assert!(unmet("enforce = true\n[protect.\"a.b\"]\nc = []\n"));
    assert!(unmet("[protect.\"A.b\"]\nc = []\nenforce = true\n"));
    assert!(!unmet(
        "enforce = true\n[protect.\"a.b\"]\nc = []\nenforce = false\n"
    ));
    // what stays plaintext may be missing
    let plain = "enforce = true\n[protect.\"a.b\"]\nc = \"plain\"\n\"*\" = []\n";
    assert!(!unmet(plain));
    assert!(
        parse(plain)
            .expect("sound")
            .policy
            .find("a", "b", "c")
            .is_none()
    );
    let word = error("[protect.\"a.b\"]\nc = \"plane\"\n");
    assert!(word.contains("\"plane\""), "{word}");
    // a column may be called so
    let column = parse("[protect.\"a.b\"]\nenforce = [\"eq\"]\n").expect("sound");
    assert!(column.policy.find("a", "b", "enforce").is_some());
    let other = error("[protect.\"a.b\"]\nenforced = true\n");
    assert!(other.contains("enforced"), "{other}");
    let pins = parse("pins = \"p\"\n").expect("sound");
    assert_eq!(pins.pins_path().as_deref(), Some(Path::new("dir/p")));
}

#[test]
fn several_servers_need_somebody_who_asks_them() {
    let list = "backend = [\"a:3306\", \"b:3306\"]\n";
    let config = parse(&format!("{list}[health]\nuser = \"watch\"\n")).expect("sound");
    assert!(config.has_members() && config.one_backend().is_err());
    let health = config.health.expect("it is there");
    let seconds = [health.interval(), health.timeout(), health.drain()];
    assert_eq!(seconds.map(|time| time.as_secs()), [1, 3, 10]);
    assert!(error(list).contains("[health] has to name the account"));
    let alone = error("[health]\nuser = \"watch\"\n");
    assert!(alone.contains("for a list of servers"), "{alone}");
    for bad in [
        "[]",
        "[\"a:1\"]",
        "[\"a:1\", \"a:1\"]",
        "[\"a:1\", \"b\"]",
        "3",
    ] {
        let told = error(&format!("backend = {bad}\n[health]\nuser = \"watch\"\n"));
        assert!(told.contains("line 1"), "{told}");
    }
    let none = error(&format!(
        "{list}[health]\nuser = \"w\"\ndrain_seconds = 0\n"
    ));
    assert!(none.contains("above 0"), "{none}");
}

#[test]
fn mistakes_are_named_with_their_place() {
    let unknown = error("listen = \"127.0.0.1:3307\"\nbackends = \"x\"\n");
    assert!(
        unknown.contains("unknown field `backends`") && unknown.contains("line 2"),
        "{unknown}"
    );
    assert!(
        unknown.contains("`backend`"),
        "the settings that exist: {unknown}"
    );
    let word = error("[protect.\"a.b\"]\nc = [\"equality\"]\n");
    assert!(
        word.contains("\"a.b\"") && word.contains("\"equality\"") && word.contains("\"eq\""),
        "{word}"
    );
    let pattern = error("[protect.sbtest]\nk = []\n");
    assert!(pattern.contains("database.table"), "{pattern}");
    let suite = error("suite = \"des\"\n");
    assert!(
        suite.contains("\"aes\" or \"sm\"") && suite.contains("line 1"),
        "{suite}"
    );
    let mode = error("backend_tls = \"always\"\n");
    assert!(mode.contains("`preferred`"), "{mode}");
    let backend = error("backend = \"nowhere\"\n");
    assert!(backend.contains("line 1"), "{backend}");
    let version = error("[tls]\nmin_version = \"1.1\"\n");
    assert!(
        version.contains("`1.2`") && version.contains("line 2"),
        "{version}"
    );
}
