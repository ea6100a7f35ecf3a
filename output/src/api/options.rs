//! The query of a log request, read as `pods/log` reads it.
//!
//! Of a parameter given more than once the first counts, unknown ones are ignored, and every
//! boolean but `false` and `0` is true. What is wrong is answered with 400 and the parameter's
//! name. (`pods/log` answers 422 where a number is out of range.)

use jiff::{SignedDuration, Timestamp};
use url::form_urlencoded;

use super::failure::Failure;
use crate::archive::{Start, Stream};

/// How missing output is shown in the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// Not at all: the body is byte for byte what was saved.
    #[default]
    Aside,
    /// As a line of text where it is missing.
    Inline,
    /// Alone, one JSON object a line, without any output.
    Only,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) follow: bool,
    pub(crate) stream: Option<Stream>,
    pub(crate) tail_lines: Option<u64>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) timestamps: bool,
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) from: Option<u64>,
    pub(crate) skip_bytes: u64,
    pub(crate) uid: Option<String>,
    pub(crate) gaps: Gaps,
}

impl Options {
    /// Reads a query.
    pub(crate) fn parse(query: &str, now: Timestamp) -> Result<Self, Failure> {
        let query = Query(query);
        query.refuse_foreign()?;
        let options = Self {
            follow: query.flag("follow"),
            stream: query.stream()?,
            tail_lines: query.number("tailLines", 0)?,
            since: query.since(now)?,
            timestamps: query.flag("timestamps"),
            limit_bytes: query.number("limitBytes", 1)?,
            from: query.number("from", 0)?,
            skip_bytes: query.number("skipBytes", 0)?.unwrap_or(0),
            uid: query.get("uid"),
            gaps: query.gaps()?,
        };
        if options.from.is_some() && (options.tail_lines.is_some() || options.since.is_some()) {
            let problem = "may not be combined with tailLines, sinceTime or sinceSeconds";
            return Err(Failure::parameter("from", problem));
        }
        Ok(options)
    }

    /// Where in the archive to begin.
    pub(crate) fn start(&self) -> Start {
        let stream = self.stream;
        match (self.from, self.tail_lines, self.since) {
            (Some(number), _, _) => Start::Entry(number),
            (None, Some(lines), _) => Start::TailLines { lines, stream },
            (None, None, Some(time)) => Start::Time(time),
            (None, None, None) => Start::Beginning,
        }
    }
}

/// The parameters of a query.
struct Query<'a>(&'a str);

impl Query<'_> {
    fn get(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.0.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    fn flag(&self, name: &str) -> bool {
        let no = |value: &String| value == "0" || value.eq_ignore_ascii_case("false");
        self.get(name).is_some_and(|value| !no(&value))
    }

    fn number(&self, name: &str, least: u64) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number: i64 = text
            .parse()
            .map_err(|_| Failure::parameter(name, &format!("{text:?} is not a whole number")))?;
        match u64::try_from(number) {
            Ok(number) if number >= least => Ok(Some(number)),
            _ => Err(Failure::parameter(
                name,
                &format!("must be at least {least}"),
            )),
        }
    }

    fn stream(&self) -> Result<Option<Stream>, Failure> {
        let value = self.get("stream").map(|value| value.to_ascii_lowercase());
        match value.as_deref() {
            None | Some("all") => Ok(None),
            Some("stdout") => Ok(Some(Stream::Stdout)),
            Some("stderr") => Ok(Some(Stream::Stderr)),
            Some(_) => Err(Failure::parameter(
                "stream",
                "must be stdout, stderr or all",
            )),
        }
    }

    fn gaps(&self) -> Result<Gaps, Failure> {
        match self.get("gaps").as_deref() {
            None => Ok(Gaps::Aside),
            Some("inline") => Ok(Gaps::Inline),
            Some("only") => Ok(Gaps::Only),
            Some(_) => Err(Failure::parameter("gaps", "must be inline or only")),
        }
    }

    fn since(&self, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
        let seconds = self.number("sinceSeconds", 1)?;
        let time = self.since_time()?;
        match (seconds, time) {
            (Some(_), Some(_)) => {
                let problem = "at most one of sinceTime and sinceSeconds may be given";
                Err(Failure::parameter("sinceTime", problem))
            }
            (Some(seconds), None) => Ok(ago(now, seconds)),
            (None, time) => Ok(time),
        }
    }

    fn since_time(&self) -> Result<Option<Timestamp>, Failure> {
        match self.get("sinceTime").as_deref() {
            None | Some("" | "null") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                let problem = format!("{text:?} is not a time such as 2026-01-31T12:00:00Z");
                Failure::parameter("sinceTime", &problem)
            }),
        }
    }

    /// What a Box does not have is refused, so that nobody takes one thing for another.
    fn refuse_foreign(&self) -> Result<(), Failure> {
        if self.flag("previous") {
            return Err(Failure::parameter("previous", "a Box has one run"));
        }
        match self.get("container").as_deref() {
            None | Some("" | boxes_crds::CONTAINER) => Ok(()),
            Some(_) => Err(Failure::parameter(
                "container",
                "only the output of the container \"box\" is saved",
            )),
        }
    }
}

