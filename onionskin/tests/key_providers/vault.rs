//! A real OpenBao behind TLS, with its keys on a disk: logins, refusals, and what is said of each.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::outages::http;
use super::*;

/// What a proxy may do, and nothing else.
const OPENS: &str = r#"path "transit/decrypt/onionskin" { capabilities = ["update"] }"#;
/// What whoever runs `onionskin keys` may do.
const CHANGES: &str = r#"path "transit/decrypt/onionskin" { capabilities = ["update"] }
path "transit/encrypt/onionskin" { capabilities = ["update"] }"#;

/// An OpenBao that is unsealed, with a transit key `onionskin`.
struct Bao {
    folder: tempfile::TempDir,
    port: u16,
    /// Where others of a cluster would be.
    cluster: u16,
    child: Option<Child>,
    /// Of the first start: the unseal key, and the root's token.
    seal: String,
    root: String,
}

impl Bao {
    /// `None` where there is none, which is told.
    fn start() -> Option<Bao> {
        let program = program();
        if !program.exists() {
            let why = fs::read_to_string(checkout().join(".servers/openbao.skipped"));
            let why = why.unwrap_or("scripts/install-deps.sh tests has not been run".into());
            announce(&format!("SKIPPED: OpenBao: {}", why.trim()));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        certificates(folder.path());
        fs::create_dir(folder.path().join("data")).expect("made");
        let mut bao = Bao {
            folder,
            port: free_port(),
            cluster: free_port(),
            child: None,
            seal: String::new(),
            root: String::new(),
        };
        bao.launch();
        let made = bao.bao(&[
            "operator",
            "init",
            "-key-shares=1",
            "-key-threshold=1",
            "-format=json",
        ]);
        let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
        bao.seal = made["unseal_keys_b64"][0].as_str().expect("a key").into();
        bao.root = made["root_token"].as_str().expect("a token").into();
        bao.unseal();
        bao.bao(&["secrets", "enable", "transit"]);
        bao.bao(&["write", "-f", "transit/keys/onionskin"]);
        Some(bao)
    }

    /// Starts the program, which is sealed then.
    fn launch(&mut self) {
        let folder = self.folder.path().display();
        let config = format!(
            "storage \"raft\" {{\n path = \"{folder}/data\"\n node_id = \"one\"\n}}\n\
             listener \"tcp\" {{\n address = \"127.0.0.1:{port}\"\n tls_cert_file = \"{folder}/cert.pem\"\n tls_key_file = \"{folder}/key.pem\"\n}}\n\
             api_addr = \"https://127.0.0.1:{port}\"\n\
             cluster_addr = \"https://127.0.0.1:{cluster}\"\n",
            port = self.port,
            cluster = self.cluster
        );
        fs::write(self.folder.path().join("bao.hcl"), config).expect("written");
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = tied_command(program());
        command.arg("server");
        command.arg(format!("-config={folder}/bao.hcl"));
        command.stdin(Stdio::null());
        command
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        let mut child = command.spawn().expect("it starts");
        wait_until("OpenBao listens", Duration::from_secs(30), || {
            let ended = child.try_wait().expect("waited for");
            let log = || fs::read_to_string(self.folder.path().join("log"));
            assert!(ended.is_none(), "{}", log().unwrap_or_default());
            is_listening(self.port)
        });
        self.child = Some(child);
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn unseal(&self) {
        self.bao(&["operator", "unseal", &self.seal]);
        wait_until("it is active", Duration::from_secs(30), || {
            self.try_bao(&["token", "lookup"]).is_ok()
        });
    }

    fn try_bao(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(program())
            .args(arguments)
            .env("BAO_ADDR", format!("https://127.0.0.1:{}", self.port))
            .env("BAO_CACERT", self.authority())
            .env("BAO_TOKEN", &self.root)
            .env("HOME", self.folder.path())
            .output()
            .expect("it runs");
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).expect("text")),
            false => Err(said(&output)),
        }
    }

    /// The command-line program, as its root.
    fn bao(&self, arguments: &[&str]) -> String {
        self.try_bao(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Has a policy of this name.
    fn allow(&self, name: &str, policy: &str) {
        let file = self.folder.path().join(name);
        fs::write(&file, policy).expect("written");
        self.bao(&["policy", "write", name, file.to_str().expect("plain")]);
    }

    /// A token under one of the policies.
    fn token(&self, policy: &str) -> String {
        let made = self.bao(&[
            "token",
            "create",
            "-field=token",
            &format!("-policy={policy}"),
        ]);
        made.trim().to_owned()
    }

    /// `[provider.vault]` with more lines.
    fn section(&self, more: &str) -> String {
        format!(
            "[provider.vault]\naddress = \"https://127.0.0.1:{}\"\nca = \"{}\"\nkey = \"onionskin\"\n{more}",
            self.port,
            self.authority().display()
        )
    }

    /// How many tokens there are.
    fn tokens(&self) -> usize {
        let list = self.bao(&["list", "-format=json", "auth/token/accessors"]);
        let list: Vec<String> = serde_json::from_str(&list).expect("a list");
        list.len()
    }
}

impl Drop for Bao {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> PathBuf {
    checkout().join(".servers/openbao/bao")
}

/// An authority, a certificate of its for 127.0.0.1, and another authority.
pub fn certificates(folder: &std::path::Path) {
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("written");
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let made = params.self_signed(&key).expect("signed");
        (made.pem(), Issuer::new(params, key))
    };
    let (pem, issuer) = authority("the authority");
    write("ca.pem", pem);
    write("other.pem", authority("another authority").0);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let signed = params.signed_by(&key, &issuer).expect("signed");
    write("cert.pem", signed.pem());
    write("key.pem", key.serialize_pem());
}

/// `onionskin` with a token in a file.
fn with_token(home: &Home, token: &str, arguments: &[&str]) -> Output {
    home.write("token", token);
    fs::set_permissions(home.path("token"), Permissions::from_mode(0o600)).expect("its mode");
    let mut command = home.command(arguments);
    command.env("ONIONSKIN_VAULT_TOKEN_FILE", home.path("token"));
    command.output().expect("it runs")
}

#[test]
fn a_vault_wraps_the_root_key_and_says_what_is_wrong() {
    let Some(bao) = Bao::start() else { return };
    let home = Home::new();
    home.configure("", &bao.section(""));
    bao.allow("opens", OPENS);
    bao.allow("changes", CHANGES);
    let (opens, changes) = (bao.token("opens"), bao.token("changes"));
    let moved = with_token(&home, &changes, &["keys", "rewrap", "--to", "vault"]);
    assert!(moved.status.success(), "{}", said(&moved));
    assert!(
        said(&moved).contains("keys_provider = \"vault\""),
        "{}",
        said(&moved)
    );
    let wrapped = home.text("keys.json");
    assert!(
        wrapped.contains("\"vault\"") && !wrapped.contains("clear"),
        "{wrapped}"
    );

    let settings = "keys_provider = \"vault\"\nkeys_retry_seconds = 0.3\n";
    let refused = |sections: &str, token: &str, arguments: &[&str], what: &str| {
        home.configure(settings, sections);
        let output = with_token(&home, token, arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.trim().lines().count(), 1, "{text}");
        assert!(text.contains(what), "{what}: {text}");
        assert!(!text.contains(token), "{text}");
    };
    home.configure(settings, &bao.section(""));
    for arguments in [["keys", "list"], ["keys", "add"], ["keys", "list"]] {
        let done = with_token(&home, &changes, &arguments);
        assert!(done.status.success(), "{}", said(&done));
    }
    // What a proxy needs opens, and changes nothing.
    let list = with_token(&home, &opens, &["keys", "list"]);
    assert!(said(&list).contains("2  "), "{}", said(&list));
    let section = bao.section("");
    refused(
        &section,
        &opens,
        &["keys", "add"],
        "\"update\" on that path",
    );
    refused(
        &section,
        "wrong-token",
        &["keys", "list"],
        "(403: permission denied)",
    );
    let nothing = home.must_not(&["keys", "list"]);
    assert!(nothing.contains("ONIONSKIN_VAULT_TOKEN_FILE"), "{nothing}");
    let open = home.path("token");
    fs::set_permissions(&open, Permissions::from_mode(0o644)).expect("its mode");
    let mut command = home.command(&["keys", "list"]);
    let output = command.env("ONIONSKIN_VAULT_TOKEN_FILE", &open).output();
    assert!(said(&output.expect("it runs")).contains("chmod 600"));

    let list = ["keys", "list"];
    let other = section.replace("ca.pem", "other.pem");
    refused(
        &other,
        &opens,
        &list,
        "does not come from the authority in ca",
    );
    let named = section.replace("127.0.0.1", "localhost");
    refused(&named, &opens, &list, "does not name that host");
    let no_key = section.replace("\"onionskin\"", "\"unknown\"");
    refused(&no_key, &bao.root, &list, "has no key unknown in transit");
    let no_engine = format!("{section}mount = \"transport\"\n");
    refused(
        &no_engine,
        &bao.root,
        &list,
        "no transit engine at transport",
    );
    let plain = section.replace("https", "http") + "plain_http = true\n";
    refused(
        &plain,
        &opens,
        &list,
        "answers transit/decrypt/onionskin with 400",
    );
    // Another key than the one that has wrapped.
    bao.bao(&["write", "-f", "transit/keys/another"]);
    let another = section.replace("\"onionskin\"", "\"another\"");
    refused(&another, &bao.root, &list, "has not wrapped this root key");
    bao.bao(&["write", "-f", "transit/keys/rsa", "type=rsa-2048"]);
    let rsa = section.replace("\"onionskin\"", "\"rsa\"");
    refused(
        &rsa,
        &bao.root,
        &["keys", "rewrap", "--to", "vault"],
        "without associated data",
    );
    // Versions of the key.
    bao.bao(&["write", "-f", "transit/keys/onionskin/rotate"]);
    home.configure(settings, &section);
    let done = with_token(&home, &opens, &list);
    assert!(done.status.success(), "{}", said(&done));
    bao.bao(&[
        "write",
        "transit/keys/onionskin/config",
        "min_decryption_version=2",
    ]);
    refused(&section, &opens, &list, "min_decryption_version");
}

#[test]
fn roles_log_in_and_their_tokens_end() {
    let Some(bao) = Bao::start() else { return };
    bao.allow("changes", CHANGES);
    bao.bao(&["auth", "enable", "approle"]);
    bao.bao(&[
        "write",
        "auth/approle/role/onionskin",
        "token_policies=changes",
    ]);
    let role = bao.bao(&[
        "read",
        "-field=role_id",
        "auth/approle/role/onionskin/role-id",
    ]);
    let secret = bao.bao(&[
        "write",
        "-f",
        "-field=secret_id",
        "auth/approle/role/onionskin/secret-id",
    ]);
    let home = Home::new();
    let section = bao.section(&format!(
        "login = \"approle\"\nrole_id = \"{}\"\n",
        role.trim()
    ));
    home.configure("", &section);
    let tokens = bao.tokens();
    let with_secret = |arguments: &[&str], secret: &str| {
        let mut command = home.command(arguments);
        command.env("ONIONSKIN_VAULT_SECRET_ID", secret.trim());
        command.output().expect("it runs")
    };
    let moved = with_secret(&["keys", "rewrap", "--to", "vault"], &secret);
    assert!(moved.status.success(), "{}", said(&moved));
    home.configure("keys_provider = \"vault\"\n", &section);
    let list = with_secret(&["keys", "list"], &secret);
    assert!(list.status.success(), "{}", said(&list));
    assert_eq!(bao.tokens(), tokens, "each login's token was ended");
    let wrong = with_secret(&["keys", "list"], "0f7a2c1e-wrong");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        said(&wrong).contains("refuses the login"),
        "{}",
        said(&wrong)
    );
    assert!(!said(&wrong).contains("0f7a2c1e"), "{}", said(&wrong));

    // What a pod says to the method kubernetes: a role and a signed token. The method jwt takes the
    // same words, and verifies the token by itself.
    let jwt = service_account(&home);
    bao.bao(&["auth", "enable", "-path=kubernetes", "jwt"]);
    let public = format!(
        "jwt_validation_pubkeys=@{}",
        home.path("public.pem").display()
    );
    bao.bao(&["write", "auth/kubernetes/config", &public]);
    let role = [
        "user_claim=sub",
        "bound_subject=system:serviceaccount:app:onionskin",
        "role_type=jwt",
    ];
    let role = [
        &["write", "auth/kubernetes/role/onionskin"],
        &role[..],
        &["token_policies=changes"],
    ]
    .concat();
    bao.bao(&role);
    home.write("jwt", &jwt);
    let section = bao.section("login = \"kubernetes\"\nrole = \"onionskin\"\njwt_file = \"jwt\"\n");
    home.configure("keys_provider = \"vault\"\n", &section);
    assert!(home.must(&["keys", "list"]).contains("active"));
    let nobody = section.replace("role = \"onionskin\"", "role = \"nobody\"");
    home.configure("keys_provider = \"vault\"\n", &nobody);
    let refused = home.must_not(&["keys", "list"]);
    assert!(
        refused.contains("refuses the login (auth/kubernetes/login)"),
        "{refused}"
    );
}

