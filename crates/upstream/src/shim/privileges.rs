//! The drop of privileges that a server does not need, before its program runs.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Above every known capability; the kernel refuses the first unknown one.
const CAPABILITIES: u32 = 64;

/// Drops all capabilities permanently: `execve` restores none, neither for root
/// nor from a setuid program.
pub(super) fn drop() -> Result<(), Errno> {
    for number in 0..CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The end of the list; or no right to drop from the bounding set, and
            // then the rest is enough: none is held, and none can be gained.
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
