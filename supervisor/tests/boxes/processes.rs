//! What `/proc` of the machine shows of the processes in a box.

use std::fs;
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const SUPERVISOR: &str = env!("CARGO_BIN_EXE_boxes-supervisor");

/// Nothing in these tests takes this long unless it is broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(15);

/// Waits until a condition gives something.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(it) = condition() {
            return it;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The PID of the supervisor that was started below a process, once it is one.
pub(crate) fn supervisor_below(ancestor: i32) -> Option<i32> {
    let children = all()
        .into_iter()
        .filter(|pid| parent(*pid) == Some(ancestor));
    let mut found = children.into_iter().find_map(|pid| {
        let own = is_supervisor(pid).then_some(pid);
        own.or_else(|| supervisor_below(pid))
    });
    // Its child looks like it before it becomes the command.
    found.take_if(|pid| parent(*pid).is_some_and(is_supervisor));
    found
}

fn is_supervisor(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    words.next() == Some(SUPERVISOR.as_bytes()) && words.next() == Some(b"run")
}

/// The processes in the PID namespace of a process, itself included; by the machine's PIDs.
pub(crate) fn in_namespace_of(pid: i32) -> Vec<i32> {
    let namespace = namespace(pid);
    assert!(namespace.is_some(), "no namespace of {pid}");
    all()
        .into_iter()
        .filter(|it| self::namespace(*it) == namespace)
        .collect()
}

fn namespace(pid: i32) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("a /proc");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// The fields of `stat` from the state on.
pub(crate) fn stat(pid: i32) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = line.rsplit_once(") ")?.1;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// A child of a process.
pub(crate) fn child_of(ancestor: i32) -> Option<i32> {
    all().into_iter().find(|pid| parent(*pid) == Some(ancestor))
}

pub(crate) fn parent(pid: i32) -> Option<i32> {
    stat(pid)?.get(1)?.parse().ok()
}

pub(crate) fn state(pid: i32) -> Option<String> {
    stat(pid)?.first().cloned()
}
