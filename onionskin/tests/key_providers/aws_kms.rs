//! moto's KMS behind TLS. It verifies signatures (by botocore's code) and what users may do.

use super::outages::http;
use super::vault::certificates;
use super::*;

const LIST: [&str; 2] = ["keys", "list"];

/// Makes a key, another one, and two users: who may open, and who may do both. From then on moto
/// asks who does something.
const SETUP: &str = r#"
names = {}
names["key"] = kms.create_key()["KeyMetadata"]["Arn"]
names["other"] = kms.create_key()["KeyMetadata"]["KeyId"]
kms.create_alias(AliasName="alias/onionskin", TargetKeyId=names["key"])
for name, actions in {"opens": ["kms:Decrypt"], "changes": ["kms:Decrypt", "kms:Encrypt"]}.items():
    iam.create_user(UserName=name)
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=json.dumps(policy))
    made = iam.create_access_key(UserName=name)["AccessKey"]
    names[name] = [made["AccessKeyId"], made["SecretAccessKey"]]
context = ssl.create_default_context(cafile="ca.pem")
request = urllib.request.Request(endpoint + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})
urllib.request.urlopen(request, context=context)
print(json.dumps(names))
"#;

/// A server that runs until it is dropped.
struct Kms {
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
    /// What was set up.
    names: serde_json::Value,
}

