//! Names that may become part of a path.

use crate::names::{is_namespace, is_subdomain};

/// The Box whose output is asked for. Both names are checked: they lead nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

impl Target {
    /// Takes names that an API server could have accepted, and no others.
    #[must_use]
    pub(crate) fn new(namespace: &str, name: &str) -> Option<Self> {
        let good = is_namespace(namespace) && is_subdomain(name);
        good.then(|| Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("a", true)]
    #[case("a.b-c.9", true)]
    #[case("", false)]
    #[case(".", false)]
    #[case("..", false)]
    #[case("a..b", false)]
    #[case("-a", false)]
    #[case("a-", false)]
    #[case("A", false)]
    #[case("a/b", false)]
    #[case("a\\b", false)]
    #[case("a\0", false)]
    #[case("a%2fb", false)]
    #[case("ä", false)]
    fn only_names_of_objects_are_taken(#[case] name: &str, #[case] good: bool) {
        assert_eq!(Target::new("ns", name).is_some(), good, "{name:?}");
    }

    #[test]
    fn lengths_are_those_of_kubernetes() {
        assert!(Target::new(&"n".repeat(63), &"b".repeat(253)).is_some());
        assert!(Target::new(&"n".repeat(64), "b").is_none());
        assert!(Target::new("n", &"b".repeat(254)).is_none());
        assert!(Target::new("a.b", "b").is_none());
    }
}
