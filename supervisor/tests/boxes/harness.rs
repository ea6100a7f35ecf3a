//! A supervisor that runs a command in namespaces of its own, and what came of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::processes::{DEADLINE, SUPERVISOR, eventually, in_namespace_of, supervisor_below};
use crate::tracing::Traced;

/// What is to be run, and how.
pub(crate) struct Plan {
    before: Vec<String>,
    options: Vec<String>,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    terminal: Option<Terminal>,
    folder: PathBuf,
}

/// The two ends of a pseudo-terminal.
pub(crate) struct Terminal {
    pub ours: File,
    pub theirs: File,
}

/// A box of a shell script.
pub(crate) fn script(text: &str) -> Plan {
    command(&["sh", "-c", text])
}

/// A box of a command.
pub(crate) fn command(words: &[&str]) -> Plan {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("boxes-supervisor-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("report"), "").unwrap();
    Plan {
        before: Vec::new(),
        options: vec![format!("--report={}/report", folder.display())],
        command: owned(words),
        environment: Vec::new(),
        terminal: None,
        folder,
    }
    .grace(5)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Plan {
    /// The supervisor's grace, in seconds.
    pub(crate) fn grace(self, seconds: u32) -> Self {
        self.option(&format!("--grace={seconds}"))
    }

    /// A further option for the supervisor.
    pub(crate) fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// A variable in the supervisor's environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A command that starts the supervisor, whose own comes after it.
    pub(crate) fn through(mut self, words: &[&str]) -> Self {
        self.before.extend(owned(words));
        self
    }

    /// A user without any privilege.
    pub(crate) fn by_nobody(self) -> Self {
        open_to_all(&self.folder);
        self.through(&[
            "setpriv",
            "--reuid=65532",
            "--regid=65532",
            "--clear-groups",
        ])
        .through(&["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"])
    }

    /// The same, and a root file system that nobody can write to but where the report is.
    pub(crate) fn by_nobody_in_a_read_only_root(self) -> Self {
        let folder = self.folder.display();
        let remount =
            format!("mount --bind {folder} {folder} && mount -o remount,bind,ro / && exec \"$@\"");
        self.through(&["sh", "-c", &remount, "sh"]).by_nobody()
    }

    /// A terminal as its standard descriptors and as that of its session.
    pub(crate) fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = Some(terminal);
        self.through(&["setsid", "--ctty"])
    }

    /// A folder for the test's own files, which is removed with the box.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The supervisor as the first process of a PID namespace.
    pub(crate) fn start(self) -> Running {
        let words = self.words();
        let mut running = self.spawn(&words);
        running.traced = running.supervisor.and_then(Traced::seize);
        running
    }

    /// The supervisor in a PID namespace whose first process is a script. That runs it with `"$@"`.
    pub(crate) fn start_below(self, first: &str) -> Running {
        let mut words = owned(&["sh", "-c", first, "sh"]);
        words.extend(self.words());
        self.spawn(&words)
    }

    fn words(&self) -> Vec<String> {
        let own = owned(&[SUPERVISOR, "run"]);
        let (options, end) = (self.options.clone(), owned(&["--"]));
        [self.before.clone(), own, options, end, self.command.clone()].concat()
    }

    fn spawn(mut self, words: &[String]) -> Running {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(words);
        unshare
            .envs(self.environment.drain(..))
            .current_dir(&self.folder);
        unshare
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let terminal = self.terminal.take().map(|it| give(&mut unshare, it));
        let child = unshare.spawn().expect("unshare, of util-linux");
        drop(unshare);
        Running::new(child, terminal, self.folder)
    }
}

/// Makes a terminal the standard descriptors of a command; gives its other end.
fn give(command: &mut Command, terminal: Terminal) -> File {
    let theirs = || Stdio::from(terminal.theirs.try_clone().unwrap());
    command.stdin(theirs()).stdout(theirs()).stderr(theirs());
    terminal.ours
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(folder, 0o777).unwrap();
    set(&folder.join("report"), 0o666).unwrap();
}

/// A box that runs.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    /// The supervisor's PID on the machine; nothing when it was too quick to be seen.
    supervisor: Option<i32>,
    traced: Option<Traced>,
}

/// A box that has ended.
pub(crate) struct Ended {
    /// The exit status of the supervisor.
    pub code: i32,
    /// The last line of the report file.
    pub report: String,
    /// All of it.
    pub file: Vec<u8>,
    /// What came on standard output and was not read before, in lines.
    pub output: Vec<String>,
    /// What came on standard error.
    pub errors: String,
    /// The processes that were there besides the supervisor when it exited; nothing when it was too
    /// quick to be seen.
    pub left: Option<Vec<i32>>,
}

impl Running {
    fn new(mut child: Child, terminal: Option<File>, folder: PathBuf) -> Self {
        let lines = match terminal {
            Some(terminal) => read_lines(terminal),
            None => read_lines(child.stdout.take().unwrap()),
        };
        let errors = child.stderr.take().map(read_all);
        let mut running = Self {
            child,
            folder,
            lines,
            errors,
            supervisor: None,
            traced: None,
        };
        running.supervisor = running.find_supervisor();
        running
    }

