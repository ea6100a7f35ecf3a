//! What a hostile workload does that no shell can: this very test program, run inside of a box.

use std::env;

/// The variable that makes the test below misbehave.
const HOW: &str = "BOXES_TEST_MISBEHAVE";

/// The command, for a shell, that misbehaves in one of the ways below. It fails if that succeeded.
pub(crate) fn misbehaving(how: &str) -> String {
    let own = env::current_exe().unwrap();
    let test = "misbehaviour::when_asked";
    format!(
        "{HOW}={how} {} --quiet --nocapture --exact {test}",
        own.display()
    )
}

/// Does nothing unless it is run by [`misbehaving`].
#[test]
fn when_asked() {
    match env::var(HOW).as_deref() {
        Err(_) => {}
        Ok("queue-as-outsider") => queue_as_outsider(),
        Ok("ptrace") => assert_eq!(seize_first(), Err(libc::EPERM)),
        Ok("read-memory") => assert_eq!(read_first(), Err(libc::EPERM)),
        Ok("take-descriptor") => assert_eq!(take_descriptor_of_first(), Err(libc::EPERM)),
        Ok("thread") => leave_a_thread(),
        Ok(other) => panic!("{other} is not known"),
    }
}

/// Sends TERM to the first process with a sender of 0.
fn queue_as_outsider() {
    // SAFETY: a zeroed siginfo is a valid one, and its first fields are three numbers.
    let result = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        info.si_signo = libc::SIGTERM;
        info.si_code = libc::SI_QUEUE;
        libc::syscall(libc::SYS_rt_sigqueueinfo, 1, libc::SIGTERM, &raw const info)
    };
    assert_eq!(result, 0);
}

fn seize_first() -> Result<(), i32> {
    // SAFETY: no argument is an address.
    answer(unsafe { libc::ptrace(libc::PTRACE_SEIZE, 1, 0usize, 0usize) })
}

fn read_first() -> Result<(), i32> {
    let mut byte = 0u8;
    let here = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let there = libc::iovec {
        iov_base: 0x1000 as *mut _,
        iov_len: 1,
    };
    // SAFETY: room for a byte here; where it comes from is the kernel's to check.
    answer(unsafe { libc::process_vm_readv(1, &raw const here, 1, &raw const there, 1, 0) as i64 })
}

fn take_descriptor_of_first() -> Result<(), i32> {
    // SAFETY: both calls take numbers.
    answer(unsafe {
        let first = libc::syscall(libc::SYS_pidfd_open, 1, 0);
        assert!(first >= 0);
        libc::syscall(libc::SYS_pidfd_getfd, first, 2, 0)
    })
}

fn answer(result: i64) -> Result<(), i32> {
    let error = std::io::Error::last_os_error().raw_os_error();
    if result < 0 {
        Err(error.unwrap())
    } else {
        Ok(())
    }
}

/// Leaves a process behind whose first thread ends while another goes on: it looks like a zombie.
fn leave_a_thread() {
    // SAFETY: the child uses nothing that a thread of its parent could hold.
    if unsafe { libc::fork() } != 0 {
        return;
    }
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    // SAFETY: it ends the calling thread alone.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}
