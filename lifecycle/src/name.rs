//! The name of a Box's pod.

use sha2::{Digest, Sha256};

/// Longest name that can serve everywhere a pod's name appears: as its host name, in label values,
/// and in the kubelet's log folder, whose file name also holds the namespace and the UID.
const LONGEST: usize = 63;

/// Characters of the hash that keeps cut names apart: 40 bits.
const HASH: usize = 10;

/// The name of the pod of a Box: its own name, or when that is longer than 63 characters its first
/// 52, a dash, and 10 hexadecimal characters of the SHA-256 of the whole.
#[must_use]
pub fn pod_name(box_name: &str) -> String {
    if box_name.len() <= LONGEST {
        return box_name.to_owned();
    }
    // Object names are ASCII; a cut just after a dot would leave an invalid label before ours.
    let head = box_name[..LONGEST - HASH - 1].trim_end_matches(['.', '-']);
    format!("{head}-{}", hex(box_name.as_bytes(), HASH))
}

/// The first `length` hexadecimal characters of the SHA-256 of some bytes.
pub(crate) fn hex(bytes: &[u8], length: usize) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(length);
    text
}

#[cfg(test)]
mod tests {
    use super::pod_name;

    #[test]
    fn a_name_of_up_to_63_characters_is_kept() {
        assert_eq!(pod_name("hello"), "hello");
        assert_eq!(pod_name(&"a".repeat(63)), "a".repeat(63));
    }

    #[test]
    fn longer_names_are_cut_and_kept_apart() {
        let one = pod_name(&format!("{}x", "a".repeat(63)));
        let other = pod_name(&format!("{}y", "a".repeat(63)));
        assert_ne!(one, other);
        assert_eq!(one.len(), 63);
        assert_eq!(pod_name(&"b".repeat(253)).len(), 63);
    }

    #[test]
    fn a_cut_at_a_dot_gives_a_valid_name() {
        let name = pod_name(&format!("{}.{}", "a".repeat(51), "b".repeat(40)));
        assert!(!name.contains(".-"), "{name}");
    }
}
