//! Reserved: what is protected and what it leaks. No code yet.
