//! Who wraps the root key of a key file, if not the file itself.
//!
//! Each is an [`onionskin_keys::KeyProvider`] that is asked for one thing: to wrap or to unwrap the
//! root key, when a program starts, reads its keys anew or changes the file. What is wrapped stands
//! in the key file; how a provider is reached is told to it when it is made, and by nobody else.
//!
//! | file | holds |
//! |---|---|
//! | `exec` | a program that is told by JSON on its standard input |
//! | `vault` | the transit engine of Vault and OpenBao, over HTTPS |
//! | `kms` | AWS KMS, over HTTPS |
//! | `http` | a server that is asked over verified TLS |
//! | `pkcs11` | a token that speaks PKCS#11, by a child process |
//! | `owners` | who may change the code that is run |
//! | `fault`, `shown`, `secret_text` | why there is no answer, what is shown and what is wiped of one |
//! | `talk` | a child process: its input, its output, and how long it may take |
//!
//! No error of this crate has a key in it, or what a login is done with.

mod exec;
mod fault;
mod http;
mod kms;
mod owners;
mod pkcs11;
mod secret_text;
mod shown;
mod talk;
mod vault;

pub use exec::ExecProvider;
pub use kms::{KmsProvider, KmsSettings};
pub use pkcs11::{Pkcs11Provider, Pkcs11Settings, answer_one_question};
pub use vault::{Secret, VaultLogin, VaultProvider, VaultSettings};
