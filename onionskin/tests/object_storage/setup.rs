//! How a store is found and who asks it: what is not right is one sentence with the way out.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::desk::Desk;
use super::relay::{Relay, Spoil};
use super::servers::{S3, Which, request};
use super::{ended_uploads, listed};

const TO: &str = "s3://backups/x.sealed";
const BACKUP: [&str; 6] = ["backup", "-q", "--source", "stdin", "--to", TO];

#[test]
fn wrong_settings_are_told_before_anything_is_sent() {
    let desk = Desk::at("http://127.0.0.1:1");
    let none = desk.clone().with("AWS_ACCESS_KEY_ID", "");
    none.fails_with(&BACKUP, b"", 2, "only one of the access key's two parts");
    let none = none.with("AWS_SECRET_ACCESS_KEY", "");
    none.fails_with(
        &BACKUP,
        b"",
        2,
        "there are no credentials for http://127.0.0.1:1: set AWS_ACCESS_KEY_ID",
    );
    for (name, value, text) in [
        (
            "AWS_PROFILE",
            "other",
            "names the profile \"other\", and no profile file has it",
        ),
        (
            "AWS_ENDPOINT_URL",
            "there",
            "AWS_ENDPOINT_URL is no address",
        ),
        (
            "AWS_ENDPOINT_URL",
            "https://u:SECRET1@h",
            "AWS_ENDPOINT_URL names a user",
        ),
        (
            "AWS_ENDPOINT_URL",
            "http://192.0.2.1:9000",
            "has no TLS: write https",
        ),
        ("AWS_REGION", "a/b", "is no region"),
        ("AWS_MAX_ATTEMPTS", "0", "is no number from 1 to 100"),
        ("ONIONSKIN_S3_ADDRESSING", "odd", "neither path nor virtual"),
    ] {
        desk.clone()
            .with(name, value)
            .fails_with(&BACKUP, b"", 2, text);
    }
    for to in ["s3://", "s3://a/b", "s3://bucket//x", "s3://bucket/../x"] {
        desk.fails(
            &["backup", "list", "--to", to],
            2,
            "is no address of a bucket",
        );
    }
    desk.fails(&["verify", "s3://bucket/folder/"], 1, "s3://bucket/folder/");
}

#[test]
fn who_may_not_is_told_so() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    let wrong = desk.clone().with("AWS_SECRET_ACCESS_KEY", "SECRET2");
    wrong.fails_with(
        &BACKUP,
        b"",
        1,
        "(SignatureDoesNotMatch): look at the credentials",
    );
    let unknown = desk.clone().with("AWS_ACCESS_KEY_ID", "NOBODY");
    unknown.fails_with(
        &BACKUP,
        b"",
        1,
        "(InvalidAccessKeyId): look at the credentials",
    );
    let no_bucket = [
        "backup",
        "-q",
        "--source",
        "stdin",
        "--to",
        "s3://elsewhere/x.sealed",
    ];
    desk.fails_with(&no_bucket, b"", 1, "has no bucket elsewhere: make it first");
    desk.fails(
        &["backup", "list", "--to", "s3://elsewhere"],
        1,
        "has no bucket elsewhere",
    );
    // Who may only write makes backups, and cannot look at them.
    let writer = desk
        .clone()
        .with("AWS_ACCESS_KEY_ID", "KEY2")
        .with("AWS_SECRET_ACCESS_KEY", "SECRET2");
    writer.must_with(&BACKUP, b"content");
    writer.fails_with(&BACKUP, b"other", 1, "exists, and is not replaced");
    writer.fails(&["verify", TO], 1, "refuses looking at an object");
    writer.fails(
        &["backup", "list", "--to", "s3://backups"],
        1,
        "refuses listing objects (AccessDenied)",
    );
    // Who may only read restores, and removes nothing.
    let reader = desk
        .clone()
        .with("AWS_ACCESS_KEY_ID", "KEY3")
        .with("AWS_SECRET_ACCESS_KEY", "SECRET3");
    assert_eq!(reader.bytes(&["open", "-q", TO]), b"content");
    let more = [
        "backup",
        "-q",
        "--source",
        "stdin",
        "--to",
        "s3://backups/y.sealed",
    ];
    reader.fails_with(&more, b"", 1, "refuses storing an object (AccessDenied)");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    desk.must_with(&more, b"newer");
    let prune = ["backup", "prune", "--keep", "1", "--to", "s3://backups"];
    reader.fails(&prune, 1, "refuses removing an object (AccessDenied)");
    assert_eq!(listed(&desk, "s3://backups"), 2);
    desk.must(&prune);
    assert_eq!(listed(&desk, "s3://backups"), 1);
}

