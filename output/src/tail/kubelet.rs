//! A container runtime and a kubelet for tests: they write, rotate, compress and remove logs.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

pub(crate) struct Kubelet {
    base: tempfile::TempDir,
    log: Option<File>,
    /// How often it has made the container.
    pub(crate) attempt: u32,
    /// What the command wrote.
    pub(crate) written: Vec<u8>,
    /// A line that is not finished, which the runtime has not logged.
    half: String,
    pub(crate) time: Timestamp,
    pub(crate) rotations: u32,
    /// How many rotated files it keeps when it rotates another one.
    pub(crate) kept: usize,
}

impl Kubelet {
    pub(crate) fn start() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("pod/box")).unwrap();
        let mut kubelet = Self {
            base,
            log: None,
            attempt: 0,
            written: Vec::new(),
            half: String::new(),
            time: "2026-11-30T19:00:00Z".parse().unwrap(),
            rotations: 0,
            kept: 3,
        };
        kubelet.open();
        kubelet
    }

    pub(crate) fn root(&self) -> &Path {
        self.base.path()
    }

    fn folder(&self) -> PathBuf {
        self.base.path().join("pod/box")
    }

    fn current(&self) -> PathBuf {
        self.folder().join(format!("{}.log", self.attempt))
    }

    fn open(&mut self) {
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.current());
        self.log = Some(log.unwrap());
    }

    /// The command writes. The runtime logs whole lines.
    pub(crate) fn write(&mut self, text: &str) {
        self.written.extend_from_slice(text.as_bytes());
        let text = std::mem::take(&mut self.half) + text;
        for line in text.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(line) => self.line("F", line),
                None => line.clone_into(&mut self.half),
            }
        }
    }

    fn line(&mut self, tag: &str, content: &str) {
        self.time += SignedDuration::from_nanos(1);
        let line = format!("{:.9} stdout {tag} {content}\n", self.time);
        self.raw(line.as_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.log.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// It lost sight of the container and makes it anew.
    pub(crate) fn attempt_again(&mut self) {
        self.close();
        self.attempt += 1;
        self.open();
    }

    /// The container ends: the runtime logs the half of a line that is left, and closes the log.
    pub(crate) fn close(&mut self) {
        self.flush();
        self.log = None;
    }

    /// The runtime logs the half of a line when it closes a log.
    fn flush(&mut self) {
        if !self.half.is_empty() {
            let half = std::mem::take(&mut self.half);
            self.line("P", &half);
        }
    }

    /// Rotates the log, unless it is empty: the kubelet looks at the size.
    pub(crate) fn rotate(&mut self) {
        if fs::metadata(self.current()).unwrap().len() == 0 {
            return;
        }
        let mut rotated = self.rotated();
        while rotated.len() > self.kept {
            fs::remove_file(rotated.remove(0)).unwrap();
        }
        for path in rotated
            .iter()
            .filter(|path| path.extension().is_none_or(|end| end != "gz"))
        {
            pack(path);
        }
        self.flush();
        self.rename();
    }

    /// Renames the log and opens a new one. Gives the old one, which the runtime still writes to.
    pub(crate) fn rename(&mut self) -> File {
        let suffix = format!("20261130-{:06}", 190_000 + self.rotations);
        self.rotations += 1;
        fs::rename(
            self.current(),
            self.folder().join(format!("{}.log.{suffix}", self.attempt)),
        )
        .unwrap();
        let old = self.log.take().unwrap();
        self.open();
        old
    }

    fn rotated(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let begin = format!("{}.log.", self.attempt);
        let is_rotated = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&begin))
        };
        let mut files: Vec<_> = files.filter(is_rotated).collect();
        files.sort();
        files
    }

    /// The pod is deleted.
    pub(crate) fn remove_all(&self) {
        fs::remove_dir_all(self.base.path().join("pod")).unwrap();
    }

    pub(crate) fn remove_current(&self) {
        fs::remove_file(self.current()).unwrap();
    }

    pub(crate) fn truncate(&self) {
        self.log.as_ref().unwrap().set_len(0).unwrap();
    }

    /// The node crashes: the last bytes of the log were not on its disk.
    pub(crate) fn lose(&self, bytes: u64) {
        let log = self.log.as_ref().unwrap();
        let length = log.metadata().unwrap().len();
        log.set_len(length - bytes).unwrap();
    }

    /// Puts something else in the place of the oldest rotated file.
    pub(crate) fn spoil_oldest(&self, spoil: impl FnOnce(&Path)) {
        let oldest = self.rotated().remove(0);
        fs::remove_file(&oldest).unwrap();
        spoil(&oldest);
    }

    pub(crate) fn replace_by_link(&self, target: &str) {
        fs::remove_file(self.current()).unwrap();
        std::os::unix::fs::symlink(target, self.current()).unwrap();
    }
}

/// As the kubelet does it: under another name, renamed, then the original is removed.
fn pack(path: &Path) {
    let name = path.to_str().unwrap();
    let packing = format!("{name}.tmp");
    let file = File::create(&packing).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(&fs::read(path).unwrap()).unwrap();
    encoder.finish().unwrap();
    fs::rename(&packing, format!("{name}.gz")).unwrap();
    fs::remove_file(path).unwrap();
}