    fn find_supervisor(&mut self) -> Option<i32> {
        let below = i32::try_from(self.child.id()).unwrap();
        eventually("a supervisor", || match self.child.try_wait().unwrap() {
            Some(_) => Some(None),
            None => supervisor_below(below).map(Some),
        })
    }

    /// Waits for a line on standard output that begins so; passes over others. Gives what follows.
    pub(crate) fn says(&mut self, start: &str) -> String {
        loop {
            let Some(line) = self.next_line() else {
                panic!("{start:?} was not said: {}", self.complaint());
            };
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    fn next_line(&mut self) -> Option<String> {
        let end = Instant::now() + DEADLINE;
        loop {
            self.traced.as_mut().map(Traced::is_exiting);
            match self.lines.recv_timeout(Duration::from_millis(5)) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => return None,
            }
        }
    }

    /// What may explain that something did not come: namespaces need rights, for one.
    fn complaint(&mut self) -> String {
        self.kill();
        let errors = self.errors.take().map(|it| it.join().unwrap());
        format!("standard error was {:?}", errors.unwrap_or_default())
    }

    /// The supervisor's PID on the machine.
    pub(crate) fn supervisor(&mut self) -> i32 {
        match self.supervisor {
            Some(pid) => pid,
            None => panic!("no supervisor was seen: {}", self.complaint()),
        }
    }

    /// A signal to the supervisor, from outside of its PID namespace.
    pub(crate) fn signal(&mut self, signal: i32) {
        let supervisor = self.supervisor();
        // SAFETY: it takes two numbers.
        assert_eq!(
            unsafe { libc::kill(supervisor, signal) },
            0,
            "no supervisor to signal"
        );
    }

    /// Runs a script in the box that is no part of what the supervisor started, as `kubectl exec`
    /// does. It is a child of this process.
    pub(crate) fn exec(&mut self, script: &str) -> Child {
        let target = self.supervisor().to_string();
        let mut enter = Command::new("nsenter");
        enter.args([
            "--target", &target, "--pid", "--mount", "--", "sh", "-c", script,
        ]);
        enter
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        enter.spawn().expect("nsenter, of util-linux")
    }

    /// The processes of its PID namespace, by the machine's PIDs.
    pub(crate) fn processes(&mut self) -> Vec<i32> {
        in_namespace_of(self.supervisor())
    }

    /// The file for the report, as it is now.
    pub(crate) fn file(&self) -> Vec<u8> {
        fs::read(self.folder.join("report")).unwrap()
    }

    /// The folder that it runs in, which the report is in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) -> Ended {
        let left = self.traced.take().and_then(Traced::others_at_exit);
        let status = eventually("the end", || self.child.try_wait().unwrap());
        let file = self.file();
        let text = String::from_utf8_lossy(&file).into_owned();
        let ended = Ended {
            code: status.code().expect("unshare is not killed"),
            report: text.lines().last().unwrap_or_default().to_owned(),
            file,
            output: self.lines.iter().collect(),
            errors: self
                .errors
                .take()
                .map(|it| it.join().unwrap())
                .unwrap_or_default(),
            left,
        };
        let unshared = !ended.errors.contains("unshare failed");
        assert!(
            unshared,
            "these tests need the right to make namespaces: {}",
            ended.errors
        );
        ended
    }

    fn kill(&mut self) {
        if let Some(pid) = self.supervisor.take() {
            // SAFETY: it takes two numbers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        if let Some(traced) = self.traced.take() {
            traced.release();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ended {
    /// A field of the report, as it is written.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let start = self.report.split_once(&format!("\"{name}\":"))?.1;
        let end = match start.strip_prefix('"') {
            Some(text) => text.find("\",").map_or(start.len() - 1, |at| at + 2),
            None => start.find([',', '}'])?,
        };
        Some(&start[..end])
    }

    /// That the command returned with a code by itself, and that nothing was left at the end.
    pub(crate) fn returned(&self, code: &str) -> &Self {
        self.ended("exitCode", code, "false")
    }

    /// That a signal ended it that was nobody's wish, and that nothing was left at the end.
    pub(crate) fn was_killed(&self, signal: &str) -> &Self {
        self.ended("signal", signal, "false")
    }

    /// That it was stopped, and how it ended then.
    pub(crate) fn was_stopped(&self, how: &str, number: &str) -> &Self {
        self.ended(how, number, "true")
    }

    fn ended(&self, how: &str, number: &str, stopped: &str) -> &Self {
        let other = if how == "signal" {
            "exitCode"
        } else {
            "signal"
        };
        let Self {
            report,
            errors,
            left,
            ..
        } = self;
        assert_eq!(self.field(how), Some(number), "{report} {errors}");
        assert_eq!(self.field(other), None, "{report}");
        assert_eq!(self.field("stopReceived"), Some(stopped), "{report}");
        assert_eq!(self.field("survivors"), None, "{report}");
        let code: i32 = number.parse().unwrap();
        assert_eq!(
            self.code,
            if how == "signal" { code + 128 } else { code },
            "{report}"
        );
        assert!(left.as_ref().is_none_or(Vec::is_empty), "{left:?} are left");
        self
    }

    /// That the supervisor was seen when it exited.
    pub(crate) fn seen(&self) -> &Self {
        assert!(self.left.is_some(), "too quick to be seen");
        self
    }
}

fn read_lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        // A terminal whose other end is closed gives an error.
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let _ = send.send(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    });
    receive
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
