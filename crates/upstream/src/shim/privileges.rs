//! Giving up what a server does not need, before its program runs.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Every capability a kernel may know; it refuses the first that it does not.
const CAPABILITIES: u32 = 64;

/// Drops all capabilities, for good: `execve` gives none back, not to root and
/// not from a setuid program.
pub(super) fn drop() -> Result<(), Errno> {
    for number in 0..CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The end of the list; or no right to shorten it, and then what
            // follows is enough: nothing is held, and nothing can be gained.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    // Kernels before 4.3 have no such set.
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    set_no_new_privs(true)
}
