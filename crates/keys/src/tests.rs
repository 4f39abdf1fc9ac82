//! Key files as a whole: made, opened, refused.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use onionskin_crypt::dangerous_bytes::data_key_from_bytes;
use rand::SeedableRng;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::PassphraseCost;

/// Argon2id at its cheapest: these tests are about files, not about cost.
const CHEAP: PassphraseCost = PassphraseCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};
const ID: ColumnId = ColumnId {
    table: [1; 8],
    column: [2; 4],
};
const CLEAR: &str = include_str!("../tests/vectors/clear.json");
const PASSPHRASE: &str = include_str!("../tests/vectors/passphrase.json");

struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        Dir(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("keys.json")
    }

    fn create(&self, passphrase: Option<&str>) {
        let access = RootAccess::Passphrase(passphrase);
        key_file::create(&self.path(), access, CHEAP, &mut rand::rng()).unwrap();
    }

    fn change(
        &self,
        passphrase: Option<&str>,
        what: KeyChange<'_>,
    ) -> Result<Vec<KeyEntry>, KeyError> {
        let access = (RootAccess::Passphrase(passphrase), CHEAP);
        key_file::change(&self.path(), access, what, &mut rand::rng())
    }

    fn load(&self, passphrase: Option<&str>) -> Result<KeySet, KeyError> {
        KeySet::load("file:keys.json", self.0.path(), passphrase)
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap();
        change(&mut value);
        self.write(&value.to_string());
    }
}

fn token(keys: &KeySet) -> [u8; 16] {
    *keys
        .column_cipher(Suite::Aes.into(), keys.active_key(), ID, None)
        .unwrap()
        .equality_token(b"alice")
}

#[test]
fn keys_come_back_with_and_without_a_passphrase() {
    for passphrase in [None, Some("correct horse")] {
        let dir = Dir::new();
        dir.create(passphrase);
        let (first, second) = (dir.load(passphrase).unwrap(), dir.load(passphrase).unwrap());
        assert_eq!(first.active_key(), 1);
        assert_eq!(first.key_ids().collect::<Vec<_>>(), [1]);
        assert_eq!(token(&first), token(&second));
        let tag = first.metadata_key().tag(b"comment");
        assert!(second.metadata_key().verify(b"comment", &tag));

        let other = Dir::new();
        other.create(passphrase);
        let other = other.load(passphrase).unwrap();
        assert_ne!(token(&first), token(&other));
        assert!(!other.metadata_key().verify(b"comment", &tag));
    }
}

/// Only root can give a file away; elsewhere nobody else's file can be made to read.
#[test]
fn a_key_file_of_another_user_is_refused() {
    let dir = Dir::new();
    dir.create(None);
    let path = dir.path();
    assert!(read_private_file(&path, 1 << 20).is_ok());
    if std::os::unix::fs::chown(&path, Some(12345), None).is_err() {
        return;
    }
    let refused = dir.load(None).expect_err("refused");
    assert!(
        matches!(refused, KeyError::OtherOwner { owner: 12345, .. }),
        "{refused}"
    );
    let text = refused.to_string();
    assert!(text.contains("12345") && text.contains("chown"), "{text}");
    // Root changes it for its owner.
    assert!(dir.change(None, KeyChange::Add).is_ok());
    assert!(dir.load(None).is_err());
    std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    assert!(dir.load(None).is_ok());
}

#[test]
fn what_a_broken_change_left_is_found_and_says_whether_it_is_open() {
    let dir = Dir::new();
    dir.create(Some("p"));
    let base = dir.0.path();
    assert_eq!(KeySet::leftover("file:keys.json", base), None);
    let new = base.join("keys.json.new");
    for (text, is_open) in [
        ("", false),
        (PASSPHRASE, false),
        (CLEAR, true),
        (&CLEAR[..60], true),
    ] {
        fs::write(&new, text).unwrap();
        let found = KeySet::leftover("file:keys.json", base).unwrap();
        assert_eq!(
            (found.path, found.is_open),
            (fs::canonicalize(&new).unwrap(), is_open)
        );
        let refused = dir
            .change(Some("p"), KeyChange::Add)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("keys.json.new") && refused.contains("shred"),
            "{refused}"
        );
    }
    // What is there is not written over, and the keys are read as before.
    assert!(new.exists() && dir.load(Some("p")).is_ok());
}

