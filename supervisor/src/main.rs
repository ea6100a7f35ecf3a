//! The program. All of it is in the library.
//!
//! It starts at C's `main`: what Rust's own would set up (ignored SIGPIPE, opened standard
//! descriptors, a stack for signal handlers) is what a command must not inherit, and a tenth of the
//! size of the file.

#![no_main]

use std::ffi::{c_char, c_int};

use boxes_supervisor::Strings;

/// Where the C runtime starts the program.
///
/// # Safety
/// The C runtime alone may call it, with what the kernel gave it.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "C's main takes pointers, by an exported name")]
pub unsafe extern "C" fn main(
    _count: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: the kernel ends both with a null pointer, and they live as long as the process.
    let (arguments, environment) = unsafe { (Strings::new(arguments), Strings::new(environment)) };
    boxes_supervisor::main(arguments, environment).into()
}
