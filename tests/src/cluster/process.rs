//! The cluster's own programs as processes that outlive their starter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::command::{SYSTEM_PATH, which};
use super::layout::Layout;
use super::wait::{Seen, until};

/// A program to start, with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Component {
    /// The command line, as `/proc` will show it.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let program = self.program.display().to_string();
        std::iter::once(program)
            .chain(self.arguments.iter().cloned())
            .collect()
    }
}

/// What is remembered of a started program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) pid: i32,
    pub(crate) command_line: Vec<String>,
}

impl Record {
    /// Whether this very program still runs: after a restart of the machine, or long after its end,
    /// its number may be another's.
    pub(crate) fn is_running(&self) -> bool {
        let Ok(seen) = fs::read(format!("/proc/{}/cmdline", self.pid)) else {
            return false;
        };
        same_command_line(&seen, &self.command_line)
    }
}

/// Compares the content of a `cmdline` file. A process that has ended and not been waited for has
/// none.
fn same_command_line(seen: &[u8], expected: &[String]) -> bool {
    let text = String::from_utf8_lossy(seen);
    text.trim_end_matches('\0').split('\0').eq(expected)
}

/// Starts a program in a session of its own, its output in its log, and remembers it.
///
/// Returns when `/proc` shows the program itself, and no longer what started it.
pub(crate) async fn start(layout: &Layout, tools: &Path, component: &Component) -> Result<()> {
    let record = spawn(layout, tools, component)?;
    let path = layout.processes().join(component.name);
    fs::write(&path, serde_json::to_string(&record)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    until(component.name, Duration::from_secs(10), async || {
        if record.is_running() || has_ended(record.pid) {
            return Ok(Seen::Ready(()));
        }
        Ok(Seen::NotYet(format!(
            "process {} is another program",
            record.pid
        )))
    })
    .await
}

fn spawn(layout: &Layout, tools: &Path, component: &Component) -> Result<Record> {
    let log = layout.log(component.name);
    let output =
        fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    let errors = output
        .try_clone()
        .context("cannot share the log of a component")?;
    let setsid = which("setsid").context("setsid is not installed (package util-linux)")?;
    let child = Command::new(setsid)
        .arg(&component.program)
        .args(&component.arguments)
        .env_clear()
        .env("PATH", format!("{}:{SYSTEM_PATH}", tools.display()))
        .env("HOME", layout.root())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot start {}", component.program.display()))?;
    let pid = i32::try_from(child.id()).context("a process has a number beyond 31 bits")?;
    Ok(Record {
        pid,
        command_line: component.command_line(),
    })
}

/// Whether a process is gone, or only its parent has not waited for it yet.
fn has_ended(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name is in parentheses and may itself hold some.
    stat.rsplit_once(") ")
        .is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// What was started, by name.
pub(crate) fn records(layout: &Layout) -> Vec<(String, Record)> {
    let mut found: Vec<_> = fs::read_dir(layout.processes())
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let record = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
            Some((entry.file_name().into_string().ok()?, record))
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// An error with the last lines of its log if a started program has ended.
pub(crate) fn check_all(layout: &Layout) -> Result<()> {
    for (name, record) in records(layout) {
        if !record.is_running() {
            let log = layout.log(&name);
            let said = fs::read_to_string(&log).unwrap_or_default();
            bail!(
                "{name} ended by itself; the last lines of {}:\n{}",
                log.display(),
                last_lines(&said, 15)
            );
        }
    }
    Ok(())
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Ends every program of this cluster and waits until it is gone.
///
/// Found by their command lines, so that one whose record was never written, or is lost, ends too.
/// Without a grace period: what these programs would save is deleted next.
pub(crate) async fn kill_all(layout: &Layout) -> Result<()> {
    let ours = Ours::new(layout);
    until(
        "the cluster's programs to end",
        Duration::from_secs(20),
        async || {
            let alive = ours.processes();
            for (pid, _) in &alive {
                kill(*pid);
            }
            Ok(match alive.first() {
                None => Seen::Ready(()),
                Some((pid, program)) => Seen::NotYet(format!("{program} as process {pid}")),
            })
        },
    )
    .await
}

/// Ends one process at once. It is no error if it has already ended.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// What a cluster starts, with the file names of the programs.
const PROGRAMS: [&str; 8] = [
    "boxes-cluster",
    "containerd",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
];

/// How to tell this cluster's programs from all others.
struct Ours {
    /// The state folder, with a slash at its end: each program has a file below it as an argument.
    root: String,
    /// containerd's socket, which each shim has as an argument.
    socket: String,
}

impl Ours {
    fn new(layout: &Layout) -> Self {
        let root = format!("{}/", layout.root().display());
        Self {
            root,
            socket: layout.containerd_socket().display().to_string(),
        }
    }

    /// The numbers and names of those that run.
    fn processes(&self) -> Vec<(i32, String)> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| {
                let seen = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
                Some((pid, self.program(&seen)?))
            })
            .collect()
    }

    /// The name of the program if the command line is one of ours.
    fn program(&self, command_line: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(command_line);
        let mut words = text.split('\0');
        let program = Path::new(words.next()?).file_name()?.to_str()?.to_owned();
        let ours = match program.as_str() {
            "containerd-shim-runc-v2" => words.any(|word| word == self.socket),
            name => PROGRAMS.contains(&name) && words.any(|word| word.contains(&self.root)),
        };
        ours.then_some(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_same_program_is_recognised_and_no_other() {
        let expected = words("/bin/etcd --data-dir /a");
        assert!(same_command_line(b"/bin/etcd\0--data-dir\0/a\0", &expected));
        assert!(!same_command_line(
            b"/bin/etcd\0--data-dir\0/b\0",
            &expected
        ));
        assert!(
            !same_command_line(b"", &expected),
            "an ended process that nobody waited for"
        );
    }

    #[test]
    fn a_number_given_to_another_process_is_not_ours() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(
            !Record {
                pid: own,
                command_line: words("/bin/etcd")
            }
            .is_running()
        );
        let line: Vec<String> = std::env::args().collect();
        assert!(
            Record {
                pid: own,
                command_line: line
            }
            .is_running()
        );
    }

    #[test]
    fn a_process_that_ends_is_seen_to_end() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(pid));
        assert!(!has_ended(i32::try_from(std::process::id()).unwrap()));
    }

    #[test]
    fn only_this_clusters_programs_are_ours() {
        let ours = Ours {
            root: "/s/a/".into(),
            socket: "/run/a.sock".into(),
        };
        for (line, expected) in [
            ("/x/etcd\0--data-dir=/s/a/etcd\0", Some("etcd")),
            ("/x/etcd\0--data-dir=/s/ab/etcd\0", None),
            (
                "/x/boxes-cluster\0registry\0/s/a/registry\0",
                Some("boxes-cluster"),
            ),
            ("/x/boxes-cluster\0up\0", None),
            ("/usr/bin/less\0/s/a/log/etcd.log\0", None),
            (
                "/x/containerd-shim-runc-v2\0-address\0/run/a.sock\0",
                Some("containerd-shim-runc-v2"),
            ),
            ("/x/containerd-shim-runc-v2\0-address\0/run/b.sock\0", None),
            ("", None),
        ] {
            assert_eq!(
                ours.program(line.as_bytes()).as_deref(),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn the_last_lines_of_a_short_log_are_all_of_it() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a\n", 2), "a");
    }
}
