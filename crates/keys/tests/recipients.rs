//! Recipients of other programs: age's test vectors, vectors of Go's age and gmsm, and OpenSSL.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onionskin_crypt::{FileKey, dangerous_bytes, recipient::stanza_len};
use onionskin_keys::{
    Identity, KeyError, Recipient, RecipientError, Suite,
    recipient_file::{
        identity_file, parse_identities, read_identities, read_recipients, suite_of,
        write_private_file,
    },
    recipient_text::{identity_text, parse_identity, parse_recipient, recipient_text},
};

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(name)
}

type Record = BTreeMap<String, Vec<String>>;

/// Blocks of `name = value` lines.
fn records(name: &str) -> Vec<Record> {
    let text = fs::read_to_string(vectors(name)).unwrap();
    let block = |block: &str| {
        let mut record = Record::new();
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        for (name, value) in lines.filter_map(|line| line.split_once(" = ")) {
            record.entry(name.into()).or_default().push(value.into());
        }
        record
    };
    let records = text.split("\n\n").map(block);
    records.filter(|record| !record.is_empty()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs
        .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_key(bytes: &[u8]) -> FileKey {
    dangerous_bytes::file_key_from_bytes(bytes.try_into().unwrap())
}

#[test]
fn the_test_vectors_of_age() {
    let mut count = [0; 2];
    for record in records("age_testkit.txt") {
        let name = &record["name"][0];
        let identity = parse_identity(&record["identity"][0]).unwrap();
        let stanzas = record["stanza"].iter().map(|stanza| hex(stanza));
        let opened = stanzas.filter_map(|stanza| identity.unwrap(&stanza)).next();
        let succeeds = record["expect"][0] == "success";
        assert_eq!(opened.is_some(), succeeds, "{name}");
        if let Some(opened) = opened {
            let expected = file_key(&hex(&record["file key"][0]));
            assert!(opened.is_same(&expected), "{name}");
        }
        count[usize::from(succeeds)] += 1;
    }
    assert_eq!(count, [7, 3]);
}

#[test]
fn what_go_has_wrapped_opens() {
    let records = records("recipients.txt");
    assert_eq!(records.len(), 8);
    for record in records {
        let identity = parse_identity(&record["identity"][0]).unwrap();
        let recipient = &record["recipient"][0];
        assert_eq!(identity.suite().name(), record["suite"][0]);
        assert_eq!(recipient_text(&identity.recipient()), *recipient);
        assert_eq!(parse_recipient(recipient).unwrap(), identity.recipient());
        let opened = identity.unwrap(&hex(&record["stanza"][0])).unwrap();
        assert!(opened.is_same(&file_key(&hex(&record["file key"][0]))));
    }
}

#[test]
fn what_go_has_opened_still_opens() {
    // `foreign/main.go check` opens this file. It is written anew on demand.
    const NAME: &str = "recipients_ours.txt";
    if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
        let mut text = String::from(
            "# Wrapped by this crate; foreign/main.go, with filippo.io/age and github.com/emmansun/gmsm, opens it.\n",
        );
        for (n, suite) in (1..).zip([Suite::Aes, Suite::Aes, Suite::Sm, Suite::Sm]) {
            let identity = Identity::generate(suite);
            let key = [n; 16];
            let stanza = identity.recipient().wrap(&file_key(&key)).unwrap();
            text += &format!(
                "\nsuite = {suite}\nsecret = {}\nidentity = {}\nrecipient = {}\nfile key = {}\nstanza = {}\n",
                to_hex(&dangerous_bytes::bytes_of_identity(&identity)[..]),
                *identity_text(&identity),
                recipient_text(&identity.recipient()),
                to_hex(&key),
                to_hex(&stanza),
            );
        }
        fs::write(vectors(NAME), text).unwrap();
    }
    let records = records(NAME);
    assert_eq!(records.len(), 4);
    for record in records {
        let identity = parse_identity(&record["identity"][0]).unwrap();
        let opened = identity.unwrap(&hex(&record["stanza"][0])).unwrap();
        assert!(opened.is_same(&file_key(&hex(&record["file key"][0]))));
        assert_eq!(
            recipient_text(&identity.recipient()),
            record["recipient"][0]
        );
    }
}

/// Runs openssl with input on standard input.
fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {arguments:?}");
    output.stdout
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 128);
    [&[tag, content.len() as u8], content].concat()
}

/// Parts of a SEQUENCE whose parts are short.
fn parts(sequence: &[u8]) -> Vec<Vec<u8>> {
    let (head, mut rest) = match sequence[1] {
        0x81 => sequence.split_at(3),
        _ => sequence.split_at(2),
    };
    assert_eq!(head[0], 0x30);
    let mut parts = Vec::new();
    while let [_, len, tail @ ..] = rest {
        let (content, next) = tail.split_at(usize::from(*len));
        parts.push(content.to_vec());
        rest = next;
    }
    parts
}

/// A coordinate as an INTEGER's content, and back.
fn integer(coordinate: &[u8]) -> Vec<u8> {
    let zeros = coordinate.iter().take_while(|byte| **byte == 0).count();
    let mut bytes = coordinate[zeros..].to_vec();
    if bytes.first().is_none_or(|first| *first >= 0x80) {
        bytes.insert(0, 0);
    }
    bytes
}

fn coordinate(integer: &[u8]) -> [u8; 32] {
    let bytes = integer.strip_prefix(&[0]).unwrap_or(integer);
    let mut coordinate = [0; 32];
    coordinate[32 - bytes.len()..].copy_from_slice(bytes);
    coordinate
}

