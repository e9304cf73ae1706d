//! Returns freed memory to the system. The allocator of glibc keeps freed
//! memory for later: after a burst that is most of the process.

/// The free memory that the process may keep.
const SLACK: usize = 8 << 20;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    /// Larger blocks are mapped by themselves and go back when they are freed.
    /// Without this the allocator raises the limit to the largest block it has
    /// seen, and answers of megabytes end up between small ones.
    const MAPPED: libc::c_int = 512 << 10;

    /// The free memory that may stay at the end of a heap: shrinking and
    /// growing it costs a system call each.
    const SPARE: libc::c_int = 4 << 20;

    #[expect(unsafe_code, reason = "mallopt sets numbers of the allocator")]
    pub(super) fn configure() {
        // One heap for each core: by default there are eight, each with free
        // memory of its own.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let heaps = libc::c_int::try_from(cores.clamp(2, 64)).unwrap_or(2);
        // If a setting is refused, the default stays.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
            libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE);
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }

    /// Bytes in blocks that are in use.
    #[expect(unsafe_code, reason = "mallinfo2 only reads")]
    pub(super) fn in_use() -> usize {
        let info = unsafe { libc::mallinfo2() };
        info.uordblks.saturating_add(info.hblkhd)
    }

    #[expect(unsafe_code, reason = "malloc_trim gives back free pages only")]
    pub(super) fn trim() {
        unsafe { libc::malloc_trim(0) };
    }

    /// The resident memory of the process, without mapped files.
    pub(super) fn resident() -> Option<usize> {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        let mut pages = text.split_ascii_whitespace().skip(1);
        let resident: usize = pages.next()?.parse().ok()?;
        let shared: usize = pages.next()?.parse().ok()?;
        Some((resident - shared.min(resident)) * 4096)
    }
}

/// Configures the allocator; call this before threads are started.
pub fn keep_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::configure();
}

/// Returns free memory to the system if there is much; whether it did.
pub fn release_freed() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if let Some(resident) = glibc::resident() {
        let free = resident.saturating_sub(glibc::in_use());
        if free > SLACK && free > resident / 4 {
            glibc::trim();
            return true;
        }
    }
    false
}
