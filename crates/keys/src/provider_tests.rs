//! Key files whose root key a provider wraps.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use onionskin_crypt::dangerous_bytes;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    file_root::{box_key, open_key, seal_key},
    private_file::Owner,
};

const VECTOR: &str = include_str!("../tests/vectors/provider.json");
const CLEAR: &str = include_str!("../tests/vectors/clear.json");
/// Argon2id at its cheapest.
const CHEAP: PassphraseCost = PassphraseCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

/// Boxes keys under one of its own, which no file holds.
struct BoxProvider {
    name: &'static str,
    key: [u8; 32],
    asked: AtomicU32,
    is_away: bool,
}

impl BoxProvider {
    fn new(name: &'static str, key: u8) -> Self {
        Self {
            name,
            key: [key; 32],
            asked: AtomicU32::new(0),
            is_away: false,
        }
    }

    fn away(mut self) -> Self {
        self.is_away = true;
        self
    }

    fn ask(&self) -> Result<(), KeyError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.is_away {
            true => Err(KeyError::Provider {
                name: self.name.into(),
                why: "nobody answers".into(),
                may_pass: true,
            }),
            false => Ok(()),
        }
    }
}

impl KeyProvider for BoxProvider {
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError> {
        self.ask()?;
        seal_key(
            &box_key(&self.key),
            dangerous_bytes::bytes_of_data_key(plain),
            context.words().as_bytes(),
            &mut rand::rng(),
        )
        .map(WrappedKey)
    }

    fn unwrap(&self, wrapped: &WrappedKey, context: KeyContext) -> Result<DataKey, KeyError> {
        self.ask()?;
        let aad = context.words();
        let key = open_key(&box_key(&self.key), &wrapped.0, aad.as_bytes());
        let key = key.ok_or(KeyError::Tampered)?;
        Ok(dangerous_bytes::data_key_from_bytes(*key))
    }

    fn name(&self) -> &str {
        self.name
    }
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn holding(text: &str) -> Self {
        let place = Place::new();
        place.write(text);
        place
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("keys.json")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(&self.text()).unwrap();
        change(&mut value);
        self.write(&value.to_string());
    }

    fn load(&self, access: RootAccess<'_>) -> Result<KeySet, KeyError> {
        KeySet::load_by("file:keys.json", self.0.path(), access)
    }

    fn change(
        &self,
        access: RootAccess<'_>,
        what: KeyChange<'_>,
    ) -> Result<Vec<KeyEntry>, KeyError> {
        key_file::change(&self.path(), (access, CHEAP), what, &mut rand::rng())
    }

    fn keeper(&self) -> RootKeeper {
        KeySet::root_of_file("file:keys.json", self.0.path()).unwrap()
    }
}

fn by(provider: &BoxProvider) -> RootAccess<'_> {
    RootAccess::Provider(provider)
}

const OPEN: RootAccess<'static> = RootAccess::Passphrase(None);

#[test]
fn the_vector_opens_under_its_provider_alone() {
    let place = Place::holding(VECTOR);
    let right = BoxProvider::new("box", 0x33);
    let keys = place.load(by(&right)).unwrap();
    assert_eq!(keys.key_ids().collect::<Vec<_>>(), [1, 7]);
    let same = Place::holding(CLEAR).load(OPEN).unwrap();
    assert_eq!(keys.difference(&same), KeyDifference::None);
    assert_eq!(place.keeper(), RootKeeper::Provider("box".into()));

    let other_key = BoxProvider::new("box", 0x34);
    assert!(matches!(
        place.load(by(&other_key)),
        Err(KeyError::Tampered)
    ));
    let other_name = BoxProvider::new("chest", 0x33);
    let error = place.load(by(&other_name)).unwrap_err();
    assert!(matches!(error, KeyError::OtherProvider { .. }), "{error}");
    assert_eq!(other_name.asked.load(Ordering::Relaxed), 0);
    let error = place.load(OPEN).unwrap_err();
    assert!(matches!(&error, KeyError::ProviderNeeded(name) if name == "box"));
    assert!(error.to_string().contains("[provider.box]"), "{error}");
    let error = place.load(RootAccess::Passphrase(Some("p"))).unwrap_err();
    assert!(matches!(error, KeyError::NotUnderPassphrase), "{error}");
}

