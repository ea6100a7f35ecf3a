//! How a command ends by itself.

use rstest::rstest;

use crate::harness::{command, script};
use crate::processes::{eventually, state};

#[rstest]
#[case("exit 0", "0")]
#[case("exit 3", "3")]
#[case("exit 127", "127")]
#[case("exit 139", "139")]
#[case("exit 255", "255")]
#[case::only_eight_bits_of_it_arrive("exec busybox sh -c 'exit 256'", "0")]
fn a_command_returns(#[case] text: &str, #[case] code: &str) {
    let ended = script(text).start().ends();
    ended.returned(code);
    assert_eq!(ended.errors, "");
}

#[rstest]
#[case(libc::SIGSEGV)]
#[case(libc::SIGABRT)]
#[case(libc::SIGKILL)]
#[case(libc::SIGTERM)]
#[case(libc::SIGPIPE)]
#[case(libc::SIGHUP)]
#[case(34)]
#[case(64)]
fn a_signal_from_inside_kills_it(#[case] signal: i32) {
    let ended = script(&format!("kill -{signal} $$; exit 9")).start().ends();
    ended.was_killed(&signal.to_string());
}

#[test]
fn times_are_those_of_the_command() {
    let ended = command(&["true"]).start().ends();
    let (started, over) = (ended.field("startedAt"), ended.field("endedAt"));
    assert!(started.is_some() && started <= over, "{}", ended.report);
}

#[test]
fn zombies_do_not_stay_while_the_command_runs() {
    let daemons = "for i in 1 2 3 4 5 6 7 8 9; do (sh -c 'exit 5' &); done; echo made; sleep 1000";
    let mut running = script(daemons).start();
    running.says("made");
    let zombie = |pid: &i32| state(*pid).is_some_and(|it| it == "Z");
    eventually("no zombie", || {
        (!running.processes().iter().any(zombie)).then_some(())
    });
}