/// A token as a cluster signs it for a pod; its public key is in `public.pem`.
fn service_account(home: &Home) -> String {
    let script = r#"
import base64, json, subprocess, time
def openssl(*words, **more):
    return subprocess.run(["openssl", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout
openssl("genpkey", "-algorithm", "RSA", "-out", "private.pem")
openssl("pkey", "-in", "private.pem", "-pubout", "-out", "public.pem")
text = lambda value: base64.urlsafe_b64encode(value).rstrip(b"=")
now = int(time.time())
claims = {"sub": "system:serviceaccount:app:onionskin", "iat": now, "nbf": now, "exp": now + 3600}
signed = b".".join(text(json.dumps(part).encode()) for part in [{"alg": "RS256", "typ": "JWT"}, claims])
signature = openssl("dgst", "-sha256", "-sign", "private.pem", input=signed)
print((signed + b"." + text(signature)).decode())
"#;
    let mut python = Command::new("python3");
    let made = python
        .args(["-c", script])
        .current_dir(home.0.path())
        .output();
    let made = made.expect("python runs");
    assert!(made.status.success(), "{}", said(&made));
    String::from_utf8(made.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

#[test]
fn a_vault_that_is_sealed_or_gone_is_waited_for() {
    let Some(mut bao) = Bao::start() else { return };
    let home = Home::new();
    let admin = free_port();
    home.configure("", &bao.section(""));
    let token = bao.root.clone();
    let moved = with_token(&home, &token, &["keys", "rewrap", "--to", "vault"]);
    assert!(moved.status.success(), "{}", said(&moved));
    let settings = format!(
        "keys_provider = \"vault\"\nkeys_retry_seconds = 20\nadmin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\"\n"
    );
    home.configure(&settings, &bao.section(""));
    bao.kill();
    let mut served = home.serve_with(&[("ONIONSKIN_VAULT_TOKEN_FILE", home.path("token"))]);
    wait_until("it is asked in vain", SOON, || {
        served.log().contains("Connection refused")
    });
    bao.launch();
    wait_until("it is sealed", SOON, || served.log().contains("is sealed"));
    assert!(!served.listens());
    bao.unseal();
    served.until_it_listens();
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));

    bao.bao(&["operator", "seal"]);
    let refused = home.run(&["reload"]);
    let text = said(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(
        text.contains("is sealed") && text.contains("nothing was changed"),
        "{text}"
    );
    let ready = http(admin, "/ready");
    assert!(
        ready.contains("keys: ok; the provider vault has not answered"),
        "{ready}"
    );
    bao.unseal();
    home.must(&["reload"]);
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));
    assert!(!served.log().contains(&token));
}
