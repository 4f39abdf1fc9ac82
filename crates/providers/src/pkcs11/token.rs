//! The child process that has loaded a token's library: one question, one answer.
//!
//! The root key is encrypted on the token by AES-256-GCM, with what the key is for as associated
//! data. What is wrapped is the text `aes-gcm:` and the base64 of nonce (12), ciphertext (32) and
//! tag (16). The nonce is the kernel's: a key wraps a few files in its life.

use std::io::{self, Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use cryptoki::{
    context::{CInitializeArgs, CInitializeFlags, Pkcs11},
    error::{Error, RvError},
    mechanism::{Mechanism, aead::GcmParams},
    object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle},
    session::{Session, UserType},
    slot::{Slot, TokenInfo},
    types::AuthPin,
};
use rand::{TryRng, rngs::SysRng};
use rustix::process::{Signal, set_parent_process_death_signal};
use zeroize::Zeroizing;

use super::question::{Answer, Asked, Operation, id};
use crate::{fault::Fault, secret_text::SecretText};

/// Longest question, in bytes.
const MOST: u64 = 64 << 10;
/// What wrapped text begins with: the mechanism.
const AES_GCM: &str = "aes-gcm:";
/// Bytes of a nonce, and bits of a tag.
const NONCE: usize = 12;
const TAG_BITS: u64 = 128;
/// Bytes of the token's key.
const KEY_LEN: u64 = 32;
/// Labels that are shown, at most.
const MOST_LABELS: usize = 8;

/// Why there is none, and whether the token has counted a wrong PIN.
struct Refusal {
    fault: Fault,
    pin_refused: bool,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal {
            fault,
            pin_refused: false,
        }
    }
}

/// Answers the question on standard input on standard output. For a process that does nothing else.
pub fn answer_one_question() -> io::Result<()> {
    // Nobody would hear the answer, and a library that hangs would stay.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut text = Zeroizing::new(Vec::with_capacity(MOST as usize));
    io::stdin().take(MOST).read_to_end(&mut text)?;
    // Serde's own text may quote the content.
    let asked: Asked =
        serde_json::from_slice(&text).map_err(|_| io::Error::other("the question is none"))?;
    match answer(&asked) {
        Ok((value, session, library)) => {
            say(&Answer::Done(SecretText::of(value)))?;
            // What fails from now on fails after the work.
            let _ = session.logout();
            let _ = session.close();
            let _ = library.finalize();
            Ok(())
        }
        Err(Refusal { fault, pin_refused }) => say(&Answer::Fault {
            why: fault.why,
            may_pass: fault.may_pass,
            pin_refused,
        }),
    }
}

/// In a line of its own: libraries print, too.
fn say(answer: &Answer) -> io::Result<()> {
    let mut said = Zeroizing::new(Vec::with_capacity(MOST as usize));
    said.push(b'\n');
    serde_json::to_writer(&mut *said, answer)?;
    said.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&said)?;
    out.flush()
}

fn answer(asked: &Asked) -> Result<(String, Session, Pkcs11), Refusal> {
    let value = STANDARD.decode(asked.value.text());
    let value = value.map_err(|_| Fault::lasting("the question has no value"))?;
    let value = Zeroizing::new(value);
    let library = load(&asked.module)?;
    let slot = find_token(&library, asked)?;
    let session = log_in(&library, slot, asked)?;
    let key = find_key(&session, asked)?;
    let context = asked.context.as_bytes();
    let done = match asked.operation {
        Operation::Wrap => {
            check_key(&session, key)?;
            wrap(&session, key, context, &value)?.into_bytes()
        }
        Operation::Unwrap => unwrap(&session, key, context, &value)?,
    };
    let done = Zeroizing::new(done);
    Ok((STANDARD.encode(&*done), session, library))
}

fn load(module: &str) -> Result<Pkcs11, Fault> {
    let library = Pkcs11::new(module).map_err(|error| match error {
        Error::LibraryLoading(why) => {
            Fault::lasting(format!("{module} is no library of PKCS#11: {why}"))
        }
        other => fault("C_GetFunctionList", &other),
    })?;
    let arguments = CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK);
    let begun = library.initialize(arguments);
    begun.map_err(|error| fault("C_Initialize", &error))?;
    Ok(library)
}