impl Kms {
    /// `None` where there is none, which is told.
    fn start() -> Option<Kms> {
        let program = checkout().join(".servers/moto/bin/moto_server");
        if !program.exists() {
            let why = fs::read_to_string(checkout().join(".servers/moto.skipped"));
            let why = why.unwrap_or("scripts/install-deps.sh tests has not been run".into());
            announce(&format!("SKIPPED: moto: {}", why.trim()));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        certificates(folder.path());
        let port = free_port();
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = tied_command(program);
        alone(&mut command);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.args(["-c", "cert.pem", "-k", "key.pem"]);
        command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        let child = command.spawn().expect("it starts");
        let mut kms = Kms {
            folder,
            port,
            child,
            names: serde_json::Value::Null,
        };
        wait_until("KMS listens", Duration::from_secs(60), || {
            let ended = kms.child.try_wait().expect("waited for");
            let log = || fs::read_to_string(kms.folder.path().join("log"));
            assert!(ended.is_none(), "{}", log().unwrap_or_default());
            is_listening(port)
        });
        let names = kms.by_boto(SETUP, ["all", "all"]);
        kms.names = serde_json::from_str(&names).expect("JSON");
        Some(kms)
    }

    fn endpoint(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// What a script prints that has clients of boto3, with this access key.
    fn by_boto(&self, script: &str, [id, secret]: [&str; 2]) -> String {
        let head = format!(
            "import base64, boto3, json, ssl, urllib.request\n\
             endpoint = \"{}\"\n\
             service = lambda name: boto3.client(name, endpoint_url=endpoint, region_name=\"eu-west-1\", verify=\"ca.pem\")\n\
             kms, iam = service(\"kms\"), service(\"iam\")\n",
            self.endpoint()
        );
        let mut python = Command::new(checkout().join(".servers/moto/bin/python3"));
        alone(&mut python);
        let output = python
            .args(["-c", &format!("{head}{script}")])
            .current_dir(self.folder.path())
            .env("AWS_ACCESS_KEY_ID", id)
            .env("AWS_SECRET_ACCESS_KEY", secret)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .to_owned()
    }

    /// The access key of a user.
    fn access_key(&self, user: &str) -> [&str; 2] {
        [0, 1].map(|part| self.names[user][part].as_str().expect("a text"))
    }

    fn section(&self, key: &str) -> String {
        format!(
            "[provider.aws-kms]\nkey = \"{key}\"\nregion = \"eu-west-1\"\nendpoint = \"{}\"\nca = \"{}\"\ntimeout_seconds = 20\n",
            self.endpoint(),
            self.folder.path().join("ca.pem").display()
        )
    }

    fn command(&self, home: &Home, arguments: &[&str], [id, secret]: [&str; 2]) -> Command {
        let mut command = home.command(arguments);
        alone(&mut command);
        command.env("HOME", home.0.path());
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_ACCESS_KEY_ID", id);
        command.env("AWS_SECRET_ACCESS_KEY", secret);
        command
    }

    /// `onionskin` as this user.
    fn run_as(&self, home: &Home, user: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(home, arguments, self.access_key(user));
        command.output().expect("it runs")
    }

    fn must(&self, home: &Home, user: &str, arguments: &[&str]) -> String {
        let output = self.run_as(home, user, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    }
}

impl Drop for Kms {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes out of a command's environment what this machine says of AWS.
fn alone(command: &mut Command) {
    for (name, _) in std::env::vars() {
        let upper = name.to_uppercase();
        if upper.starts_with("AWS_") || upper.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
}

#[test]
fn kms_wraps_the_root_key_and_says_what_is_wrong() {
    let Some(kms) = Kms::start() else { return };
    let home = Home::new();
    let section = kms.section("alias/onionskin");
    home.configure("", &section);
    let moved = kms.must(&home, "changes", &["keys", "rewrap", "--to", "aws-kms"]);
    assert!(moved.contains("keys_provider = \"aws-kms\""), "{moved}");
    let wrapped = home.text("keys.json");
    assert!(
        wrapped.contains("\"aws-kms\"") && !wrapped.contains("clear"),
        "{wrapped}"
    );
    let settings = "keys_provider = \"aws-kms\"\nkeys_retry_seconds = 0.3\n";
    home.configure(settings, &section);
    let added = kms.must(&home, "changes", &["keys", "add"]);
    assert!(added.contains("Key 2 was added"), "{added}");
    // What a proxy needs opens, and changes nothing.
    assert!(kms.must(&home, "opens", &LIST).contains("2  "));
    let refused = |sections: &str, access_key: [&str; 2], arguments: &[&str], what: &str| {
        home.configure(settings, sections);
        let mut command = kms.command(&home, arguments, access_key);
        let output = command.output().expect("it runs");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{what}: {text}");
        assert_eq!(text.trim().lines().count(), 1, "{text}");
        assert!(text.contains(what), "{what}: {text}");
        let secret = access_key[1];
        assert!(secret.is_empty() || !text.contains(secret), "{text}");
    };
    let opens = kms.access_key("opens");
    refused(
        &section,
        opens,
        &["keys", "add"],
        "not authorized to perform: kms:Encrypt",
    );
    let wrong = [opens[0], "a-secret-that-is-wrong"];
    refused(&section, wrong, &LIST, "SignatureDoesNotMatch");
    let unknown = ["AKIAUNKNOWN", "a-secret-of-nobody"];
    refused(&section, unknown, &LIST, "InvalidClientTokenId");
    refused(&section, ["", ""], &LIST, "AWS_ACCESS_KEY_ID");
    let no_key = kms.section("alias/none");
    refused(&no_key, opens, &LIST, "has no key alias/none in eu-west-1");
    let other = kms.section(kms.names["other"].as_str().expect("a text"));
    refused(&other, opens, &LIST, "has not wrapped this root key");
    let elsewhere = section.replace("ca.pem", "other.pem");
    refused(
        &elsewhere,
        opens,
        &LIST,
        "does not come from the authority in ca",
    );
    let named = section.replace("127.0.0.1", "localhost");
    refused(&named, opens, &LIST, "does not name that host");
    // By its ARN, which says the region, and by its id.
    let arn = kms.names["key"].as_str().expect("a text");
    let id = arn.rsplit('/').next().expect("an id");
    let by_arn = kms.section(arn).replace("region = \"eu-west-1\"\n", "");
    for sound in [by_arn, kms.section(id)] {
        home.configure(settings, &sound);
        kms.must(&home, "opens", &LIST);
    }
    // And with the access key of a profile.
    home.configure(settings, &section);
    fs::create_dir(home.path(".aws")).expect("made");
    let profile = format!(
        "[there]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
        opens[0], opens[1]
    );
    fs::write(home.path(".aws/credentials"), profile).expect("written");
    let mut command = kms.command(&home, &LIST, ["", ""]);
    let output = command
        .env("AWS_PROFILE", "there")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    // It leads back.
    kms.must(&home, "opens", &["keys", "rewrap", "--to", "file"]);
    assert!(home.text("keys.json").contains("\"clear\""));
}

/// What is wrapped for one thing opens for nothing else, whoever asks.
#[test]
fn what_kms_has_wrapped_is_bound_to_what_it_is_for() {
    let Some(kms) = Kms::start() else { return };
    let home = Home::new();
    let section = kms.section("alias/onionskin");
    fs::remove_file(home.path("keys.json")).expect("removed");
    home.configure("keys_provider = \"aws-kms\"\n", &section);
    let made = kms.must(&home, "changes", &["init", "--keys-only"]);
    assert!(
        made.contains("wrapped by the provider \"aws-kms\""),
        "{made}"
    );
    assert!(kms.must(&home, "changes", &["check"]).contains("sound"));
    let sound = home.text("keys.json");
    let file: serde_json::Value = serde_json::from_str(&sound).expect("JSON");
    let wrapped = file["root"]["provider"]["wrapped"].as_str().expect("text");
    // As the AWS tools do it, with the same context.
    let open = format!(
        "blob = base64.b64decode(\"{wrapped}\")\n\
         opened = kms.decrypt(CiphertextBlob=blob, EncryptionContext={{\"onionskin\": \"onionskin/1 root key\"}})\n\
         print(len(opened[\"Plaintext\"]))"
    );
    assert_eq!(kms.by_boto(&open, kms.access_key("opens")), "32");
    // The same bytes for something else, and ones of another length.
    let put = |context: &str, length: usize| {
        let made = format!(
            "made = kms.encrypt(KeyId=\"alias/onionskin\", Plaintext=b\"x\" * {length}, EncryptionContext={{\"onionskin\": \"{context}\"}})\n\
             print(base64.b64encode(made[\"CiphertextBlob\"]).decode())"
        );
        let other = kms.by_boto(&made, kms.access_key("changes"));
        fs::write(home.path("keys.json"), sound.replace(wrapped, &other)).expect("written");
        let output = kms.run_as(&home, "opens", &LIST);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let refused = put("onionskin/1 data key 1", 32);
    assert!(
        refused.contains("has not wrapped this root key"),
        "{refused}"
    );
    let refused = put("onionskin/1 root key", 31);
    assert!(refused.contains("no key of 32 bytes"), "{refused}");
    let refused = put("onionskin/1 root key", 32);
    assert!(refused.contains("authentication fails"), "{refused}");
}

#[test]
fn kms_that_is_away_is_waited_for() {
    let Some(kms) = Kms::start() else { return };
    let home = Home::new();
    let section = kms.section("alias/onionskin");
    home.configure("", &section);
    kms.must(&home, "changes", &["keys", "rewrap", "--to", "aws-kms"]);
    let admin = free_port();
    let settings = format!(
        "keys_provider = \"aws-kms\"\nkeys_retry_seconds = 60\nadmin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\"\n"
    );
    let section = section.replace("timeout_seconds = 20", "timeout_seconds = 2");
    home.configure(&settings, &section);
    // The server's user has the credentials in a profile.
    let [id, secret] = kms.access_key("opens");
    let profile =
        format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
    home.write("credentials", &profile);
    signal("STOP", kms.child.id());
    let mut served = home.serve_with(&[
        ("AWS_SHARED_CREDENTIALS_FILE", home.path("credentials")),
        ("AWS_CONFIG_FILE", home.path("none")),
    ]);
    wait_until("it is asked in vain", SOON, || {
        served
            .log()
            .contains("has not answered within 2 seconds; asking again")
    });
    assert!(!served.listens());
    signal("CONT", kms.child.id());
    served.until_it_listens();
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));

    signal("STOP", kms.child.id());
    let refused = home.must_not(&["reload"]);
    assert!(
        refused.contains("has not answered within") && refused.contains("nothing was changed"),
        "{refused}"
    );
    let ready = http(admin, "/ready");
    assert!(
        ready.contains("keys: ok; the provider aws-kms has not answered"),
        "{ready}"
    );
    signal("CONT", kms.child.id());
    home.must(&["reload"]);
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));
    assert!(!served.log().contains(secret));
}
