//! How many processes of the container the kernel has killed for want of memory.

use std::ffi::CStr;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};

/// Where a container sees its own cgroup.
const ROOT: &CStr = c"/sys/fs/cgroup";

/// The files that count, below the root: of cgroup v2 and of v1.
const FILES: [&CStr; 2] = [c"memory.events", c"memory/memory.oom_control"];

/// Counts from its creation on.
pub(crate) struct OomKills {
    before: Option<u64>,
}

impl OomKills {
    /// Begins to count.
    pub(crate) fn since_now() -> Self {
        Self {
            before: count(ROOT),
        }
    }

    /// How many there were since; nothing where the kernel does not tell.
    pub(crate) fn until_now(&self) -> Option<u64> {
        Some(count(ROOT)?.saturating_sub(self.before?))
    }
}

/// The counter of the cgroup whose files are below `root`.
fn count(root: &CStr) -> Option<u64> {
    let folder = open(CWD, root)?;
    FILES.iter().find_map(|name| {
        let mut buffer = [0; 4096];
        let length = rustix::io::read(open(&folder, name)?, &mut buffer).ok()?;
        oom_kill(buffer.get(..length)?)
    })
}

fn open(folder: impl rustix::fd::AsFd, path: &CStr) -> Option<OwnedFd> {
    openat(
        folder,
        path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}

/// The value of the line `oom_kill`; other names begin or end like it.
fn oom_kill(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(b"oom_kill "))?;
    str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;

    use rstest::rstest;

    use super::{count, oom_kill};

    #[rstest]
    #[case::v2(
        "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n",
        Some(2)
    )]
    #[case::v2_group_first("oom_group_kill 5\noom_kill 7\n", Some(7))]
    #[case::v1("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", Some(4))]
    #[case::v1_old_kernel("oom_kill_disable 0\nunder_oom 0\n", None)]
    #[case::no_line_end("oom_kill 9", Some(9))]
    #[case::empty("", None)]
    #[case::odd("oom_kill \noom_kill x\n", None)]
    #[case::binary("\u{0}\u{1}oom_kill 3", None)]
    fn files(#[case] text: &str, #[case] expected: Option<u64>) {
        assert_eq!(oom_kill(text.as_bytes()), expected);
    }

    #[rstest]
    #[case::v2("memory.events", "oom_kill 3\n", Some(3))]
    #[case::v1("memory/memory.oom_control", "oom_kill 5\n", Some(5))]
    #[case::neither("memory/other", "oom_kill 5\n", None)]
    fn places(#[case] name: &str, #[case] text: &str, #[case] expected: Option<u64>) {
        let unique = format!(
            "boxes-oom-{}-{}",
            std::process::id(),
            name.replace('/', "-")
        );
        let root = std::env::temp_dir().join(unique);
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let seen = count(&CString::new(root.to_str().unwrap()).unwrap());
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(seen, expected);
    }

    #[test]
    fn no_cgroup_at_all() {
        assert_eq!(count(c"/nowhere"), None);
    }
}
