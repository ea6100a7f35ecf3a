//! What the boxes run: shell scripts that begin at the gate, and say how much they wrote.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::BUSYBOX;

/// A line with the time of its writing.
const LINE: u64 = 21;
/// The last line of a box that writes blocks.
const SUM: u64 = 22;
/// 20,000 lines of 200 bytes. Longer than what compression looks back on, so that no block helps
/// the next, and in itself compressed about as well as text.
const BLOCK: u64 = 4_000_000;

/// No box runs for longer.
const LONGEST_SECONDS: u32 = 240;

/// Waits without starting a program, reads the clock, and waits for the gate.
const BEGIN: &str = r#"
mkfifo /tmp/never
exec 3<>/tmp/never
rest() { read -t "$1" -u 3 x; }
clock() { read up idle </proc/uptime; now=${up%.*}${up#*.}; }
block() { head -c 1320000 /dev/urandom | hexdump -v -e '66/1 "%02x " "--\n"' >/tmp/block; }
gate() { until [ -e /gate/open ]; do rest 0.1; done; clock; begin=$now; n=0; }
"#;

/// What a box writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// So many lines, each with its time, at a pace.
    Lines { count: u32, pace: Duration },
    /// Blocks at 50 MB/s, or as many as can be, for a time.
    Noisy { time: Duration },
    /// So many blocks as fast as can be.
    Fast { blocks: u32 },
}

/// How many blocks a box wrote, and in which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) blocks: u32,
    pub(super) time: Duration,
}

impl Writer {
    /// A Box of it.
    pub(super) fn manifest(self, name: &str, gate: &Path) -> Value {
        json!({
            "apiVersion": "boxes.run/v1alpha1",
            "kind": "Box",
            "metadata": {"name": name},
            "spec": {
                "image": BUSYBOX,
                "command": ["sh", "-c", format!("{BEGIN}{}", self.script())],
                "activeDeadlineSeconds": LONGEST_SECONDS,
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "gate", "hostPath": {"path": gate, "type": "Directory"}}],
                "volumeMounts": [{"name": "gate", "mountPath": "/gate", "readOnly": true}],
            },
        })
    }

    fn script(self) -> String {
        let sum = r"clock; printf '%10d %10d\n' $n $((now - begin))";
        match self {
            Self::Lines { count, pace } => format!(
                "gate; while [ $n -lt {count} ]; do clock; printf '%20s\\n' $up; n=$((n + 1)); \
                 rest {}; done",
                pace.as_secs_f64()
            ),
            // 4 MB every 80 ms.
            Self::Noisy { time } => format!(
                "block; gate; while [ $((now - begin)) -lt {} ]; do \
                 if [ $((n * 8)) -le $((now - begin)) ]; then cat /tmp/block; n=$((n + 1)); \
                 else rest 0.01; fi; clock; done; {sum}",
                time.as_millis() / 10
            ),
            Self::Fast { blocks } => format!(
                "block; gate; while [ $n -lt {blocks} ]; do cat /tmp/block; n=$((n + 1)); done; \
                 {sum}"
            ),
        }
    }

    /// How many bytes it wrote; `None` when only its last line tells.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Self::Lines { count, .. } => Some(u64::from(count) * LINE),
            Self::Fast { blocks } => Some(u64::from(blocks) * BLOCK + SUM),
            Self::Noisy { .. } => None,
        }
    }
}

impl Sum {
    /// From the last line of a box.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace();
        let blocks = numbers.next()?.parse().ok()?;
        let hundredths: u64 = numbers.next()?.parse().ok()?;
        let time = Duration::from_millis(hundredths * 10);
        (u64::try_from(line.len()) == Ok(SUM)).then_some(Self { blocks, time })
    }

    pub(super) fn bytes(self) -> u64 {
        u64::from(self.blocks) * BLOCK + SUM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_tells_how_much_it_wrote() {
        let sum = Sum::parse("       375       3004\n").unwrap();
        assert_eq!(sum.time, Duration::from_millis(30_040));
        assert_eq!(sum.bytes(), 1_500_000_022);
        assert_eq!(Sum::parse("3 4\n"), None, "a part of a line");
    }
}
