//! Tenants files: made, changed, copied, damaged; and what comes of it for cells.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use onionskin_crypt::{CellFormat, OpenError, SealError, TenantSecrets, TenantTree};
use rand::SeedableRng;

use super::*;
use crate::PassphraseCost;

const CHEAP: PassphraseCost = PassphraseCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};
const ID: ColumnId = ColumnId {
    table: [1; 8],
    column: [2; 4],
};
const FILE: &str = "file:tenants.keys";
const CLEAR: &str = include_str!("../tests/vectors/clear.json");

/// A folder with a key file and a tenants file.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let (access, mut rng) = (RootAccess::Passphrase(None), rand::rng());
        key_file::create(&place.at("keys.json"), access, CHEAP, &mut rng).unwrap();
        place
            .keys()
            .create_tenants_file(FILE, place.base())
            .unwrap();
        place
    }

    fn base(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base().join(name)
    }

    fn file(&self) -> PathBuf {
        self.at("tenants.keys")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    /// Puts these bytes in the place of the file.
    fn put(&self, bytes: &[u8]) {
        fs::write(self.file(), bytes).unwrap();
        fs::set_permissions(self.file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn keys(&self) -> KeySet {
        KeySet::load("file:keys.json", self.base(), None).unwrap()
    }

    fn load(&self) -> Result<KeySet, KeyError> {
        self.keys().load_tenants(FILE, self.base())
    }

    fn forget(&self, names: &[u32]) -> Result<Forgetting, KeyError> {
        let keys = self.keys();
        let ids: Vec<TenantId> = names.iter().map(|&name| id(&keys, name)).collect();
        keys.forget_tenants(FILE, self.base(), &ids)
    }
}

fn id(keys: &KeySet, name: u32) -> TenantId {
    keys.tenant_id("customers", name.to_string().as_bytes())
}

fn cipher(keys: &KeySet, suite: Suite) -> std::sync::Arc<ColumnCipher> {
    let format = CellFormat::of_tenants(suite);
    keys.column_cipher(format, keys.active_key(), ID, None)
        .unwrap()
}

fn sealed(keys: &KeySet, name: u32) -> Result<Vec<u8>, SealError> {
    let mut cell = Vec::new();
    let sealed = cipher(keys, Suite::Aes).seal_for(id(keys, name), b"value", &mut cell);
    sealed.map(|()| cell)
}

fn opened(keys: &KeySet, cell: &[u8]) -> Result<(), OpenError> {
    let mut value = Vec::new();
    cipher(keys, Suite::Aes).open(cell, &mut value)?;
    assert_eq!(value, b"value");
    Ok(())
}

#[test]
fn forgetting_reaches_the_cells_of_one_tenant() {
    let place = Place::new();
    let before = place.load().unwrap();
    let cells: Vec<_> = (0..5).map(|name| sealed(&before, name).unwrap()).collect();
    let done = place.forget(&[3, 1, 3]).unwrap();
    assert_eq!(done.is_new, [true, true, false]);
    assert_eq!((done.forgotten, done.generation), (2, 2));
    assert!(done.not_overwritten.is_none());
    let after = place.load().unwrap();
    for (name, cell) in (0..5).zip(&cells) {
        let is_gone = name == 1 || name == 3;
        let expected = if is_gone {
            Err(OpenError::Forgotten)
        } else {
            Ok(())
        };
        assert_eq!(opened(&after, cell), expected, "{name}");
        assert_eq!(sealed(&after, name).is_err(), is_gone);
        // What runs goes on as it was.
        assert_eq!(opened(&before, cell), Ok(()));
        let tenants = after.tenants().unwrap();
        assert_eq!(tenants.is_forgotten(id(&after, name)), is_gone);
    }
    assert_eq!(sealed(&after, 3), Err(SealError::Forgotten));
    let listed: Vec<_> = after.tenants().unwrap().forgotten().collect();
    assert!(listed.len() == 2 && listed[0].0 < listed[1].0);
    assert!(listed.iter().all(|(_, time)| *time > 1_767_225_600));
    // Once more changes nothing, not even the file.
    let bytes = place.bytes();
    let again = place.forget(&[1]).unwrap();
    assert_eq!((again.is_new, again.generation), (vec![false], 2));
    assert_eq!(place.bytes(), bytes);
}

#[test]
fn without_a_file_nothing_of_tenants_works() {
    let place = Place::new();
    let cell = sealed(&place.load().unwrap(), 1).unwrap();
    let keys = place.keys();
    assert!(keys.tenants().is_none());
    assert_eq!(sealed(&keys, 1), Err(SealError::NoTenants));
    assert_eq!(opened(&keys, &cell), Err(OpenError::NoTenants));
    // A cipher that was made before the file was read is not given out afterwards.
    let keys = keys.load_tenants(FILE, place.base()).unwrap();
    assert_eq!(opened(&keys, &cell), Ok(()));
    let missing = place.keys().load_tenants("file:none.keys", place.base());
    let text = missing.unwrap_err().to_string();
    assert!(
        text.contains("tenants file") && text.contains("none.keys"),
        "{text}"
    );
    for locator in ["", "file:", "tenants.keys", "vault:token"] {
        let refused = place.keys().load_tenants(locator, place.base());
        assert!(matches!(refused, Err(KeyError::TenantsPlace)));
    }
}

#[test]
fn changes_of_data_keys_leave_the_file_alone() {
    let place = Place::new();
    let bytes = place.bytes();
    let cell = sealed(&place.load().unwrap(), 1).unwrap();
    for change in [
        KeyChange::Add,
        KeyChange::Activate(2),
        KeyChange::Passphrase(None),
        KeyChange::MakeReadOnly(1),
    ] {
        let access = (RootAccess::Passphrase(None), CHEAP);
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        key_file::change(&place.at("keys.json"), access, change, &mut rng).unwrap();
    }
    let keys = place.load().unwrap();
    let format = CellFormat::of_tenants(Suite::Aes);
    let old = keys.column_cipher(format, 1, ID, None).unwrap();
    old.open(&cell, &mut Vec::new()).unwrap();
    let refused = old.seal_for(id(&keys, 1), b"value", &mut Vec::new());
    assert_eq!(refused, Err(SealError::OpensOnly));
    assert_eq!(place.bytes(), bytes);
}

#[test]
fn a_running_program_knows_which_files_may_follow() {
    let place = Place::new();
    let first = place.load().unwrap();
    let old = place.bytes();
    let is =
        |expected: KeyDifference| assert_eq!(first.difference(&place.load().unwrap()), expected);
    is(KeyDifference::None);
    place.forget(&[1]).unwrap();
    is(KeyDifference::Numbers);
    let second = place.load().unwrap();
    let newer = place.bytes();
    // An old copy.
    place.put(&old);
    let back = KeyDifference::ForeignTenants(ForeignTenants::Returned);
    assert_eq!(second.difference(&place.load().unwrap()), back);
    // Another tenant forgotten on another machine: neither file follows the other.
    place.forget(&[2]).unwrap();
    let aside = place.load().unwrap();
    assert_eq!(second.difference(&aside), back);
    assert_eq!(aside.difference(&second), back);
    // The same names on both, in whatever order: both are the same then.
    place.forget(&[1]).unwrap();
    let cells: Vec<_> = (0..4).map(|name| sealed(&first, name).unwrap()).collect();
    let (here, _) = (place.load().unwrap(), place.put(&newer));
    place.forget(&[2]).unwrap();
    let there = place.load().unwrap();
    assert_eq!(here.difference(&there), KeyDifference::None);
    for cell in &cells {
        assert_eq!(opened(&here, cell), opened(&there, cell));
    }
    // No file, and another one.
    let none = place.keys();
    assert_eq!(none.difference(&first), KeyDifference::Numbers);
    let gone = KeyDifference::ForeignTenants(ForeignTenants::Gone);
    assert_eq!(first.difference(&none), gone);
    fs::remove_file(place.file()).unwrap();
    first.create_tenants_file(FILE, place.base()).unwrap();
    let other = KeyDifference::ForeignTenants(ForeignTenants::OtherFile);
    assert_eq!(first.difference(&place.load().unwrap()), other);
}

#[test]
fn every_part_of_the_file_is_authenticated() {
    let place = Place::new();
    place.forget(&[1]).unwrap();
    let whole = place.bytes();
    assert_eq!(whole.len(), 40 + 12 + 8 + 16 + 64 * 16 + 16);
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        place.put(&bad);
        let refused = place.load().expect_err("refused");
        assert!(
            matches!(
                refused,
                KeyError::TenantsTampered | KeyError::TenantsMalformed(_)
            ),
            "byte {at}: {refused}"
        );
        // Nor is an altered file made a sound one.
        if at % 64 == 0 {
            assert!(place.forget(&[2]).is_err());
            assert_eq!(place.bytes(), bad);
            assert!(!place.at("tenants.keys.new").exists());
        }
    }
    for len in (0..whole.len()).step_by(7) {
        place.put(&whole[..len]);
        assert!(place.load().is_err());
    }
    place.put(&[&whole[..], &[0]].concat());
    assert!(place.load().is_err());
    // The file of another key file.
    let other = Place::new();
    place.put(&other.bytes());
    assert!(matches!(place.load(), Err(KeyError::TenantsTampered)));
    place.put(&whole);
    assert!(place.load().is_ok());
}

#[test]
fn only_the_owner_may_have_access() {
    let place = Place::new();
    let mode = |mode| fs::set_permissions(place.file(), fs::Permissions::from_mode(mode)).unwrap();
    let is = fs::metadata(place.file()).unwrap().permissions().mode() & 0o7777;
    assert_eq!(is, 0o600);
    for open in [0o640, 0o604, 0o620, 0o666] {
        mode(open);
        assert!(matches!(place.load(), Err(KeyError::TooOpen { .. })));
        assert!(matches!(place.forget(&[1]), Err(KeyError::TooOpen { .. })));
    }
    mode(0o600);
    // Root changes the file of another user, who keeps it.
    if std::os::unix::fs::chown(place.file(), Some(4321), Some(4321)).is_ok() {
        assert!(matches!(place.load(), Err(KeyError::OtherOwner { .. })));
        place.forget(&[1]).unwrap();
        let file = fs::metadata(place.file()).unwrap();
        assert_eq!((file.uid(), file.gid()), (4321, 4321));
        let there = place.keys().tenants_of_file(FILE, place.base()).unwrap();
        assert_eq!(there.forgotten().len(), 1);
    }
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let place = Place::new();
    let bytes = place.bytes();
    let refused = place.keys().create_tenants_file(FILE, place.base());
    assert!(matches!(refused, Err(KeyError::Exists { .. })));
    assert_eq!(place.bytes(), bytes);
}

#[test]
fn the_old_bytes_are_written_over() {
    let place = Place::new();
    let old = place.bytes();
    // A second name shows what becomes of the bytes.
    let witness = place.at("witness");
    fs::hard_link(place.file(), &witness).unwrap();
    place.forget(&[1]).unwrap();
    assert_eq!(fs::read(&witness).unwrap(), vec![0; old.len()]);
    assert_ne!(place.bytes(), old);
    let names = fs::read_dir(place.base()).unwrap();
    assert_eq!(names.count(), 3, "keys.json, tenants.keys, witness");
}

#[test]
fn a_change_that_was_broken_off_is_seen_and_finished() {
    let place = Place::new();
    let (new, old) = (place.at("tenants.keys.new"), place.at("tenants.keys.old"));
    let leftovers = || KeySet::tenants_leftovers(FILE, place.base());
    assert!(leftovers().is_empty());
    // While it was written.
    let whole = place.bytes();
    fs::write(&new, &whole[..50]).unwrap();
    assert_eq!(leftovers(), [fs::canonicalize(&new).unwrap()]);
    let refused = place.forget(&[1]).unwrap_err();
    assert!(
        matches!(refused, KeyError::BeingChanged { .. }),
        "{refused}"
    );
    assert_eq!(fs::read(&new).unwrap(), whole[..50]);
    assert!(place.load().is_ok());
    fs::remove_file(&new).unwrap();

    // Before the new file had its place: the old one is the one that counts, under two names.
    fs::hard_link(place.file(), &old).unwrap();
    assert_eq!(leftovers(), [fs::canonicalize(&old).unwrap()]);
    place.forget(&[1]).unwrap();
    assert!(leftovers().is_empty());
    assert_eq!(
        place.load().unwrap().tenants().unwrap().forgotten().len(),
        1
    );

    // After it: what is left opens what was forgotten.
    place.put(&whole);
    let witness = place.at("witness");
    fs::hard_link(place.file(), &witness).unwrap();
    fs::rename(place.file(), &old).unwrap();
    place.put(&whole);
    place.forget(&[2]).unwrap();
    assert!(leftovers().is_empty());
    assert_eq!(fs::read(&witness).unwrap(), vec![0; whole.len()]);
    // Also where nobody is left to forget.
    fs::write(&old, "old").unwrap();
    place.forget(&[2]).unwrap();
    assert!(leftovers().is_empty());
    // A symbolic link under that name leads nowhere.
    let far = place.at("far");
    fs::write(&far, "precious").unwrap();
    std::os::unix::fs::symlink(&far, &old).unwrap();
    assert!(place.forget(&[3]).is_err());
    assert_eq!(fs::read(&far).unwrap(), b"precious");
    assert!(!new.exists());
}

#[test]
fn what_a_symbolic_link_leads_to_is_replaced() {
    let place = Place::new();
    let real = place.at("real.keys");
    fs::rename(place.file(), &real).unwrap();
    std::os::unix::fs::symlink(&real, place.file()).unwrap();
    place.forget(&[1]).unwrap();
    assert!(fs::symlink_metadata(place.file()).unwrap().is_symlink());
    assert_eq!(place.load().unwrap().tenants().unwrap().generation(), 2);
}

#[test]
fn the_file_of_a_second_implementation_opens() {
    let place = Place::new();
    fs::write(place.at("keys.json"), CLEAR).unwrap();
    place.put(include_bytes!("../tests/vectors/tenants_none.keys"));
    let none = place.load().unwrap();
    place.put(include_bytes!("../tests/vectors/tenants_two.keys"));
    let two = place.load().unwrap();
    let tenants = two.tenants().unwrap();
    assert_eq!(tenants.generation(), 3);
    assert_eq!(tenants.file_id(), std::array::from_fn(|n| n as u8));
    let listed: Vec<_> = tenants
        .forgotten()
        .map(|(id, time)| (id.to_string(), time))
        .collect();
    let expected = [
        ("0000000000000007".to_owned(), 1_798_761_600),
        ("0123456789abcdef".to_owned(), 1_767_225_600),
    ];
    assert_eq!(listed, expected);
    assert_eq!(none.difference(&two), KeyDifference::Numbers);
    // The secrets of all others are those of the root.
    let root = TenantTree::new(*b"root of tenants.");
    let whole = none.tenants().unwrap();
    for n in 0..100u64 {
        let id = TenantId(n.wrapping_mul(0x0123_4567_89ab_cdef / 7).to_be_bytes());
        assert!(root.secret(id).is_some() && whole.secret(id).is_some());
        let (mut cell, mut value) = (Vec::new(), Vec::new());
        cipher(&none, Suite::Sm)
            .seal_for(id, b"value", &mut cell)
            .unwrap();
        let opens = cipher(&two, Suite::Sm).open(&cell, &mut value);
        assert_eq!(opens.is_err(), tenants.is_forgotten(id));
    }
}

#[test]
fn nothing_shows_secrets() {
    let place = Place::new();
    let shown = format!("{:?}", place.load().unwrap().tenants());
    assert_eq!(shown, "Some(Tenants { generation: 1, forgotten: 0, .. })");
}