/// Where a passphrase wraps the old file and the new one, no file in between is without.
#[test]
fn what_is_written_under_a_passphrase_is_never_open() {
    let dir = Dir::new();
    dir.create(Some("p"));
    for (passphrase, change) in [
        ("p", KeyChange::Add),
        ("p", KeyChange::Activate(2)),
        ("p", KeyChange::Passphrase(Some("q"))),
        ("q", KeyChange::Add),
    ] {
        dir.change(Some(passphrase), change).unwrap();
        let text = fs::read_to_string(dir.path()).unwrap();
        assert!(text.contains("argon2id") && !text.contains("clear"));
    }
}

#[test]
fn data_keys_are_locked_in_memory() {
    let dir = Dir::new();
    dir.create(None);
    let keys = dir.load(None).unwrap();
    let locked = || -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmLck:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse().ok()).unwrap()
    };
    if keys.lock_in_memory().is_ok() {
        assert!(locked() >= 4, "a page");
    }
}

#[test]
fn create_file_uses_the_documented_cost() {
    let dir = Dir::new();
    KeySet::create_file(&dir.path(), Some("p"), &mut rand::rng()).unwrap();
    dir.edit(|file| {
        let root = &file["root"]["passphrase"];
        assert_eq!(root["memory_kib"], 65536);
        assert_eq!(root["passes"], 3);
        assert_eq!(root["lanes"], 1);
    });
    assert!(dir.load(Some("p")).is_ok());
}

#[test]
fn passphrases_are_checked() {
    let dir = Dir::new();
    dir.create(Some("correct horse"));
    for wrong in ["correct horse ", "Correct horse", "x"] {
        assert!(matches!(
            dir.load(Some(wrong)),
            Err(KeyError::WrongPassphrase)
        ));
    }
    for missing in [None, Some("")] {
        assert!(matches!(dir.load(missing), Err(KeyError::PassphraseNeeded)));
    }
    let clear = Dir::new();
    clear.create(None);
    assert!(matches!(
        clear.load(Some("correct horse")),
        Err(KeyError::NotUnderPassphrase)
    ));
    assert!(clear.load(Some("")).is_ok());
    assert!(matches!(
        KeySet::create_file(&Dir::new().path(), Some(""), &mut rand::rng()),
        Err(KeyError::EmptyPassphrase)
    ));
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let dir = Dir::new();
    dir.write("precious");
    let refused = KeySet::create_file(&dir.path(), None, &mut rand::rng());
    assert!(matches!(refused, Err(KeyError::Exists { .. })));
    assert_eq!(fs::read(dir.path()).unwrap(), b"precious");
    // Nor through a dangling symbolic link.
    let link = dir.0.path().join("link.json");
    std::os::unix::fs::symlink("nowhere.json", &link).unwrap();
    let refused = KeySet::create_file(&link, None, &mut rand::rng());
    assert!(matches!(refused, Err(KeyError::Exists { .. })));
}