#[test]
fn a_file_that_opens_by_itself_is_not_taken_for_one_under_a_provider() {
    let provider = BoxProvider::new("box", 0x33);
    let place = Place::holding(CLEAR);
    let error = place.load(by(&provider)).unwrap_err();
    assert!(matches!(error, KeyError::NotUnderProvider { .. }));
    let text = error.to_string();
    assert!(
        text.contains("in the clear") && text.contains("rewrap --to box"),
        "{text}"
    );
    assert!(place.change(by(&provider), KeyChange::Add).is_err());
    assert_eq!(provider.asked.load(Ordering::Relaxed), 0);
}

/// What is behind the provider's box is authenticated by its root key; the field `root` by opening
/// the rest.
#[test]
fn every_part_of_a_wrapped_file_is_authenticated() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 11] = [
        ("version of other files", |f| f["version"] = json!(1)),
        ("unknown version", |f| f["version"] = json!(3)),
        ("another provider", |f| {
            f["root"]["provider"]["name"] = json!("chest")
        }),
        ("a name for errors to show", |f| {
            f["root"]["provider"]["name"] = json!("box\u{1b}[2J");
        }),
        ("nothing wrapped", |f| {
            f["root"]["provider"]["wrapped"] = json!("")
        }),
        ("another box", |f| {
            let wrapped = f["data_keys"][0]["wrapped"].clone();
            f["root"]["provider"]["wrapped"] = wrapped;
        }),
        ("an address", |f| {
            f["root"]["provider"]["address"] = json!("https://x")
        }),
        ("active set back", |f| f["active"] = json!(1)),
        ("key removed", |f| {
            f["data_keys"].as_array_mut().unwrap().remove(0);
        }),
        ("date changed", |f| f["metadata_key"]["created"] = json!(0)),
        ("mac of nothing", |f| f["mac"] = json!("")),
    ];
    let provider = BoxProvider::new("box", 0x33);
    for (name, edit) in edits {
        let place = Place::holding(VECTOR);
        place.edit(|_| ());
        assert!(place.load(by(&provider)).is_ok(), "layout does not matter");
        place.edit(edit);
        let error = place.load(by(&provider)).expect_err(name);
        assert!(!error.to_string().contains('\u{1b}'), "{name}");
    }
    // A bit of the box at a time.
    let wrapped = |place: &Place| -> String {
        let file: Value = serde_json::from_str(&place.text()).unwrap();
        file["root"]["provider"]["wrapped"].as_str().unwrap().into()
    };
    let whole = root::decode("wrapped", &wrapped(&Place::holding(VECTOR))).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        let place = Place::holding(VECTOR);
        use base64::{Engine, engine::general_purpose::STANDARD};
        place.edit(|f| f["root"]["provider"]["wrapped"] = json!(STANDARD.encode(&changed)));
        assert!(matches!(place.load(by(&provider)), Err(KeyError::Tampered)));
    }
}

