//! The life of data keys: whatever is asked of a key file in whatever order, nothing is sealed
//! under a key that has come to rest, and no number is given out twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use onionskin_crypt::SealError;
use proptest::prelude::*;
use serde_json::{Value, json};

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

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let access = RootAccess::Passphrase(None);
        key_file::create(&place.path(), access, CHEAP, &mut rand::rng()).unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("keys.json")
    }

    fn change(&self, what: KeyChange<'_>) -> Result<Vec<KeyEntry>, KeyError> {
        let access = (RootAccess::Passphrase(None), CHEAP);
        key_file::change(&self.path(), access, what, &mut rand::rng())
    }

    fn load(&self) -> Result<KeySet, KeyError> {
        KeySet::load("file:keys.json", self.0.path(), None)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap()
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut value = self.json();
        change(&mut value);
        fs::write(self.path(), value.to_string()).unwrap();
    }
}

/// What a set of keys does with one of them: seals, opens what `cell` is.
fn does(keys: &KeySet, id: KeyId, cell: &[u8]) -> (bool, bool) {
    let cipher = match keys.column_cipher(Suite::Aes.into(), id, ID, None) {
        Ok(cipher) => cipher,
        Err(KeyError::NotInUse { .. } | KeyError::UnknownKey(_)) => {
            assert!(keys.stream_key(Suite::Aes, id, b"stream").is_err());
            return (false, false);
        }
        Err(other) => panic!("{other}"),
    };
    let (mut sealed, mut opened) = (b"before".to_vec(), Vec::new());
    let seals = match cipher.seal(b"value", &mut sealed) {
        Ok(()) => true,
        Err(SealError::OpensOnly) => {
            assert_eq!(sealed, b"before");
            false
        }
        Err(other) => panic!("{other}"),
    };
    let opens = cell.is_empty() || cipher.open(cell, &mut opened).is_ok() && opened == b"value";
    assert_eq!(opens, keys.stream_key(Suite::Aes, id, b"stream").is_ok());
    (seals, opens)
}

fn cell_under(keys: &KeySet, id: KeyId) -> Vec<u8> {
    let cipher = keys.column_cipher(Suite::Aes.into(), id, ID, None).unwrap();
    let mut cell = Vec::new();
    cipher.seal(b"value", &mut cell).unwrap();
    cell
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add,
    Use(KeyId),
    ReadOnly(KeyId),
    Retire(KeyId),
    Destroy(KeyId),
}