/// The one token that all of what is said fits.
fn find_token(library: &Pkcs11, asked: &Asked) -> Result<Slot, Fault> {
    let slots = library.get_slots_with_token();
    let slots = slots.map_err(|error| fault("C_GetSlotList", &error))?;
    let is_said = |said: &Option<String>, is: &str| said.as_ref().is_none_or(|said| said == is);
    let (mut found, mut labels) = (Vec::new(), Vec::new());
    for slot in slots {
        // A slot of others may be out of order.
        let Ok(token) = library.get_token_info(slot) else {
            continue;
        };
        if !token.token_initialized() {
            continue;
        }
        let fits = is_said(&asked.token, token.label())
            && is_said(&asked.serial, token.serial_number())
            && asked.slot.is_none_or(|number| number == slot.id());
        match fits {
            true => found.push(slot),
            false => labels.push(format!("{:?}", token.label())),
        }
    }
    match found[..] {
        [slot] => Ok(slot),
        // It may have been pulled out, or its network is away.
        [] if labels.is_empty() => Err(Fault::passing(format!(
            "{} has no token now: {} is not there",
            asked.module,
            named(asked)
        ))),
        [] => {
            labels.truncate(MOST_LABELS);
            Err(Fault::passing(format!(
                "{} has no token with {} now, but others: {}",
                asked.module,
                named(asked),
                labels.join(", ")
            )))
        }
        _ => Err(Fault::lasting(format!(
            "{} tokens of {} have {}: name it by serial or slot as well",
            found.len(),
            asked.module,
            named(asked)
        ))),
    }
}

