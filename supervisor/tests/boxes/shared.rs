//! A PID namespace that is shared: the supervisor is not its first process.

use libc::{SIGTERM, SIGUSR1};

use crate::harness::{Running, script};

/// Runs the supervisor beside a neighbour, and tells what became of both.
const POD: &str = "sleep 1000 & neighbour=$!
    \"$@\" & supervisor=$!
    echo $supervisor >supervisor
    while :; do wait $supervisor; code=$?; kill -0 $supervisor 2>/dev/null || break; done
    kill -0 $neighbour && echo neighbour lives
    left=0
    for stat in /proc/[0-9]*/stat; do
        read -r pid name state parent rest 2>/dev/null <$stat || continue
        case $pid in 1|$neighbour) ;; *) [ $state = Z ] || echo left $pid $name $state;; esac
    done
    exit $code";

fn ends_alone(running: Running) -> crate::harness::Ended {
    let ended = running.ends();
    assert_eq!(
        ended.output.last().map(String::as_str),
        Some("neighbour lives"),
        "{:?}",
        ended.output
    );
    ended
}

#[test]
fn a_command_that_returns() {
    ends_alone(script("exit 3").start_below(POD)).returned("3");
}

#[test]
fn what_it_leaves_behind_is_ended_and_a_neighbour_is_not() {
    let daemon = "(setsid sh -c \"trap '' TERM; echo daemon; sleep 1000; sleep 1000\" &)";
    let text = format!("mkfifo wait; for i in 1 2 3; do {daemon}; done; read x <wait; exit 0");
    let mut running = script(&text).grace(1).start_below(POD);
    for _ in 0..3 {
        running.says("daemon");
    }
    std::fs::write(running.folder().join("wait"), "\n").unwrap();
    ends_alone(running).returned("0");
}

#[test]
fn a_stop_reaches_daemons_and_no_neighbour() {
    let daemon = "trap 'echo daemon ends; exit' TERM; echo daemon; while :; do sleep 0.01; done";
    let text =
        format!("trap 'exit 7' USR1; (setsid sh -c \"{daemon}\" &); while :; do sleep 0.01; done");
    let mut running = script(&text).grace(60).start_below(POD);
    running.says("daemon");
    running.signal(SIGUSR1);
    let ended = running.ends();
    assert_eq!(ended.output, ["daemon ends", "neighbour lives"]);
    ended.was_stopped("exitCode", "7");
}

#[test]
fn term_is_a_stop_from_whomever() {
    let text = "trap 'exit 7' TERM; read supervisor <supervisor; kill -TERM $supervisor; while :; do :; done";
    let ended = script(&with_supervisor(text)).start_below(POD).ends();
    ended.was_stopped("exitCode", "7");
}

#[test]
fn another_signal_from_a_descendant_is_forwarded() {
    let text = "trap 'exit 7' HUP; kill -HUP $PPID; while :; do :; done";
    script(text).start_below(POD).ends().returned("7");
}

#[test]
fn another_signal_from_a_neighbour_is_a_stop() {
    let text = "trap 'exit 7' HUP; echo ready; while :; do :; done";
    let mut running = script(&with_supervisor(text)).start_below(POD);
    running.says("ready");
    let file = running.folder().join("supervisor");
    running
        .exec(&format!("kill -HUP $(cat {})", file.display()))
        .wait()
        .unwrap();
    running.ends().was_stopped("exitCode", "7");
}

#[test]
fn whatever_ignores_term_is_killed() {
    let text = "trap '' TERM; setsid sh -c \"trap '' TERM; echo child; while :; do :; done\" & while :; do :; done";
    let mut running = script(text).grace(1).start_below(POD);
    running.says("child");
    running.signal(SIGTERM);
    ends_alone(running).was_stopped("signal", "9");
}

/// Waits until the supervisor's PID is known.
fn with_supervisor(text: &str) -> String {
    format!("while ! [ -s supervisor ]; do :; done; {text}")
}
