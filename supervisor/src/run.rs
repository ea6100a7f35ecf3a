//! A command's life: from its start to the end of all that it started.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libc::SIGTERM;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::launch::launch;
use crate::oom::OomKills;
use crate::reach::Reach;
use crate::report::{Ending, Report};
use crate::signals::{Meaning, Received, meaning};
use crate::strings::Strings;
use crate::sys;

/// How long killed processes are waited for. One that waits for a dead disk or server cannot end.
const DYING: Duration = Duration::from_secs(1);

/// How often is looked whether others have ended: not all of them are our children, whose ends are
/// signalled.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command, and afterwards ends what is left of it. Gives the report, but for its key.
pub(crate) fn run(command: Strings, environment: Strings, grace: Duration) -> Report {
    let reach = Reach::of_this_process();
    let oom = OomKills::since_now();
    match launch(command, environment) {
        Err(ending) => not_started(ending, &oom),
        Ok(pid) => {
            sys::close_input_and_output();
            Life::new(pid, reach, grace, oom).live()
        }
    }
}

/// The report of a command that could not be started.
pub(crate) fn not_started(ending: Ending, oom: &OomKills) -> Report {
    Report {
        key: None,
        ending,
        started_at: None,
        ended_at: now(),
        stop_received: false,
        oom_kills: oom.until_now(),
        survivors: 0,
    }
}

/// How far the box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The command runs, and nobody wants it to stop.
    Running,
    /// All were asked to end. Those that have not by then are killed.
    Ending(Instant),
    /// All were killed. Those that are there after this are survivors.
    Killing(Instant),
}

/// A running box.
struct Life {
    command: Pid,
    started_at: i64,
    reach: Reach,
    grace: Duration,
    oom: OomKills,
    phase: Phase,
    stop_received: bool,
    last_signal: i32,
    end: Option<End>,
}

/// What is known once the command has ended.
struct End {
    ending: Ending,
    at: i64,
    oom_kills: Option<u64>,
}

impl Life {
    /// A box whose command has just been started.
    fn new(command: Pid, reach: Reach, grace: Duration, oom: OomKills) -> Self {
        Self {
            command,
            started_at: now(),
            reach,
            grace,
            oom,
            phase: Phase::Running,
            stop_received: false,
            last_signal: 0,
            end: None,
        }
    }

    fn live(mut self) -> Report {
        loop {
            let children = self.reap();
            if let Some(report) = self.over(children) {
                return report;
            }
            self.go_on();
            if let Some(received) = sys::next_signal(self.last_signal, self.patience()) {
                self.last_signal = received.signal;
                // Who ended before the signal came was not ended by it.
                self.reap();
                self.receive(received);
            }
        }
    }

    /// Takes the wait status of every child that has ended. Answers whether there are any left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => self.command_ended(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn command_ended(&mut self, status: WaitStatus) {
        if self.end.is_some() {
            // A descendant that got the command's PID after it.
            return;
        }
        self.end = Some(End {
            ending: ending(status),
            // Not before the start, even where the clock was set back.
            at: now().max(self.started_at),
            oom_kills: self.oom.until_now(),
        });
    }

    /// The report, once all is over: the command and all others have ended, or cannot be ended.
    fn over(&self, children: bool) -> Option<Report> {
        let end = self.end.as_ref()?;
        let given_up = matches!(self.phase, Phase::Killing(until) if Instant::now() >= until);
        if children && !given_up {
            return None;
        }
        let remaining = self.reach.remaining(children);
        (given_up || remaining == 0).then(|| self.report(end, remaining))
    }

    fn report(&self, end: &End, survivors: u32) -> Report {
        Report {
            key: None,
            ending: end.ending.clone(),
            started_at: Some(self.started_at),
            ended_at: end.at,
            stop_received: self.stop_received,
            oom_kills: end.oom_kills,
            survivors,
        }
    }

    /// The next step to the end, if it is time for it.
    fn go_on(&mut self) {
        match self.phase {
            Phase::Running if self.end.is_some() => self.terminate(SIGTERM),
            Phase::Ending(until) if Instant::now() >= until => {
                self.phase = Phase::Killing(Instant::now() + DYING);
                self.reach.kill();
            }
            // Those that came to be while the others were killed.
            Phase::Killing(_) => self.reach.kill(),
            Phase::Running | Phase::Ending(_) => {}
        }
    }

    fn terminate(&mut self, signal: i32) {
        self.reach.terminate(self.running_command(), signal);
        self.phase = Phase::Ending(Instant::now() + self.grace);
    }

    /// How long to wait for a signal.
    fn patience(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running => None,
            Phase::Ending(until) | Phase::Killing(until) => {
                Some(until.saturating_duration_since(Instant::now()).min(LOOK))
            }
        }
    }

    fn receive(&mut self, received: Received) {
        let shared = self.reach == Reach::Descendants;
        match meaning(received.signal, self.reach.origin(received), shared) {
            Meaning::Stop(signal) => self.stop(signal),
            Meaning::Forward(signal) => self.forward(signal),
            Meaning::Nothing => {}
        }
    }

    /// Begins to end the box. Only the first stop does, and none once the command has ended.
    fn stop(&mut self, signal: i32) {
        if self.end.is_none() && self.phase == Phase::Running {
            self.stop_received = true;
            self.terminate(signal);
        }
    }

    /// To the command's process alone: a signal to a container reaches no more than its first process,
    /// and a shell that passes it on to its children would have them get it twice.
    fn forward(&self, signal: i32) {
        if let Some(command) = self.running_command() {
            let _ = sys::send(command.as_raw_pid(), signal);
        }
    }

    /// The command, until its PID may be another's.
    fn running_command(&self) -> Option<Pid> {
        self.end.is_none().then_some(self.command)
    }
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Ending::Signaled(byte(signal)),
        (code, None) => Ending::Exited(byte(code.unwrap_or_default())),
    }
}

/// Wait statuses have no more bits.
fn byte(number: i32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// The wall clock, in microseconds since the epoch.
fn now() -> i64 {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    }
}