/// How the token is named.
fn named(asked: &Asked) -> String {
    let words = [
        asked.token.as_ref().map(|token| format!("label {token:?}")),
        asked.serial.as_ref().map(|text| format!("serial {text:?}")),
        asked.slot.map(|number| format!("slot {number}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    words.join(" and ")
}

/// One attempt. None at all where the token has said that it would be the last one.
fn log_in(library: &Pkcs11, slot: Slot, asked: &Asked) -> Result<Session, Refusal> {
    let token = library.get_token_info(slot);
    let token = token.map_err(|error| fault("C_GetTokenInfo", &error))?;
    let session = library.open_ro_session(slot);
    let session = session.map_err(|error| fault("C_OpenSession", &error))?;
    if !token.login_required() {
        return Ok(session);
    }
    may_try(&token)?;
    let pin = AuthPin::from(asked.pin.text().to_owned());
    let code = match session.login(UserType::User, Some(&pin)) {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => return Ok(session),
        Err(Error::Pkcs11(RvError::PinLocked, _)) => return Err(locked(&token).into()),
        Err(error) => match error {
            Error::Pkcs11(code, _) if !is_about_the_device(&code) => code,
            other => return Err(fault("C_Login", &other).into()),
        },
    };
    // Whatever else it says may have been counted as a wrong PIN.
    let why = match code {
        RvError::PinIncorrect => String::new(),
        code => format!(" ({code:?})"),
    };
    Err(Refusal {
        fault: Fault::lasting(format!(
            "the token {:?} refuses the PIN{why}. It was tried once; a token locks itself after a few wrong ones",
            token.label()
        )),
        pin_refused: true,
    })
}

/// Whether an error says that the token, or the way to it, is away.
fn is_about_the_device(code: &RvError) -> bool {
    matches!(
        code,
        RvError::DeviceError
            | RvError::DeviceMemory
            | RvError::DeviceRemoved
            | RvError::HostMemory
            | RvError::SessionClosed
            | RvError::SessionHandleInvalid
            | RvError::TokenNotPresent
    )
}

fn may_try(token: &TokenInfo) -> Result<(), Fault> {
    let label = token.label();
    if !token.user_pin_initialized() {
        return Err(Fault::lasting(format!(
            "the token {label:?} has no user PIN yet: its security officer sets it"
        )));
    }
    if token.user_pin_locked() {
        return Err(locked(token));
    }
    if token.user_pin_final_try() {
        return Err(Fault::lasting(format!(
            "the token {label:?} would be locked by one more wrong PIN, so that none is tried: log in with another tool first (pkcs11-tool --login --test)"
        )));
    }
    Ok(())
}

fn locked(token: &TokenInfo) -> Fault {
    Fault::lasting(format!(
        "the token {:?} is locked after too many wrong PINs: its security officer unlocks it",
        token.label()
    ))
}

fn find_key(session: &Session, asked: &Asked) -> Result<ObjectHandle, Fault> {
    let mut template = vec![
        Attribute::Class(ObjectClass::SECRET_KEY),
        Attribute::KeyType(KeyType::AES),
    ];
    let mut words = Vec::new();
    if let Some(label) = &asked.key {
        template.push(Attribute::Label(label.clone().into_bytes()));
        words.push(format!("label {label:?}"));
    }
    if let Some(text) = &asked.key_id {
        template.push(Attribute::Id(id(text).unwrap_or_default()));
        words.push(format!("id {text}"));
    }
    let words = words.join(" and ");
    let found = session.find_objects(&template);
    let found = found.map_err(|error| fault("C_FindObjects", &error))?;
    match found[..] {
        [key] => Ok(key),
        [] => Err(Fault::lasting(format!(
            "the token has no AES key with {words}"
        ))),
        _ => Err(Fault::lasting(format!(
            "the token has {} AES keys with {words}: name one by key and key_id",
            found.len()
        ))),
    }
}

/// Whether the token keeps the key to itself. Asked before something is wrapped: what a token keeps
/// to itself it keeps for good.
fn check_key(session: &Session, key: ObjectHandle) -> Result<(), Fault> {
    let wanted = [
        AttributeType::Sensitive,
        AttributeType::Extractable,
        AttributeType::ValueLen,
    ];
    let said = session.get_attributes(key, &wanted);
    let said = said.map_err(|error| fault("C_GetAttributeValue", &error))?;
    let stays =
        said.contains(&Attribute::Sensitive(true)) && said.contains(&Attribute::Extractable(false));
    if !stays {
        return Err(Fault::lasting(
            "the token would give its key away: make one that is sensitive and not extractable",
        ));
    }
    let is_short = |attribute: &Attribute| matches!(attribute, Attribute::ValueLen(length) if u64::from(*length) != KEY_LEN);
    match said.iter().any(is_short) {
        true => Err(Fault::lasting("the token's key is no AES key of 256 bits")),
        false => Ok(()),
    }
}

fn wrap(
    session: &Session,
    key: ObjectHandle,
    context: &[u8],
    plain: &[u8],
) -> Result<String, Fault> {
    let mut nonce = [0; NONCE];
    let drawn = SysRng.try_fill_bytes(&mut nonce);
    drawn.map_err(|error| Fault::passing(format!("the kernel gives no random bytes: {error}")))?;
    let mut sealed = nonce.to_vec();
    let params = GcmParams::new(&mut nonce, context, TAG_BITS.into());
    let params = params.map_err(|error| fault("CK_GCM_PARAMS", &error))?;
    let done = session.encrypt(&Mechanism::AesGcm(params), key, plain);
    let done = done.map_err(|error| refused("C_Encrypt", &error))?;
    sealed.extend_from_slice(&done);
    if nonce[..] != sealed[..NONCE] {
        return Err(Fault::lasting(
            "the token has taken a nonce of its own, which is not supported",
        ));
    }
    Ok(format!("{AES_GCM}{}", STANDARD.encode(sealed)))
}

fn unwrap(
    session: &Session,
    key: ObjectHandle,
    context: &[u8],
    wrapped: &[u8],
) -> Result<Vec<u8>, Fault> {
    let text = str::from_utf8(wrapped).ok();
    let text = text.and_then(|text| text.strip_prefix(AES_GCM));
    let sealed = text.and_then(|text| STANDARD.decode(text).ok());
    let parts = sealed.as_deref().and_then(|s| s.split_at_checked(NONCE));
    let Some((nonce, sealed)) = parts else {
        return Err(Fault::lasting(
            "no token has wrapped the root key in the key file, or a later version of this program did",
        ));
    };
    let error = match decrypt(session, key, context, nonce, sealed) {
        Ok(plain) => return Ok(plain),
        Err(error) => error,
    };
    // SoftHSM says no more of a tag that does not fit. Then the key opens what it has just sealed.
    let is_vague = matches!(
        error,
        Error::Pkcs11(RvError::GeneralError | RvError::FunctionFailed, _)
    );
    match is_vague && works(session, key, context) {
        true => Err(not_ours()),
        false => Err(refused("C_Decrypt", &error)),
    }
}

fn decrypt(
    session: &Session,
    key: ObjectHandle,
    context: &[u8],
    nonce: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut nonce = nonce.to_vec();
    let params = GcmParams::new(&mut nonce, context, TAG_BITS.into())?;
    session.decrypt(&Mechanism::AesGcm(params), key, sealed)
}

/// Whether the token and its key are well.
fn works(session: &Session, key: ObjectHandle, context: &[u8]) -> bool {
    let trial = [0; 32];
    let Ok(text) = wrap(session, key, context, &trial) else {
        return false;
    };
    let sealed = STANDARD.decode(&text[AES_GCM.len()..]).unwrap_or_default();
    let (nonce, sealed) = sealed.split_at(NONCE.min(sealed.len()));
    decrypt(session, key, context, nonce, sealed).is_ok_and(|plain| plain == trial)
}

fn not_ours() -> Fault {
    Fault::lasting("the token's key has not wrapped this root key, or the key file was altered")
}

/// What an encryption's or a decryption's error means.
fn refused(function: &str, error: &Error) -> Fault {
    match error {
        Error::Pkcs11(RvError::EncryptedDataInvalid | RvError::EncryptedDataLenRange, _) => {
            not_ours()
        }
        Error::Pkcs11(RvError::MechanismInvalid | RvError::MechanismParamInvalid, _) => {
            Fault::lasting("the token has no AES-GCM (CKM_AES_GCM) with associated data")
        }
        Error::Pkcs11(
            RvError::KeyFunctionNotPermitted | RvError::KeyTypeInconsistent | RvError::KeySizeRange,
            _,
        ) => Fault::lasting("the token's key may not encrypt and decrypt"),
        other => fault(function, other),
    }
}

/// What else went wrong. What is about the token, or a session with it, may pass.
fn fault(function: &str, error: &Error) -> Fault {
    match error {
        Error::Pkcs11(code, _) => {
            Fault::passing(format!("the token answers {function} with {code:?}"))
        }
        other => Fault::lasting(format!("the token's library: {function}: {other}")),
    }
}
