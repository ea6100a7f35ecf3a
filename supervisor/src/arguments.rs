//! The command line.

use std::ffi::CStr;
use std::time::Duration;

use crate::strings::Strings;

/// Where the kubelet reads a container's termination message, unless it is told otherwise.
const REPORT: &CStr = c"/dev/termination-log";

/// The grace of a Box that has none of its own.
const GRACE: Duration = Duration::from_secs(10);

/// What the program is asked to do.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    /// Run a command.
    Run(Run),
    /// Copy the program to a folder.
    Install(&'static CStr),
    /// Tell the version.
    Version,
    /// It cannot be made out.
    Unclear,
}

/// A command to run.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// How long it and what it started has between TERM and KILL.
    pub grace: Duration,
    /// The file for the report.
    pub report: &'static CStr,
    /// The program and its arguments, or what is wrong with the command line. That is reported like a
    /// command that cannot be started, for the box has not run either.
    pub command: Result<Strings, &'static str>,
}

/// Reads the command line, of which the first is the program's own name.
pub(crate) fn read(arguments: Strings) -> Asked {
    let verb = arguments.rest();
    let rest = verb.rest();
    match (
        verb.first().map(CStr::to_bytes),
        rest.first(),
        rest.rest().first(),
    ) {
        (Some(b"run"), ..) => Asked::Run(read_run(rest)),
        (Some(b"install"), Some(folder), None) => Asked::Install(folder),
        (Some(b"--version"), None, _) => Asked::Version,
        _ => Asked::Unclear,
    }
}

fn read_run(mut options: Strings) -> Run {
    let mut run = Run {
        grace: GRACE,
        report: REPORT,
        command: Err("there is no -- before the command"),
    };
    let mut wrong = None;
    while let Some(option) = options.first() {
        options = options.rest();
        if option == c"--" {
            run.command = command(options);
            break;
        }
        wrong = wrong.or(run.read_option(option).err());
    }
    if let Some(wrong) = wrong {
        run.command = Err(wrong);
    }
    run
}

fn command(words: Strings) -> Result<Strings, &'static str> {
    words.first().map(|_| words).ok_or("there is no command")
}

impl Run {
    fn read_option(&mut self, option: &'static CStr) -> Result<(), &'static str> {
        if let Some(path) = value(option, c"--report=") {
            self.report = path;
        } else if let Some(seconds) = value(option, c"--grace=") {
            self.grace = grace(seconds).ok_or("--grace is not a number of seconds")?;
        } else {
            return Err("an option is not known");
        }
        Ok(())
    }
}

fn value(option: &'static CStr, name: &CStr) -> Option<&'static CStr> {
    let value = option.to_bytes_with_nul().strip_prefix(name.to_bytes())?;
    CStr::from_bytes_with_nul(value).ok()
}

/// A grace; one longer than 136 years is as good as that.
fn grace(seconds: &CStr) -> Option<Duration> {
    let seconds: u64 = seconds.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(u32::MAX.into())))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::time::Duration;

    use rstest::rstest;

    use super::{Asked, Run, read};
    use crate::strings::Strings;

    fn asked(words: &[&str]) -> Asked {
        let words = ["boxes-supervisor"].iter().chain(words);
        read(Strings::leaked(words.map(|word| {
            let word: &'static CString = Box::leak(Box::new(CString::new(*word).unwrap()));
            word.as_c_str()
        })))
    }

    fn run(words: &[&str]) -> Run {
        match asked(words) {
            Asked::Run(run) => run,
            _ => panic!("{words:?} is not a run"),
        }
    }

    fn command(run: Run) -> Result<Vec<String>, &'static str> {
        let text = |word: &std::ffi::CStr| word.to_str().unwrap().to_owned();
        run.command.map(|words| words.iter().map(text).collect())
    }

    #[test]
    fn a_run_with_everything() {
        let run = run(&[
            "run",
            "--grace=7",
            "--report=/r",
            "--",
            "a",
            "--grace=8",
            "--",
        ]);
        assert_eq!(run.grace, Duration::from_secs(7));
        assert_eq!(run.report, c"/r");
        assert_eq!(command(run).unwrap(), ["a", "--grace=8", "--"]);
    }

    #[test]
    fn a_run_with_nothing_but_a_command() {
        let run = run(&["run", "--", ""]);
        assert_eq!(run.grace, Duration::from_secs(10));
        assert_eq!(run.report, c"/dev/termination-log");
        assert_eq!(command(run).unwrap(), [""]);
    }

    #[rstest]
    #[case(&["run"], "there is no -- before the command")]
    #[case(&["run", "--"], "there is no command")]
    #[case(&["run", "--grace=1"], "there is no -- before the command")]
    #[case(&["run", "a"], "an option is not known")]
    #[case(&["run", "--grace=x", "--", "a"], "--grace is not a number of seconds")]
    #[case(&["run", "--grace=", "--", "a"], "--grace is not a number of seconds")]
    #[case(&["run", "--grace=-1", "--", "a"], "--grace is not a number of seconds")]
    #[case(&["run", "--grace=1.5", "--", "a"], "--grace is not a number of seconds")]
    #[case(&["run", "--grace", "1", "--", "a"], "an option is not known")]
    fn what_is_wrong_with_a_run(#[case] words: &[&str], #[case] expected: &str) {
        assert_eq!(command(run(words)).unwrap_err(), expected);
    }

    #[test]
    fn a_wrong_run_still_has_its_report() {
        assert_eq!(run(&["run", "--grace=x", "--report=/r"]).report, c"/r");
    }

    #[test]
    fn an_endless_grace_is_long_enough() {
        let run = run(&["run", "--grace=18446744073709551615", "--", "a"]);
        assert_eq!(run.grace, Duration::from_secs(u32::MAX.into()));
    }

    #[test]
    fn other_verbs() {
        assert!(matches!(asked(&["install", "/f"]), Asked::Install(folder) if folder == c"/f"));
        assert!(matches!(asked(&["--version"]), Asked::Version));
    }

    #[rstest]
    #[case(&[])]
    #[case(&["install"])]
    #[case(&["install", "/f", "/g"])]
    #[case(&["--version", "x"])]
    #[case(&["Run", "--", "a"])]
    fn unclear(#[case] words: &[&str]) {
        assert!(matches!(asked(words), Asked::Unclear));
    }

    #[test]
    fn not_even_a_name() {
        assert!(matches!(read(Strings::leaked([])), Asked::Unclear));
    }
}