#[test]
fn credentials_come_from_profiles_and_from_instances() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    fs::create_dir(desk.path(".aws")).expect("made");
    let endpoint = s3.endpoint();
    let config = format!("[profile there]\nendpoint_url = {endpoint}\nregion = eu-west-1\n");
    fs::write(desk.path(".aws/config"), config).expect("written");
    let keys = "[there]\naws_access_key_id = KEY1\naws_secret_access_key = SECRET1\n";
    fs::write(desk.path(".aws/credentials"), keys).expect("written");
    let names = [
        "AWS_ENDPOINT_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ];
    let bare = names
        .iter()
        .fold(desk.clone(), |desk, name| desk.with(name, ""));
    let there = bare.clone().with("AWS_PROFILE", "there");
    there.must_with(&BACKUP, b"content");
    assert_eq!(there.bytes(&["open", "-q", TO]), b"content");
    // The environment goes before the profile.
    there
        .with("AWS_ACCESS_KEY_ID", "NOBODY")
        .with("AWS_SECRET_ACCESS_KEY", "SECRET1")
        .fails(&["verify", TO], 1, "refuses");

    let Some(moto) = S3::start(Which::Moto) else {
        return;
    };
    // It is an instance's service as well, for a store that takes everybody.
    moto.make_bucket("backups");
    let instance = bare
        .with("AWS_ENDPOINT_URL", &moto.endpoint())
        .with("AWS_EC2_METADATA_DISABLED", "false")
        .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", &moto.endpoint());
    instance.must_with(&BACKUP, b"content");
    assert_eq!(instance.bytes(&["open", "-q", TO]), b"content");
    // And a container's.
    let role = "/latest/meta-data/iam/security-credentials/default-role";
    let container = instance
        .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
        .with(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            &format!("{}{role}", moto.endpoint()),
        );
    assert_eq!(container.bytes(&["open", "-q", TO]), b"content");
}

/// A key that has ended is asked for anew.
#[test]
fn an_access_key_that_has_ended_is_renewed() {
    let Some(moto) = S3::start(Which::Moto) else {
        return;
    };
    moto.make_bucket("backups");
    let relay = Relay::to(moto.port);
    let desk = Desk::at(&relay.endpoint())
        .with("AWS_ACCESS_KEY_ID", "")
        .with("AWS_SECRET_ACCESS_KEY", "")
        .with("AWS_EC2_METADATA_DISABLED", "false")
        .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", &relay.endpoint());
    relay.spoil(
        &["PUT /backups/x.sealed"],
        Spoil::Answer(400, "ExpiredToken"),
        0,
        1,
    );
    desk.must_with(&BACKUP, b"content");
    // Asked once for the uploads that others have left, once for the new one, and once anew.
    let asked = relay.count(&["GET /latest", "security-credentials/ "]);
    assert_eq!(asked, 3);
    // For good, it is no reason to ask for ever.
    relay.spoil(&["GET /backups"], Spoil::Answer(400, "ExpiredToken"), 0, 99);
    desk.fails(
        &["backup", "list", "--to", "s3://backups"],
        1,
        "refuses listing objects (ExpiredToken)",
    );
    assert_eq!(relay.count(&["GET /backups"]), 2);
    assert_eq!(ended_uploads_after(&relay, &desk), 0);
}

fn ended_uploads_after(relay: &Relay, desk: &Desk) -> usize {
    relay.mend();
    ended_uploads(desk, "s3://backups")
}

#[test]
fn the_certificate_is_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let arguments = ["-s", "-c", &path("cert.pem"), "-k", &path("key.pem")];
    let Some(s3) = S3::start_with(Which::Moto, &arguments) else {
        return;
    };
    let endpoint = format!("https://127.0.0.1:{}", s3.port);
    assert!(
        request(s3.port, "GET", "/", "", b"").is_empty(),
        "it speaks TLS"
    );
    let desk = Desk::at(&endpoint).with("AWS_MAX_ATTEMPTS", "2");
    let list = ["backup", "list", "--to", "s3://backups"];
    desk.fails(
        &list,
        1,
        "is not to be trusted (UnknownIssuer): set AWS_CA_BUNDLE",
    );
    let known = desk.clone().with("AWS_CA_BUNDLE", &path("ca.pem"));
    known.fails(&list, 1, "has no bucket backups");
    let by_name = known.clone().with(
        "AWS_ENDPOINT_URL",
        &endpoint.replace("127.0.0.1", "localhost"),
    );
    by_name.fails(&list, 1, "is not to be trusted (NotValidForName");
    let absent = known.with("AWS_CA_BUNDLE", &path("none.pem"));
    absent.fails(&list, 2, "AWS_CA_BUNDLE: ");
}

/// An authority, and a certificate of it for 127.0.0.1.
fn certificates(folder: &std::path::Path) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("signed");
    fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".into()]).expect("parameters");
    let own = params.signed_by(&key, &issuer).expect("signed");
    fs::write(folder.join("cert.pem"), own.pem()).expect("written");
    fs::write(folder.join("key.pem"), key.serialize_pem()).expect("written");
}