#[test]
fn openssl_opens_sm2_stanzas_and_wraps_them() {
    // 1.2.156.10197.1.301, the curve
    const CURVE: [u8; 10] = [6, 8, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 1, 0x82, 0x2d];
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (private, public) = (path("key.pem"), path("public.pem"));
    for n in 0..8 {
        let identity = Identity::generate(Suite::Sm);
        let secret = dangerous_bytes::bytes_of_identity(&identity);
        let key = [der(2, &[1]), der(4, &secret[..]), der(0xa0, &CURVE)].concat();
        let key = der(0x30, &key);
        let options = ["ec", "-inform", "DER", "-out", &private];
        openssl(&options, &key);
        openssl(&["pkey", "-in", &private, "-pubout", "-out", &public], b"");

        let bytes = [n; 16];
        let stanza = identity.recipient().wrap(&file_key(&bytes)).unwrap();
        let content = [
            der(2, &integer(&stanza[1..33])),
            der(2, &integer(&stanza[33..65])),
            der(4, &stanza[65..97]),
            der(4, &stanza[97..]),
        ]
        .concat();
        // Longer than 127 bytes, whatever the coordinates.
        let sealed = [&[0x30, 0x81, content.len() as u8][..], &content].concat();
        assert_eq!(
            openssl(&["pkeyutl", "-decrypt", "-inkey", &private], &sealed),
            bytes
        );

        let options = ["pkeyutl", "-encrypt", "-pubin", "-inkey", &public];
        let theirs = parts(&openssl(&options, &bytes));
        let [x, y, hash, body] = &theirs[..] else {
            panic!("four parts")
        };
        let stanza = [&[4][..], &coordinate(x), &coordinate(y), hash, body].concat();
        assert_eq!(stanza.len(), stanza_len(Suite::Sm));
        assert!(identity.unwrap(&stanza).unwrap().is_same(&file_key(&bytes)));
    }
}

#[test]
fn a_file_of_age_keygen_is_read() {
    let text = b"# created: 2026-11-28T19:46:22Z\n# public key: age1ignored\n\n  AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0\r\n";
    let identities = parse_identities("key.txt", text).unwrap();
    assert_eq!(identities.len(), 1);
    assert_eq!(identities[0].suite(), Suite::Aes);

    let own = Identity::generate(Suite::Sm);
    let written = identity_file(&own, "2026-11-28T19:46:22Z");
    let both = [text, written.as_bytes()].concat();
    let identities = parse_identities("key.txt", &both).unwrap();
    assert_eq!(identities.len(), 2);
    assert_eq!(identities[1].recipient(), own.recipient());
    assert!(written.contains(&recipient_text(&own.recipient())));
}

#[test]
fn faults_of_a_file_are_named_without_its_content() {
    let fault = |text: &[u8]| {
        let error = parse_identities("key.txt", text).unwrap_err().to_string();
        assert!(error.starts_with("key.txt"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        error
    };
    assert!(fault(b"# one\n\nhunter2\n").starts_with("key.txt, line 3: an identity is expected"));
    assert!(fault(b"AGE-SECRET-KEY-1HUNTER2").contains("line 1: it is mistyped or cut"));
    assert!(fault(b"# nothing\n").contains("holds no key"));
    assert!(fault(b"age-encryption.org/v1\n-> scrypt a 18\n").contains("age -d key.txt"));
    assert!(fault(b"\xff\xfe").contains("not a file of identities"));
}

#[test]
fn whose_files_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.txt");
    let identity = Identity::generate(Suite::Aes);
    write_private_file(&path, &identity_file(&identity, "now")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(read_identities(&path).unwrap().len(), 1);
    let again = write_private_file(&path, "other");
    assert!(matches!(again, Err(RecipientError::Exists(_))));
    assert_eq!(
        read_identities(&path).unwrap().len(),
        1,
        "it is not overwritten"
    );

    let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set(0o640);
    let error = read_identities(&path).unwrap_err();
    assert!(matches!(
        error,
        RecipientError::File(KeyError::TooOpen { .. })
    ));

    // Recipients are no secret; who may add one is what counts.
    fs::write(&path, recipient_text(&identity.recipient())).unwrap();
    set(0o644);
    assert_eq!(read_recipients(&path).unwrap(), [identity.recipient()]);
    for open in [0o664, 0o646] {
        set(open);
        let error = read_recipients(&path).unwrap_err();
        assert!(matches!(
            error,
            RecipientError::File(KeyError::Writable { .. })
        ));
    }
}

#[test]
fn recipients_of_two_suites_are_refused() {
    let [aes, sm]: [Recipient; 2] =
        [Suite::Aes, Suite::Sm].map(|suite| Identity::generate(suite).recipient());
    let suite = |of: &[&Recipient], wanted| {
        let of: Vec<Recipient> = of.iter().map(|one| (*one).clone()).collect();
        suite_of(&of, wanted)
    };
    assert_eq!(suite(&[&aes, &aes], None).unwrap(), Suite::Aes);
    assert_eq!(suite(&[&sm], Some(Suite::Sm)).unwrap(), Suite::Sm);
    assert!(matches!(suite(&[], None), Err(RecipientError::None)));
    assert!(matches!(
        suite(&[&aes, &sm], None),
        Err(RecipientError::Mixed)
    ));
    let other = suite(&[&aes], Some(Suite::Sm));
    assert!(matches!(other, Err(RecipientError::OtherSuite { .. })));
    let many = vec![&aes; 257];
    assert!(matches!(suite(&many, None), Err(RecipientError::TooMany)));
}
