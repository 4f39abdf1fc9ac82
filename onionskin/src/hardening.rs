//! The process's memory is nobody else's: keys and plaintext are in it.

use rustix::process::{Resource, Rlimit, setrlimit};

/// No core dumps, here and in programs that are started, and no debugger of the same user's. What
/// fails is told on standard error, and does not stop the program: some containers allow neither.
///
/// Files in `/proc/PID` belong to root from now on. Those that everybody can read (`stat`,
/// `status`, `statm`, `cmdline`) stay readable.
pub fn keep_memory_private() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        eprintln!("onionskin: core dumps cannot be turned off: {error}");
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            eprintln!("onionskin: other processes of the user's may look into this one: {error}");
        }
    }
}
