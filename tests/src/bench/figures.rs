//! Figures, and what they are to be.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a figure is to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Goal {
    /// So much or less.
    AtMost(f64),
    /// So much or more.
    AtLeast(f64),
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) goal: Option<Goal>,
}

impl Goal {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
        }
    }
}

impl Figure {
    pub(super) fn misses(&self) -> bool {
        self.goal.is_some_and(|goal| !goal.is_met(self.value))
    }
}

/// A number with as many digits as say something.
pub(super) fn shown(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_bound() {
        assert!(Goal::AtMost(5.0).is_met(5.0) && !Goal::AtMost(5.0).is_met(5.1));
        assert!(Goal::AtLeast(45.0).is_met(45.0) && !Goal::AtLeast(45.0).is_met(44.0));
        assert!(!Goal::AtMost(5.0).is_met(f64::NAN), "nothing was measured");
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 1.234, 12.34, 123.4].map(shown);
        assert_eq!(all, ["0", "1.23", "12.3", "123"]);
    }
}
