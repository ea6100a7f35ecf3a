//! Stops from outside, and the end of what a command leaves behind.

use std::fs;
use std::time::{Duration, Instant};

use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGWINCH};
use rstest::rstest;

use crate::harness::script;
use crate::misbehaviour::misbehaving;
use crate::processes::{child_of, eventually, stat, state};

/// Runs on, without a child that could be mistaken for something.
const FOR_EVER: &str = "while :; do :; done";

#[rstest]
fn a_handler_decides_how_a_stopped_command_ends(
    #[values(SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGWINCH, 37, 64)] signal: i32,
) {
    let mut running = script(&format!("trap 'exit 7' {signal}; echo ready; {FOR_EVER}")).start();
    running.says("ready");
    running.signal(signal);
    running.ends().was_stopped("exitCode", "7").seen();
}

#[test]
fn a_command_that_has_no_handler_is_ended_by_the_stop() {
    let mut running = script("echo ready; exec sleep 1000").start();
    running.says("ready");
    running.signal(SIGTERM);
    running.ends().was_stopped("signal", "15").seen();
}

#[test]
fn a_stop_signal_that_the_command_ignores_is_followed_by_kill() {
    let mut running = script("echo ready; exec sleep 1000").grace(1).start();
    running.says("ready");
    running.signal(SIGWINCH);
    running.ends().was_stopped("signal", "9").seen();
}