#[test]
fn keys_move_between_providers_and_stay_the_same() {
    let place = Place::holding(CLEAR);
    let before = place.load(OPEN).unwrap();
    let (first, second) = (BoxProvider::new("box", 1), BoxProvider::new("chest", 2));
    let steps: [(RootAccess<'_>, KeyChange<'_>, RootAccess<'_>); 4] = [
        (OPEN, KeyChange::Wrap(&first), by(&first)),
        (by(&first), KeyChange::Wrap(&second), by(&second)),
        (
            by(&second),
            KeyChange::Passphrase(Some("p")),
            RootAccess::Passphrase(Some("p")),
        ),
        (
            RootAccess::Passphrase(Some("p")),
            KeyChange::Passphrase(None),
            OPEN,
        ),
    ];
    for (access, change, then) in steps {
        let old = place.text();
        place.change(access, change).unwrap();
        let keys = place.load(then).unwrap();
        assert_eq!(keys.difference(&before), KeyDifference::None);
        // A new root key: nothing of the old file's is in the new one's.
        let [was, is] =
            [old, place.text()].map(|text| serde_json::from_str::<Value>(&text).unwrap());
        assert_ne!(
            was["data_keys"][0]["wrapped"],
            is["data_keys"][0]["wrapped"]
        );
        // And the old file opens as before.
        let copy = Place::holding(&was.to_string());
        assert!(copy.load(access).is_ok());
        assert!(copy.load(then).is_err());
    }
}

#[test]
fn a_wrapped_file_is_changed_as_others_are() {
    let place = Place::new();
    let provider = BoxProvider::new("box", 5);
    key_file::create(&place.path(), by(&provider), CHEAP, &mut rand::rng()).unwrap();
    assert!(!place.text().contains("clear") && !place.text().contains("argon2id"));
    let added = place.change(by(&provider), KeyChange::Add).unwrap();
    assert_eq!(added.len(), 2);
    place.change(by(&provider), KeyChange::Activate(2)).unwrap();
    assert_eq!(place.load(by(&provider)).unwrap().active_key(), 2);
    let entries = KeySet::entries_of_file("file:keys.json", place.0.path(), by(&provider));
    assert_eq!(entries.unwrap().len(), 2);
}

#[test]
fn a_provider_that_is_away_changes_nothing() {
    let place = Place::holding(VECTOR);
    let away = BoxProvider::new("box", 0x33).away();
    let error = place.load(by(&away)).unwrap_err();
    assert!(error.may_pass() && error.to_string().contains("nobody answers"));
    assert!(place.change(by(&away), KeyChange::Add).is_err());
    let other = BoxProvider::new("chest", 1).away();
    let right = BoxProvider::new("box", 0x33);
    assert!(place.change(by(&right), KeyChange::Wrap(&other)).is_err());
    assert_eq!(place.text(), VECTOR);
    assert!(!place.0.path().join("keys.json.new").exists());
    // Nor is a file begun.
    let empty = Place::new();
    let made = key_file::create(&empty.path(), by(&other), CHEAP, &mut rand::rng());
    assert!(made.is_err() && !empty.path().exists());
    // And nobody is asked where one is already.
    let asked = BoxProvider::new("box", 1);
    let made = key_file::create(&place.path(), by(&asked), CHEAP, &mut rand::rng());
    assert!(matches!(made, Err(KeyError::Exists { .. })));
    assert_eq!(asked.asked.load(Ordering::Relaxed), 0);
}

/// Gives back what it got, as bytes or as text, or forgets it.
struct Careless {
    as_text: bool,
    /// Unwraps another key than it has wrapped.
    forgets: bool,
}

impl KeyProvider for Careless {
    fn wrap(&self, plain: &DataKey, _: KeyContext) -> Result<WrappedKey, KeyError> {
        let key = dangerous_bytes::bytes_of_data_key(plain);
        if self.forgets {
            return Ok(WrappedKey(b"the number of a drawer".to_vec()));
        }
        use base64::{Engine, engine::general_purpose::STANDARD};
        Ok(WrappedKey(match self.as_text {
            true => format!("v1:{}", STANDARD.encode(key)).into_bytes(),
            false => [b"v1:", &key[..]].concat(),
        }))
    }

    fn unwrap(&self, _: &WrappedKey, _: KeyContext) -> Result<DataKey, KeyError> {
        Ok(dangerous_bytes::data_key_from_bytes([9; 32]))
    }

    fn name(&self) -> &str {
        "careless"
    }
}

#[test]
fn a_provider_that_wraps_badly_is_found_before_the_old_file_is_gone() {
    for (as_text, forgets, what) in [
        (true, false, "in the clear"),
        (false, false, "in the clear"),
        (false, true, "authentication fails"),
    ] {
        let place = Place::holding(VECTOR);
        let provider = Careless { as_text, forgets };
        let right = BoxProvider::new("box", 0x33);
        let error = place
            .change(by(&right), KeyChange::Wrap(&provider))
            .unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(place.text(), VECTOR);
        assert!(key_file::load(&place.path(), by(&right), Owner::OursOrRoot).is_ok());
    }
}