#[test]
fn only_the_owner_may_have_access() {
    let dir = Dir::new();
    dir.create(None);
    let mode = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        fs::metadata(dir.path()).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    for open in [0o640, 0o604, 0o644, 0o620, 0o602, 0o601, 0o666] {
        mode(open);
        let error = dir.load(None).unwrap_err();
        assert!(matches!(error, KeyError::TooOpen { mode, .. } if mode == open));
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    for closed in [0o600, 0o400] {
        mode(closed);
        assert!(dir.load(None).is_ok());
    }
}

#[test]
fn locators() {
    let dir = Dir::new();
    dir.create(None);
    let absolute = format!("file:{}", dir.path().display());
    assert!(KeySet::load(&absolute, Path::new("/nowhere"), None).is_ok());
    for locator in ["keys.json", "vault:s3cret@host", "file:", ""] {
        let error = KeySet::load(locator, dir.0.path(), None).unwrap_err();
        assert!(matches!(error, KeyError::UnknownProvider));
        assert!(!error.to_string().contains("s3cret"));
    }
    assert!(matches!(
        KeySet::load("file:missing.json", dir.0.path(), None),
        Err(KeyError::Io { .. })
    ));
    assert!(matches!(
        KeySet::load("file:.", dir.0.path(), None),
        Err(KeyError::Io { .. })
    ));
}

/// A change to a parsed key file.
type Edit = fn(&mut Value);

#[test]
fn every_part_of_the_file_is_authenticated() {
    let edits: [(&str, Edit); 9] = [
        ("active set back", |f| f["active"] = json!(1)),
        ("key removed", |f| {
            f["data_keys"].as_array_mut().unwrap().remove(0);
        }),
        ("key repeated", |f| {
            let first = f["data_keys"][0].clone();
            f["data_keys"].as_array_mut().unwrap().push(first);
        }),
        ("keys exchanged", |f| {
            f["data_keys"].as_array_mut().unwrap().reverse();
        }),
        ("key renumbered", |f| f["data_keys"][0]["id"] = json!(2)),
        ("date changed", |f| f["data_keys"][0]["created"] = json!(0)),
        ("wrapped keys exchanged", |f| {
            let first = f["data_keys"][0]["wrapped"].take();
            f["data_keys"][0]["wrapped"] = f["data_keys"][1]["wrapped"].take();
            f["data_keys"][1]["wrapped"] = first;
        }),
        ("metadata key replaced", |f| {
            f["metadata_key"]["wrapped"] = f["data_keys"][0]["wrapped"].clone();
        }),
        ("mac of nothing", |f| f["mac"] = json!("")),
    ];
    for (name, edit) in edits {
        let dir = Dir::new();
        dir.write(CLEAR);
        dir.edit(|_| ());
        assert!(dir.load(None).is_ok(), "layout alone must not matter");
        dir.edit(edit);
        let error = dir.load(None).unwrap_err();
        assert!(matches!(error, KeyError::Tampered), "{name}: {error}");
    }
}

#[test]
fn a_changed_sealed_root_does_not_open() {
    let edits: [Edit; 4] = [
        |root| root["memory_kib"] = json!(512),
        |root| root["passes"] = json!(1),
        |root| root["salt"] = json!("AQECAwQFBgcICQoLDA0ODw=="),
        |root| root["sealed"] = json!("AAAA"),
    ];
    for edit in edits {
        let dir = Dir::new();
        dir.write(PASSPHRASE);
        dir.edit(|file| edit(&mut file["root"]["passphrase"]));
        assert!(matches!(
            dir.load(Some("correct horse ✓ battery")),
            Err(KeyError::WrongPassphrase)
        ));
    }
}

#[test]
fn malformed_files_are_refused_without_quoting_them() {
    let edits: [Edit; 12] = [
        |f| f["version"] = json!(2),
        |f| f["extra"] = json!(true),
        |f| f["data_keys"][0]["note"] = json!("SECRET"),
        |f| f["root"] = json!({ "SECRET": "SECRET" }),
        |f| f["root"] = json!({ "clear": "SECRET!" }),
        |f| f["root"] = json!({ "clear": "AAAA" }),
        |f| f["active"] = json!(65536),
        |f| f["active"] = json!("SECRET"),
        |f| f["mac"] = json!("SECRET!"),
        |f| f["root"] = json!({ "passphrase": { "kdf": "SECRET" } }),
        |f| f["data_keys"][1]["wrapped"] = json!("SECRET!"),
        |f| *f = json!(["SECRET"]),
    ];
    for (n, edit) in edits.into_iter().enumerate() {
        let dir = Dir::new();
        dir.write(CLEAR);
        dir.edit(edit);
        let error = dir.load(None).unwrap_err();
        assert!(matches!(error, KeyError::Malformed(_)), "{n}: {error}");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
    }
    for text in ["", "{", "null", "\u{0}"] {
        let dir = Dir::new();
        dir.write(text);
        assert!(matches!(dir.load(None), Err(KeyError::Malformed(_))));
    }
}

#[test]
fn a_file_cannot_ask_for_any_amount_of_memory() {
    let edits: [Edit; 4] = [
        |root| root["memory_kib"] = json!(4_000_000_000_u32),
        |root| root["passes"] = json!(4_000_000_000_u32),
        |root| root["lanes"] = json!(17),
        |root| root["passes"] = json!(0),
    ];
    for edit in edits {
        let dir = Dir::new();
        dir.write(PASSPHRASE);
        dir.edit(|file| edit(&mut file["root"]["passphrase"]));
        assert!(matches!(
            dir.load(Some("correct horse ✓ battery")),
            Err(KeyError::Malformed(_))
        ));
    }
}

#[test]
fn vectors_of_the_format() {
    for (text, passphrase) in [(CLEAR, None), (PASSPHRASE, Some("correct horse ✓ battery"))] {
        let dir = Dir::new();
        dir.write(text);
        let keys = dir.load(passphrase).unwrap();
        assert_eq!(keys.active_key(), 7);
        assert_eq!(keys.key_ids().collect::<Vec<_>>(), [1, 7]);
        for (id, byte) in [(1, 0x11), (7, 0x77)] {
            let expected =
                ColumnCipher::new(Suite::Aes, id, &data_key_from_bytes([byte; 32]), ID, None);
            let cipher = keys.column_cipher(Suite::Aes.into(), id, ID, None).unwrap();
            assert_eq!(cipher.equality_token(b"x"), expected.equality_token(b"x"));
        }
        let metadata = MetadataKey::new(&data_key_from_bytes([0x4d; 32]));
        assert_eq!(keys.metadata_key().tag(b"x"), metadata.tag(b"x"));
    }
}

#[test]
fn ciphers_are_shared_and_told_apart() {
    let dir = Dir::new();
    dir.write(CLEAR);
    let keys = dir.load(None).unwrap();
    let get = |suite: Suite, id, join| keys.column_cipher(suite.into(), 7, id, join).unwrap();
    let one = get(Suite::Aes, ID, None);
    assert!(Arc::ptr_eq(&one, &get(Suite::Aes, ID, None)));
    let group = get(Suite::Aes, ID, Some("g"));
    assert!(Arc::ptr_eq(&group, &get(Suite::Aes, ID, Some("g"))));
    let other = ColumnId {
        column: [3; 4],
        ..ID
    };
    let all = [
        one,
        group,
        get(Suite::Sm, ID, None),
        get(Suite::Aes, other, None),
        get(Suite::Aes, ID, Some("")),
        keys.column_cipher(Suite::Aes.into(), 1, ID, None).unwrap(),
    ];
    for (i, a) in all.iter().enumerate() {
        for b in &all[i + 1..] {
            assert!(!Arc::ptr_eq(a, b));
            assert_ne!(a.equality_token(b"x"), b.equality_token(b"x"));
        }
    }
    for unknown in [0, 2, 8, u16::MAX] {
        assert!(matches!(
            keys.column_cipher(Suite::Aes.into(), unknown, ID, None),
            Err(KeyError::UnknownKey(id)) if id == unknown
        ));
    }
}

#[test]
fn many_threads_get_one_cipher() {
    let dir = Dir::new();
    dir.create(None);
    let keys = dir.load(None).unwrap();
    let ciphers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    keys.column_cipher(Suite::Sm.into(), 1, ID, Some("g"))
                        .unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(ciphers.iter().all(|c| Arc::ptr_eq(c, &ciphers[0])));
}

/// Whoever creates and drops tables all day does not fill the memory, and outruns no bound.
#[test]
fn ciphers_that_nobody_uses_are_forgotten_and_their_counts_are_not() {
    let dir = Dir::new();
    dir.write(CLEAR);
    let keys = dir.load(None).unwrap();
    let column = |n: u32| ColumnId {
        column: n.to_be_bytes(),
        ..ID
    };
    let get = |n: u32| {
        keys.column_cipher(Suite::Aes.into(), 7, column(n), None)
            .unwrap()
    };
    let held = get(0);
    let mut cell = Vec::new();
    for _ in 0..5 {
        get(1).seal(b"x", &mut cell).unwrap();
    }
    for n in 2..3000 {
        get(n);
        assert!(keys.kept_ciphers() <= 1025, "{n}");
    }
    assert!(Arc::ptr_eq(&held, &get(0)));
    assert!(get(1).sealed_units() >= 5);
    let mut opened = Vec::new();
    get(1).open(&cell[..cell.len() / 5], &mut opened).unwrap();
    assert_eq!(opened, b"x");
    // where all are in use, all stay
    let all: Vec<_> = (0..3000).map(get).collect();
    assert!(keys.kept_ciphers() >= all.len());
    let again = all.iter().zip(0..);
    assert!(again.into_iter().all(|(one, n)| Arc::ptr_eq(one, &get(n))));
}

#[test]
fn nothing_shows_keys() {
    let dir = Dir::new();
    dir.write(CLEAR);
    let keys = dir.load(None).unwrap();
    assert_eq!(
        format!("{keys:?}"),
        "KeySet { active: 7, key_ids: [1, 7], .. }"
    );
    assert_ne!(keys.random_table_id(), keys.random_table_id());
    assert_ne!(keys.random_column_id(), keys.random_column_id());
}

#[test]
fn creation_draws_from_the_generator_it_is_given() {
    // Two files from one seed have the same root key: it comes from the caller's generator and
    // nowhere else.
    let roots: Vec<Value> = (0..2)
        .map(|_| {
            let dir = Dir::new();
            let mut rng = rand::rngs::StdRng::seed_from_u64(1);
            KeySet::create_file(&dir.path(), None, &mut rng).unwrap();
            let file: Value = serde_json::from_slice(&fs::read(dir.path()).unwrap()).unwrap();
            file["root"].clone()
        })
        .collect();
    assert_eq!(roots[0], roots[1]);
}

fn numbers(entries: &[KeyEntry]) -> Vec<(KeyId, bool)> {
    entries.iter().map(|key| (key.id, key.is_active)).collect()
}

#[test]
fn a_key_is_added_then_used_and_the_old_ones_stay() {
    for passphrase in [None, Some("correct horse")] {
        let dir = Dir::new();
        dir.create(passphrase);
        let before = dir.load(passphrase).unwrap();
        let text = fs::read_to_string(dir.path()).unwrap();

        let entries = dir.change(passphrase, KeyChange::Add).unwrap();
        assert_eq!(numbers(&entries), [(1, true), (2, false)]);
        let added = dir.load(passphrase).unwrap();
        assert_eq!((added.active_key(), token(&added)), (1, token(&before)));

        let entries = dir.change(passphrase, KeyChange::Activate(2)).unwrap();
        assert_eq!(numbers(&entries), [(1, false), (2, true)]);
        let used = dir.load(passphrase).unwrap();
        assert_eq!(used.active_key(), 2);
        assert_ne!(token(&used), token(&before), "another key");
        let under_the_old_one = used.column_cipher(Suite::Aes.into(), 1, ID, None).unwrap();
        assert_eq!(*under_the_old_one.equality_token(b"alice"), token(&before));
        let tag = before.metadata_key().tag(b"comment");
        assert!(used.metadata_key().verify(b"comment", &tag));

        // Back again, and a third one.
        dir.change(passphrase, KeyChange::Activate(1)).unwrap();
        let entries = dir.change(passphrase, KeyChange::Add).unwrap();
        assert_eq!(numbers(&entries), [(1, true), (2, false), (3, false)]);
        let listed = KeySet::entries_of_file(
            "file:keys.json",
            dir.0.path(),
            RootAccess::Passphrase(passphrase),
        );
        assert_eq!(listed.unwrap(), entries);
        assert!(matches!(
            dir.change(passphrase, KeyChange::Activate(4)),
            Err(KeyError::UnknownKey(4))
        ));
        assert_eq!(fs::read_dir(dir.0.path()).unwrap().count(), 1);

        // Nothing that the old file holds is in the new one: neither its root key nor a key under
        // it.
        let old: Value = serde_json::from_str(&text).unwrap();
        let new = fs::read_to_string(dir.path()).unwrap();
        for secret in [
            &old["data_keys"][0]["wrapped"],
            &old["metadata_key"]["wrapped"],
            match passphrase {
                None => &old["root"]["clear"],
                Some(_) => &old["root"]["passphrase"]["sealed"],
            },
        ] {
            assert!(!new.contains(secret.as_str().unwrap()));
        }
    }
}

#[test]
fn a_passphrase_is_set_changed_and_taken_away() {
    let dir = Dir::new();
    dir.create(None);
    let before = token(&dir.load(None).unwrap());
    let is_only_under = |dir: &Dir, right: Option<&str>| {
        for passphrase in [None, Some("first"), Some("second")] {
            let opened = dir.load(passphrase);
            assert_eq!(opened.is_ok(), passphrase == right, "{passphrase:?}");
            assert!(opened.is_err() || token(&opened.unwrap()) == before);
        }
    };
    let change = |from, to| dir.change(from, KeyChange::Passphrase(to)).map(|_| ());
    change(None, Some("first")).unwrap();
    is_only_under(&dir, Some("first"));
    assert!(matches!(
        change(Some("wrong"), Some("second")),
        Err(KeyError::WrongPassphrase)
    ));
    assert!(matches!(
        change(None, Some("second")),
        Err(KeyError::PassphraseNeeded)
    ));
    assert!(matches!(
        change(Some("first"), Some("")),
        Err(KeyError::EmptyPassphrase)
    ));
    is_only_under(&dir, Some("first"));
    change(Some("first"), Some("second")).unwrap();
    is_only_under(&dir, Some("second"));
    change(Some("second"), None).unwrap();
    is_only_under(&dir, None);
}

#[test]
fn a_change_touches_nothing_that_it_cannot_replace() {
    let dir = Dir::new();
    dir.create(None);
    let text = fs::read_to_string(dir.path()).unwrap();
    let beside = dir.0.path().join("keys.json.new");

    // Somebody else is at it.
    fs::write(&beside, "theirs").unwrap();
    assert!(matches!(
        dir.change(None, KeyChange::Add),
        Err(KeyError::BeingChanged { path }) if path.ends_with("keys.json.new")
    ));
    assert_eq!(fs::read_to_string(&beside).unwrap(), "theirs");
    fs::remove_file(&beside).unwrap();

    // An altered file is not made a sound one.
    dir.edit(|file| file["active"] = json!(2));
    assert!(matches!(
        dir.change(None, KeyChange::Add),
        Err(KeyError::Tampered)
    ));
    assert!(!beside.exists());
    dir.write(&text);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        dir.change(None, KeyChange::Add),
        Err(KeyError::TooOpen { .. })
    ));
    assert_eq!(fs::read_to_string(dir.path()).unwrap(), text);

    // What a symbolic link leads to is replaced, not the link.
    dir.write(&text);
    let elsewhere = Dir::new();
    std::os::unix::fs::symlink(dir.path(), elsewhere.path()).unwrap();
    elsewhere.change(None, KeyChange::Add).unwrap();
    assert!(fs::symlink_metadata(elsewhere.path()).unwrap().is_symlink());
    assert_eq!(dir.load(None).unwrap().key_ids().count(), 2);
    let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Root may change what belongs to the proxy's user, who must be able to read it afterwards.
    if std::os::unix::fs::chown(dir.path(), Some(4321), Some(4321)).is_ok() {
        dir.change(None, KeyChange::Activate(2)).unwrap();
        let file = fs::metadata(dir.path()).unwrap();
        assert_eq!((file.uid(), file.gid()), (4321, 4321));
    }
}

#[test]
fn what_lies_in_a_files_place_is_not_waited_for() {
    let dir = Dir::new();
    let pipe = |path: &Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    };
    pipe(&dir.path());
    let error = read_private_file(&dir.path(), 100).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    assert!(read_secret_file(&dir.path(), 100).is_err());

    let base = dir.0.path();
    fs::remove_file(dir.path()).unwrap();
    fs::write(dir.path(), CLEAR).unwrap();
    let new = base.join("keys.json.new");
    pipe(&new);
    let is_open = || KeySet::leftover("file:keys.json", base).unwrap().is_open;
    assert!(!is_open());
    fs::remove_file(&new).unwrap();
    // A link is named, and not followed.
    let far = base.join("far");
    fs::write(&far, CLEAR).unwrap();
    std::os::unix::fs::symlink(&far, &new).unwrap();
    assert!(!is_open());
    fs::remove_file(&new).unwrap();
    // However long it is, its beginning is read.
    let file = fs::File::create(&new).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(!is_open());
    fs::write(&new, &CLEAR[..CLEAR.len() / 2]).unwrap();
    assert!(is_open());
}
