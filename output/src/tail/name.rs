//! Names of log files.

/// A file of one container's log, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogName {
    /// One that was rotated, at a time that the kubelet put in its name.
    Rotated { suffix: String, packed: bool },
    /// The one that is written.
    Current,
}

impl LogName {
    /// Reads the name of a file; `None` if it is not one of this start of the container.
    pub(crate) fn parse(name: &str, restart: u32) -> Option<Self> {
        let rest = name.strip_prefix(&format!("{restart}.log"))?;
        if rest.is_empty() {
            return Some(Self::Current);
        }
        let suffix = rest.strip_prefix('.')?;
        let (suffix, packed) = match suffix.strip_suffix(".gz") {
            Some(suffix) => (suffix, true),
            None => (suffix, false),
        };
        is_time(suffix).then(|| Self::Rotated {
            suffix: suffix.to_owned(),
            packed,
        })
    }

    pub(crate) fn file_name(&self, restart: u32) -> String {
        match self {
            Self::Current => format!("{restart}.log"),
            Self::Rotated { suffix, packed } => {
                format!("{restart}.log.{suffix}{}", if *packed { ".gz" } else { "" })
            }
        }
    }

    pub(crate) fn suffix(&self) -> Option<&str> {
        match self {
            Self::Current => None,
            Self::Rotated { suffix, .. } => Some(suffix),
        }
    }
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
    names.dedup_by(|later, earlier| later.suffix().is_some() && later.suffix() == earlier.suffix());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotated(suffix: &str, packed: bool) -> LogName {
        LogName::Rotated {
            suffix: suffix.to_owned(),
            packed,
        }
    }

    #[test]
    fn names_are_read_and_written() {
        let names = ["0.log", "0.log.20261130-190000", "0.log.20261130-190000.gz"];
        for name in names {
            assert_eq!(LogName::parse(name, 0).unwrap().file_name(0), name);
            assert_eq!(LogName::parse(name, 1), None);
        }
        for name in [
            "0.log.20261130-190000.tmp",
            "0.log.x",
            "0.log2",
            "1.log",
            "",
            "0.log.20261130-190000.gz.tmp",
        ] {
            assert_eq!(LogName::parse(name, 0), None, "{name}");
        }
    }

    #[test]
    fn the_current_file_is_the_last_and_no_file_is_there_twice() {
        let (a, b) = ("20261130-190000", "20261130-190010");
        let names = vec![
            LogName::Current,
            rotated(b, true),
            rotated(a, true),
            rotated(b, false),
        ];
        assert_eq!(
            in_order(names),
            [rotated(a, true), rotated(b, false), LogName::Current]
        );
    }
}