/// So many seconds ago; `None` before all time.
fn ago(now: Timestamp, seconds: u64) -> Option<Timestamp> {
    let seconds = i64::try_from(seconds).ok()?;
    now.checked_sub(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    fn parse(query: &str) -> Options {
        Options::parse(query, now()).unwrap()
    }

    #[test]
    fn nothing_asks_for_everything() {
        assert_eq!(parse(""), Options::default());
        assert_eq!(parse("").start(), Start::Beginning);
        assert_eq!(parse("pretty=true&timeout=3s&unknown"), Options::default());
    }

    #[rstest::rstest]
    #[case("follow=true", true)]
    #[case("follow=1", true)]
    #[case("follow", true)]
    #[case("follow=", true)]
    #[case("follow=false", false)]
    #[case("follow=FALSE", false)]
    #[case("follow=0", false)]
    #[case("follow=false&follow=true", false)]
    #[case("timestamps=true", false)]
    fn booleans_are_those_of_the_api_server(#[case] query: &str, #[case] follow: bool) {
        assert_eq!(parse(query).follow, follow);
    }

    #[rstest::rstest]
    #[case("from=7", Start::Entry(7))]
    #[case("tailLines=3", Start::TailLines { lines: 3, stream: None })]
    #[case("tailLines=0&stream=Stderr", Start::TailLines { lines: 0, stream: Some(Stream::Stderr) })]
    #[case("stream=stdout", Start::Beginning)]
    #[case("sinceSeconds=60", Start::Time("2026-01-01T00:00:00Z".parse().unwrap()))]
    #[case("sinceSeconds=9223372036854775807", Start::Beginning)]
    #[case("sinceTime=2026-01-01T01:00:00%2B01:00", Start::Time("2026-01-01T00:00:00Z".parse().unwrap()))]
    #[case("sinceTime=", Start::Beginning)]
    fn starts(#[case] query: &str, #[case] start: Start) {
        assert_eq!(parse(query).start(), start);
    }

    #[rstest::rstest]
    #[case("tailLines=-1", "tailLines")]
    #[case("tailLines=x", "tailLines")]
    #[case("tailLines=", "tailLines")]
    #[case("tailLines=9223372036854775808", "tailLines")]
    #[case("limitBytes=0", "limitBytes")]
    #[case("limitBytes=1.5", "limitBytes")]
    #[case("sinceSeconds=0", "sinceSeconds")]
    #[case("sinceTime=yesterday", "sinceTime")]
    #[case("sinceTime=2026-01-01T00:00:00Z&sinceSeconds=1", "sinceTime")]
    #[case("stream=both", "stream")]
    #[case("from=-1", "from")]
    #[case("from=1&tailLines=1", "from")]
    #[case("skipBytes=-1", "skipBytes")]
    #[case("gaps=yes", "gaps")]
    #[case("previous=true", "previous")]
    #[case("container=sidecar", "container")]
    fn what_is_wrong_is_named(#[case] query: &str, #[case] name: &str) {
        let problem = Options::parse(query, now()).unwrap_err();
        let body = format!("{problem:?}");
        assert_eq!(problem.code(), http::StatusCode::BAD_REQUEST);
        assert!(body.contains(&format!("message: \"{name}: ")), "{body}");
    }
}
