//! A global allocator that counts live bytes while enabled.
//!
//! Counting is off while anything is timed: it would cost the tree that allocates more often more time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

pub(crate) struct Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    if IS_ON.load(Relaxed) {
        LIVE_BYTES.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches two atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps `realloc`'s contract.
        unsafe { System.realloc(at, layout, new_size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What `build` makes, and the bytes that it asked for and did not give back. Nothing from before may be freed
/// inside.
pub(crate) fn live_bytes<T>(build: impl FnOnce() -> T) -> (T, usize) {
    LIVE_BYTES.store(0, Relaxed);
    IS_ON.store(true, Relaxed);
    let made = build();
    IS_ON.store(false, Relaxed);
    (made, LIVE_BYTES.load(Relaxed).max(0) as usize)
}