#[test]
fn whatever_ignores_term_is_killed_after_the_grace() {
    let child = format!("trap '' TERM; echo child; {FOR_EVER}");
    let text = format!("trap '' TERM; setsid sh -c \"{child}\" & echo ready; {FOR_EVER}");
    let mut running = script(&text).grace(1).start();
    running.says("child");
    let before = Instant::now();
    running.signal(SIGTERM);
    running.ends().was_stopped("signal", "9").seen();
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_grace_of_0() {
    let mut running = script(&format!("trap '' TERM; echo ready; {FOR_EVER}"))
        .grace(0)
        .start();
    running.says("ready");
    running.signal(SIGTERM);
    running.ends().was_stopped("signal", "9").seen();
}

#[rstest]
fn daemons_get_term_with_whatever_signal_the_box_is_stopped(
    #[values(SIGTERM, SIGINT, 37)] signal: i32,
) {
    let daemon = "trap 'echo daemon ends; exit' TERM; echo daemon; while :; do sleep 0.01; done";
    let text = format!("trap 'exit 7' {signal}; (setsid sh -c \"{daemon}\" &) & {FOR_EVER}");
    let mut running = script(&text).grace(60).start();
    running.says("daemon");
    running.signal(signal);
    let ended = running.ends();
    assert_eq!(
        ended.was_stopped("exitCode", "7").seen().output,
        ["daemon ends"]
    );
}

#[test]
fn the_command_gets_the_stop_signal_alone() {
    let text =
        format!("trap 'echo term' TERM; trap 'echo int; exit 6' INT; echo ready; {FOR_EVER}");
    let mut running = script(&text).start();
    running.says("ready");
    running.signal(SIGINT);
    assert_eq!(running.ends().was_stopped("exitCode", "6").output, ["int"]);
}

#[test]
fn a_suspended_command_is_woken_to_end() {
    let mut running = script("trap 'exit 7' TERM; kill -STOP $$; echo woken")
        .grace(60)
        .start();
    let supervisor = running.supervisor();
    eventually("a stopped command", || {
        let stopped = |pid: &i32| *pid != supervisor && state(*pid).is_some_and(|it| it == "T");
        running.processes().iter().any(stopped).then_some(())
    });
    running.signal(SIGTERM);
    running.ends().was_stopped("exitCode", "7").seen();
}

#[test]
fn a_stop_is_not_hidden_by_a_flood_of_other_signals() {
    let flood = "trap '' HUP INT TERM; setsid sh -c 'echo floods; while :; do kill -HUP 1; kill -INT 1; done' &";
    let text = format!("{flood} {flood} {flood} trap 'exit 7' TERM; {FOR_EVER}");
    let mut running = script(&text).grace(5).start();
    for _ in 0..3 {
        running.says("floods");
    }
    running.signal(SIGTERM);
    running.ends().was_stopped("exitCode", "7").seen();
}

#[test]
fn a_second_stop_changes_nothing() {
    let text = format!("trap 'echo term' TERM; trap 'echo int' INT; echo ready; {FOR_EVER}");
    let mut running = script(&text).grace(1).start();
    running.says("ready");
    running.signal(SIGTERM);
    running.says("term");
    running.signal(SIGINT);
    running.signal(SIGTERM);
    let ended = running.ends();
    assert_eq!(
        ended.was_stopped("signal", "9").output,
        Vec::<String>::new()
    );
}

#[test]
fn what_a_command_leaves_behind_is_ended() {
    let daemon = "trap 'echo daemon ends; exit' TERM; echo daemon; while :; do sleep 0.01; done";
    let text = format!("(setsid sh -c \"{daemon}\" &); read x <wait; exit 0");
    let plan = script(&format!("mkfifo wait; {text}")).grace(60);
    let wait = plan.folder().join("wait");
    let mut running = plan.start();
    running.says("daemon");
    fs::write(wait, "\n").unwrap();
    let ended = running.ends();
    assert_eq!(ended.returned("0").seen().output, ["daemon ends"]);
}

#[test]
fn a_stop_after_the_end_is_not_why_it_ended() {
    let daemon = format!("trap 'echo asked' TERM; echo daemon; {FOR_EVER}");
    let plan = script(&format!(
        "mkfifo wait; (setsid sh -c \"{daemon}\" &); read x <wait; exit 3"
    ));
    let wait = plan.folder().join("wait");
    let mut running = plan.grace(5).start();
    running.says("daemon");
    fs::write(wait, "\n").unwrap();
    running.says("asked");
    running.signal(SIGTERM);
    running.ends().returned("3").seen();
}

#[test]
fn a_process_whose_first_thread_has_ended_is_ended_too() {
    let text = format!(
        "trap 'exit 7' TERM; {}; while :; do :; done",
        misbehaving("thread")
    );
    let mut running = script(&text).grace(60).start();
    let zombie = |pid: &i32| state(*pid).is_some_and(|it| it == "Z");
    eventually("a first thread's end", || {
        running.processes().iter().any(zombie).then_some(())
    });
    running.signal(SIGTERM);
    running.ends().was_stopped("exitCode", "7").seen();
}

#[test]
fn a_fork_bomb_is_ended() {
    // 31 processes that start others without end, and ignore TERM.
    let bomb = "trap '' TERM; f() { [ $1 = 0 ] || { f $(($1-1)) & f $(($1-1)) & }; while :; do (:); done; }";
    let mut running = script(&format!("{bomb}; echo ready; f 4")).grace(1).start();
    running.says("ready");
    eventually("a crowd", || (running.processes().len() > 30).then_some(()));
    running.signal(SIGTERM);
    running.ends().was_stopped("signal", "9").seen();
}

#[test]
fn what_others_started_in_the_box_ends_with_it() {
    let mut running = script("echo ready; exec sleep 1000").grace(60).start();
    running.says("ready");
    let mut other = running.exec("trap 'exit 44' TERM; while :; do sleep 0.01; done");
    eventually("the other", || {
        (running.processes().len() > 2).then_some(())
    });
    let pid = i32::try_from(other.id()).unwrap();
    eventually("its handler", || handles(pid, SIGTERM).then_some(()));
    running.signal(SIGTERM);
    let status = eventually("the end of the other", || other.try_wait().unwrap());
    assert_eq!(status.code(), Some(44));
    running.ends().was_stopped("signal", "15");
}

#[test]
fn what_others_started_is_killed_when_it_ignores_term() {
    let mut running = script("echo ready; exec sleep 1000").grace(1).start();
    running.says("ready");
    let mut other = running.exec("trap '' TERM; while :; do sleep 0.01; done");
    let pid = i32::try_from(other.id()).unwrap();
    eventually("its handler", || ignores(pid, SIGTERM).then_some(()));
    running.signal(SIGTERM);
    eventually("the end of the other", || other.try_wait().unwrap());
    running.ends().was_stopped("signal", "15").seen();
}

/// Whether the shell that a process started handles a signal.
fn handles(parent: i32, signal: i32) -> bool {
    has_signal(parent, "SigCgt:\t", signal)
}

fn ignores(parent: i32, signal: i32) -> bool {
    has_signal(parent, "SigIgn:\t", signal)
}

fn has_signal(parent: i32, field: &str, signal: i32) -> bool {
    let status =
        child_of(parent).and_then(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok());
    let status = status.unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix(field));
    set.is_some_and(|it| u64::from_str_radix(it, 16).unwrap() >> (signal - 1) & 1 == 1)
}

#[test]
fn a_process_that_it_may_not_kill_is_counted() {
    let mut running = script("echo ready; exec sleep 1000")
        .by_nobody()
        .grace(0)
        .start();
    running.says("ready");
    let mut other = running.exec("exec sleep 1000");
    eventually("the other", || {
        (running.processes().len() > 2).then_some(())
    });
    running.signal(SIGTERM);
    let ended = running.ends();
    assert_eq!(ended.field("survivors"), Some("1"), "{}", ended.report);
    assert_eq!(ended.left.as_ref().map(Vec::len), Some(1));
    other.wait().unwrap();
}

#[test]
fn waiting_costs_nothing() {
    let mut running = script("echo ready; exec sleep 1000").start();
    running.says("ready");
    let supervisor = running.supervisor();
    let sleeping = || {
        stat(supervisor)
            .filter(|it| it[0] == "S")
            .map(|it| it[11..13].to_vec())
    };
    let before = eventually("a sleeping supervisor", sleeping);
    running.signal(libc::SIGCHLD);
    assert_eq!(eventually("a sleeping supervisor", sleeping), before);
}
