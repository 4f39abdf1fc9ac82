//! What every service that speaks as AWS does wants to know: who asks, by which profile, and under
//! which signature.
//!
//! | module | what it is |
//! |---|---|
//! | [`credentials`] | who asks: environment, profile, container, instance |
//! | [`profile`] | the shared profile files |
//! | [`sign`] | Signature Version 4 of one request, in its headers |
//! | [`here`] | this machine: its time, its own addresses, the authorities that it trusts |
//! | [`fault`] | what can go wrong, and the way out |
//!
//! All I/O blocks. Nothing here knows what is asked for.

pub mod credentials;
pub mod fault;
pub mod here;
pub mod profile;
pub mod sign;

pub use credentials::{AccessKey, Source};
pub use fault::Fault;
pub use here::{is_here, now, system_authorities};
pub use profile::{Profile, variable};
