//! The log files of a pod on a played node. The test plays the container runtime, which writes them,
//! and the kubelet, which rotates, compresses and removes them.
//!
//! Guarantee: what the command wrote, in the order of the log, is kept beside the files.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// A longer line is written in parts.
const LONGEST: usize = 16 << 10;

/// The kubelet keeps five files: these, one that it rotates, and the current one.
const KEPT: usize = 3;

/// What a command wrote, by stream and in the order in which it was logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Both.
    pub both: Vec<u8>,
}

impl Written {
    /// Adds what comes next.
    pub fn add(&mut self, is_stderr: bool, bytes: &[u8], ends_line: bool) {
        let stream = if is_stderr {
            &mut self.stderr
        } else {
            &mut self.stdout
        };
        for out in [stream, &mut self.both] {
            out.extend_from_slice(bytes);
            out.extend(ends_line.then_some(b'\n'));
        }
    }
}

/// The log of a pod's command.
pub struct PlayedLog {
    /// The pod's folder, and below it the container's.
    of_pod: PathBuf,
    folder: PathBuf,
    /// What the runtime writes to, whatever its name is by now, until it closes it.
    file: Option<File>,
    written: Written,
    time: Timestamp,
    /// How often the container was made before.
    attempt: u32,
    rotated: Vec<Rotated>,
}

/// A file that was rotated.
struct Rotated {
    suffix: String,
    packed: bool,
}

impl Rotated {
    fn name(&self, attempt: u32) -> String {
        let packed = if self.packed { ".gz" } else { "" };
        format!("{attempt}.log.{}{packed}", self.suffix)
    }
}

impl PlayedLog {
    /// Makes the log of a pod's command, in a node's folder of logs.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(logs: &Path, pod: &Pod) -> Result<Self> {
        let (namespace, uid) = (pod.namespace(), pod.uid());
        let (namespace, uid) = namespace.zip(uid).context("a pod that is in no cluster")?;
        let of_pod = logs.join(format!("{namespace}_{}_{uid}", pod.name_any()));
        let folder = of_pod.join(boxes_crds::CONTAINER);
        fs::create_dir_all(&folder)?;
        Ok(Self {
            file: Some(create(&folder, 0)?),
            of_pod,
            folder,
            written: Written::default(),
            time: Timestamp::now(),
            attempt: 0,
            rotated: Vec::new(),
        })
    }

    /// The folder that the files are in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the command wrote so far.
    #[must_use]
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// The command writes to standard output.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn out(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.write(false, bytes.as_ref())
    }

    /// The command writes to standard error.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn err(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.write(true, bytes.as_ref())
    }

    fn write(&mut self, is_stderr: bool, bytes: &[u8]) -> Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.strip_suffix(b"\n");
            let mut rest = whole.unwrap_or(line);
            while rest.len() > LONGEST {
                self.part(is_stderr, &rest[..LONGEST], false)?;
                rest = &rest[LONGEST..];
            }
            self.part(is_stderr, rest, whole.is_some())?;
        }
        Ok(())
    }

    fn part(&mut self, is_stderr: bool, content: &[u8], ends_line: bool) -> Result<()> {
        let mut line = self.head(is_stderr, ends_line);
        line.extend_from_slice(content);
        line.push(b'\n');
        self.written.add(is_stderr, content, ends_line);
        self.raw(&line)
    }

    fn head(&mut self, is_stderr: bool, ends_line: bool) -> Vec<u8> {
        let next = self.time + SignedDuration::from_nanos(1);
        self.time = next.max(Timestamp::now());
        let stream = if is_stderr { "stderr" } else { "stdout" };
        let tag = if ends_line { "F" } else { "P" };
        format!("{:.9} {stream} {tag} ", self.time).into_bytes()
    }

    /// The node stops in the middle of a line: its end is not in the log.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn tear(&mut self, content: &str) -> Result<()> {
        let mut line = self.head(false, true);
        line.extend_from_slice(content.as_bytes());
        self.written.add(false, content.as_bytes(), false);
        self.raw(&line)
    }

    /// Writes bytes to the log as they are.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        let file = self.file.as_mut().context("the log is closed")?;
        file.write_all(bytes).context("cannot write the log")
    }

    /// The runtime has logged all that there will ever be, or is gone.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// The kubelet rotates the log.
    ///
    /// # Errors
    /// When the files cannot be changed.
    pub fn rotate(&mut self) -> Result<()> {
        self.begin_rotation()?;
        self.finish_rotation()
    }

    /// The kubelet removes what is too old, compresses what it rotated before and renames the current
    /// file. The runtime goes on writing to that.
    ///
    /// # Errors
    /// When the files cannot be changed.
    pub fn begin_rotation(&mut self) -> Result<()> {
        while self.rotated.len() > KEPT {
            fs::remove_file(self.folder.join(self.rotated.remove(0).name(self.attempt)))?;
        }
        for file in self.rotated.iter_mut().filter(|file| !file.packed) {
            pack(&self.folder.join(file.name(self.attempt)))?;
            file.packed = true;
        }
        let last = self.rotated.last().map(|file| file.suffix.as_str());
        let file = Rotated {
            suffix: suffix(last),
            packed: false,
        };
        fs::rename(
            self.folder.join(format!("{}.log", self.attempt)),
            self.folder.join(file.name(self.attempt)),
        )?;
        self.rotated.push(file);
        Ok(())
    }

    /// The kubelet has the runtime open a new file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn finish_rotation(&mut self) -> Result<()> {
        self.file = Some(create(&self.folder, self.attempt)?);
        Ok(())
    }

    /// The kubelet lost sight of the container and makes it again.
    ///
    /// # Errors
    /// When the next file cannot be made.
    pub fn attempt_again(&mut self) -> Result<()> {
        self.attempt += 1;
        self.rotated.clear();
        self.finish_rotation()
    }

    /// The kubelet removes the log of the pod. The runtime may go on writing to the file.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.of_pod).context("cannot remove the log")
    }
}

fn create(folder: &Path, attempt: u32) -> Result<File> {
    let mut options = OpenOptions::new();
    let path = folder.join(format!("{attempt}.log"));
    let file = options.append(true).create(true).open(path);
    file.context("cannot make a log file")
}

/// The time, and a later one than that of the last rotation.
fn suffix(last: Option<&str>) -> String {
    let mut time = Timestamp::now();
    loop {
        let suffix = time.strftime("%Y%m%d-%H%M%S").to_string();
        if last.is_none_or(|last| last < suffix.as_str()) {
            return suffix;
        }
        time += SignedDuration::from_secs(1);
    }
}

/// Under another name first, so that nobody finds a half.
fn pack(path: &Path) -> Result<()> {
    let (packing, packed) = (with(path, ".tmp"), with(path, ".gz"));
    let mut encoder = GzEncoder::new(File::create(&packing)?, Compression::default());
    encoder.write_all(&fs::read(path)?)?;
    encoder.finish()?;
    fs::rename(&packing, &packed)?;
    fs::remove_file(path)?;
    Ok(())
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