impl Step {
    fn change(self) -> KeyChange<'static> {
        match self {
            Step::Add => KeyChange::Add,
            Step::Use(id) => KeyChange::Activate(id),
            Step::ReadOnly(id) => KeyChange::MakeReadOnly(id),
            Step::Retire(id) => KeyChange::Retire(id),
            Step::Destroy(id) => KeyChange::Destroy(id),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 1..6u16;
    let step = prop_oneof![
        Just(Step::Add),
        id.clone().prop_map(Step::Use),
        id.clone().prop_map(Step::ReadOnly),
        id.clone().prop_map(Step::Retire),
        id.prop_map(Step::Destroy),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_sealed_under_a_key_that_has_come_to_rest(steps in steps()) {
        let place = Place::new();
        let mut cells: BTreeMap<KeyId, Vec<u8>> = BTreeMap::new();
        let (mut rested, mut gone, mut given) = (BTreeSet::new(), BTreeSet::new(), 1);
        for step in steps {
            let before = fs::read(place.path()).unwrap();
            let Ok(entries) = place.change(step.change()) else {
                prop_assert_eq!(fs::read(place.path()).unwrap(), before);
                continue;
            };
            let keys = place.load().unwrap();
            if matches!(step, Step::Add) {
                given += 1;
                prop_assert_eq!(entries.last().unwrap().id, given, "a number of its own");
            }
            prop_assert_eq!(entries.len(), usize::from(given), "no number is lost");
            prop_assert_eq!(entries.iter().filter(|key| key.state == KeyState::Active).count(), 1);
            prop_assert!(entries.iter().map(|key| (key.id, key.state)).eq(keys.states()));
            for key in &entries {
                if key.state.seals() {
                    cells.insert(key.id, cell_under(&keys, key.id));
                } else {
                    rested.insert(key.id);
                }
                if key.state == KeyState::At(Rest::Destroyed) {
                    gone.insert(key.id);
                }
                let cell = cells.get(&key.id).map_or(&[][..], Vec::as_slice);
                let (seals, opens) = does(&keys, key.id, cell);
                prop_assert_eq!(seals, key.state.seals());
                prop_assert_eq!(opens, key.state.opens());
                prop_assert!(!(seals && rested.contains(&key.id)), "it was at rest");
                prop_assert!(!(opens && gone.contains(&key.id)), "it was destroyed");
            }
            // A file without a key at rest is what it was for programs from before.
            let version = if rested.is_empty() { 1 } else { 3 };
            prop_assert_eq!(&place.json()["version"], &json!(version));
        }
    }
}

#[test]
fn a_key_comes_to_its_end_in_steps() {
    let place = Place::new();
    let refused = |what: KeyChange<'_>, word: &str| {
        let error = place.change(what).expect_err("refused").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(KeyChange::MakeReadOnly(1), "the active one");
    refused(KeyChange::Retire(1), "the active one");
    place.change(KeyChange::Add).unwrap();
    place.change(KeyChange::Activate(2)).unwrap();
    let before = place.load().unwrap();
    let cell = cell_under(&before, 1);
    assert_eq!(does(&before, 1, &cell), (true, true), "its tables go on");

    refused(KeyChange::Retire(1), "keys read-only");
    refused(KeyChange::Destroy(1), "keys retire");
    let since = place.change(KeyChange::MakeReadOnly(1)).unwrap()[0].rests_since;
    assert!(since.is_some());
    let after = place.load().unwrap();
    assert_eq!(does(&after, 1, &cell), (false, true));
    assert_eq!(before.difference(&after), KeyDifference::Numbers);
    refused(KeyChange::Activate(1), "add another one");

    place.change(KeyChange::Retire(1)).unwrap();
    let retired = place.load().unwrap();
    assert_eq!(does(&retired, 1, &cell), (false, false));
    assert_eq!(retired.key_ids().collect::<Vec<_>>(), [2]);
    let error = retired.column_cipher(Suite::Aes.into(), 1, ID, None);
    assert_eq!(error.err().unwrap().to_string(), "key 1 is retired");
    // Somebody still needed it.
    let entries = place.change(KeyChange::MakeReadOnly(1)).unwrap();
    assert_eq!(
        entries[0].rests_since, since,
        "nothing was sealed since then"
    );
    assert_eq!(does(&place.load().unwrap(), 1, &cell), (false, true));

    place.change(KeyChange::Retire(1)).unwrap();
    assert!(place.json()["data_keys"][0].get("wrapped").is_some());
    place.change(KeyChange::Destroy(1)).unwrap();
    assert!(place.json()["data_keys"][0].get("wrapped").is_none());
    assert_eq!(does(&place.load().unwrap(), 1, &cell), (false, false));
    refused(KeyChange::MakeReadOnly(1), "it is gone");
    refused(KeyChange::Activate(1), "destroyed");
    assert_eq!(place.change(KeyChange::Add).unwrap().last().unwrap().id, 3);
}

#[test]
fn a_state_cannot_be_edited() {
    let place = Place::new();
    place.change(KeyChange::Add).unwrap();
    place.change(KeyChange::Activate(2)).unwrap();
    place.change(KeyChange::MakeReadOnly(1)).unwrap();
    let text = fs::read(place.path()).unwrap();
    type Edit = fn(&mut Value);
    let edits: [(Edit, &str); 8] = [
        (
            |file| file["data_keys"][0]["state"] = json!("retired"),
            "altered",
        ),
        (
            |file| file["data_keys"][0]["state"] = json!("forgotten"),
            "JSON",
        ),
        (
            |file| file["data_keys"][0]["rests_since"] = json!(1),
            "altered",
        ),
        (
            |file| file["data_keys"][0]["rests_since"] = Value::Null,
            "not whole",
        ),
        (
            |file| file["data_keys"][0]["state"] = json!("destroyed"),
            "not whole",
        ),
        (
            |file| file["data_keys"][1]["state"] = json!("read-only"),
            "not whole",
        ),
        (|file| file["version"] = json!(1), "version"),
        (
            |file| {
                // All that says that it is at rest, back to version 1.
                let key = file["data_keys"][0].as_object_mut().unwrap();
                key.remove("state");
                key.remove("rests_since");
                file["version"] = json!(1);
            },
            "altered",
        ),
    ];
    for (edit, word) in edits {
        place.edit(edit);
        let error = place.load().expect_err("refused").to_string();
        // The MAC is the first to tell.
        let tells = error.contains(word) || error.contains("altered");
        assert!(tells, "{word}: {error}");
        fs::write(place.path(), &text).unwrap();
    }
    assert!(place.load().is_ok());
}

/// Made by the program as it was before there were states: `init`, `keys add`, `keys use 2`.
#[test]
fn a_file_from_before_there_were_states_means_what_it_meant() {
    const BEFORE: &str = include_str!("../tests/vectors/before_states.json");
    let place = Place::new();
    fs::write(place.path(), BEFORE).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let keys = place.load().unwrap();
    let states: Vec<_> = keys.states().collect();
    assert_eq!(states, [(1, KeyState::Leaving), (2, KeyState::Active)]);
    for id in [1, 2] {
        let cell = cell_under(&keys, id);
        assert_eq!(does(&keys, id, &cell), (true, true));
    }
    // It goes on as one of version 1 until a key comes to rest.
    place.change(KeyChange::Add).unwrap();
    assert_eq!(place.json()["version"], json!(1));
    assert_eq!(
        keys.difference(&place.load().unwrap()),
        KeyDifference::Numbers
    );
}
