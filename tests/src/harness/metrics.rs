//! What the controller counts, as it says it on `/metrics`.

/// One answer of `/metrics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    text: String,
}

impl Metrics {
    pub(super) fn new(text: String) -> Self {
        Self { text }
    }

    /// The sum of all samples of this name that carry these labels; `None` when there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(Sample::parse)
            .filter(|sample| sample.name == name && sample.has(labels))
            .map(|sample| sample.value)
            .reduce(|sum, value| sum + value)
    }

    /// As [`Metrics::sum`], where a sample that does not exist yet counts as nothing.
    #[must_use]
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.sum(name, labels).unwrap_or_default()
    }

    /// The whole answer.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One line of it.
struct Sample<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

impl<'a> Sample<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some(Self {
            name,
            labels,
            value: value.parse().ok()?,
        })
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        let given: Vec<_> = self.labels.trim_end_matches('}').split(',').collect();
        let wanted = |(key, value): &(&str, &str)| {
            let pair = format!("{key}=\"{value}\"");
            given.iter().any(|label| *label == pair)
        };
        labels.iter().all(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP ends Ends.\n# TYPE ends counter\nends_total{state=\"Exited\",reason=\"Exit\"} 3\n\
        ends_total{state=\"Exited\",reason=\"OOM\"} 1\nup 1\n# EOF\n";

    #[test]
    fn samples_are_summed_by_their_labels() {
        let metrics = Metrics::new(TEXT.to_owned());
        assert_eq!(metrics.sum("ends_total", &[("reason", "Exit")]), Some(3.0));
        assert_eq!(metrics.sum("ends_total", &[("state", "Exited")]), Some(4.0));
        assert_eq!(metrics.sum("up", &[]), Some(1.0));
    }

    #[test]
    fn what_is_not_there_is_none() {
        let metrics = Metrics::new(TEXT.to_owned());
        assert_eq!(metrics.sum("ends_total", &[("reason", "Ex")]), None);
        assert_eq!(metrics.sum("ends", &[]), None);
    }
}
