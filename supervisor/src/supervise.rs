//! `run`: the one command of a box, and the report of how it ended.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::arguments::Run;
use crate::launch::refused;
use crate::oom::OomKills;
use crate::report::{Ending, Report};
use crate::report_file::ReportFile;
use crate::run::{not_started, run};
use crate::stderr::{say, words};
use crate::strings::Strings;
use crate::sys::{block_signals, close_all_but_standard, reset_dispositions};

/// The variable that holds what the report proves itself with. The command does not get it.
const KEY: &[u8] = b"BOXES_REPORT_KEY";

/// Runs a command and reports its end. Gives the exit status: the command's, or 128 and its signal.
pub(crate) fn supervise(asked: Run, environment: Strings) -> u8 {
    close_to_others();
    close_all_but_standard();
    reset_dispositions();
    block_signals();
    let file = ReportFile::open(asked.report);
    let mut report = live(asked, environment.without(KEY));
    report.key = environment
        .value(KEY)
        .map(|it| String::from_utf8_lossy(it).into_owned());
    if let Ending::NotStarted { message, .. } = &report.ending {
        say(&[message]);
    }
    file.write(&report);
    report.ending.code()
}

/// A process of the same user can else read this one's memory and environment, take its descriptors,
/// and so write a report of its own.
fn close_to_others() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        say(&["the command could read this process: ", &words(error)]);
    }
}

fn live(asked: Run, environment: Strings) -> Report {
    match asked.command {
        Ok(command) => run(command, environment, asked.grace),
        Err(wrong) => not_started(refused(wrong), &OomKills::since_now()),
    }
}
