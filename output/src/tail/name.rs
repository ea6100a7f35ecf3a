//! Names of log files.

/// A file of a container's log, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogName {
    /// The kubelet makes a container anew that it lost sight of before it ran, or whose state the runtime
    /// does not know, also where nothing is to be restarted. Each has a log of its own.
    pub(crate) attempt: u32,
    part: Part,
}

/// A file of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// One that was rotated, at a time that the kubelet put in its name.
    Rotated { suffix: String, packed: bool },
    /// The one that is written, or was written last.
    Current,
}

impl LogName {
    /// The file that this attempt writes to.
    pub(crate) const fn current(attempt: u32) -> Self {
        Self {
            attempt,
            part: Part::Current,
        }
    }

    /// Reads the name of a file; `None` if it is not one of a log.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (attempt, rest) = name.split_once(".log")?;
        let part = match rest.strip_prefix('.') {
            Some(suffix) => rotated(suffix)?,
            None if rest.is_empty() => Part::Current,
            None => return None,
        };
        let attempt = number(attempt)?;
        Some(Self { attempt, part })
    }

    pub(crate) fn file_name(&self) -> String {
        let packed = if self.is_packed() { ".gz" } else { "" };
        self.id() + packed
    }

    /// What it is known by, compressed or not.
    pub(crate) fn id(&self) -> String {
        let attempt = self.attempt;
        match &self.part {
            Part::Current => format!("{attempt}.log"),
            Part::Rotated { suffix, .. } => format!("{attempt}.log.{suffix}"),
        }
    }

    pub(crate) const fn is_rotated(&self) -> bool {
        matches!(self.part, Part::Rotated { .. })
    }

    pub(crate) const fn is_packed(&self) -> bool {
        matches!(self.part, Part::Rotated { packed: true, .. })
    }
}

fn rotated(suffix: &str) -> Option<Part> {
    let (suffix, packed) = match suffix.strip_suffix(".gz") {
        Some(suffix) => (suffix, true),
        None => (suffix, false),
    };
    is_time(suffix).then(|| Part::Rotated {
        suffix: suffix.to_owned(),
        packed,
    })
}

/// A number as the kubelet writes it.
fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// `20060102-150405`.
fn is_time(text: &str) -> bool {
    let digit = |at: usize, byte: u8| {
        if at == 8 {
            byte == b'-'
        } else {
            byte.is_ascii_digit()
        }
    };
    text.len() == 15 && text.bytes().enumerate().all(|(at, byte)| digit(at, byte))
}

/// The files in order, without packed copies of what is still there unpacked.
pub(crate) fn in_order(mut names: Vec<LogName>) -> Vec<LogName> {
    names.sort();
    names.dedup_by(|later, earlier| later.id() == earlier.id());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "0.log",
            "0.log.20261130-190000",
            "0.log.20261130-190000.gz",
            "12.log",
            "12.log.20261130-190000",
        ] {
            assert_eq!(LogName::parse(name).unwrap().file_name(), name);
        }
        for name in [
            "0.log.20261130-190000.tmp",
            "0.log.x",
            "0.log2",
            "00.log",
            "+1.log",
            ".log",
            "4294967296.log",
            "",
            "0.log.20261130-190000.gz.tmp",
        ] {
            assert_eq!(LogName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn files_are_in_the_order_of_their_writing_and_none_is_there_twice() {
        let names = [
            "10.log",
            "2.log",
            "0.log",
            "0.log.20261130-190010.gz",
            "2.log.20261130-180000",
            "0.log.20261130-190000.gz",
            "0.log.20261130-190010",
        ];
        let names = names.map(|name| LogName::parse(name).unwrap());
        let ordered: Vec<_> = in_order(names.into())
            .iter()
            .map(LogName::file_name)
            .collect();
        assert_eq!(
            ordered,
            [
                "0.log.20261130-190000.gz",
                "0.log.20261130-190010",
                "0.log",
                "2.log.20261130-180000",
                "2.log",
                "10.log",
            ]
        );
    }
}
