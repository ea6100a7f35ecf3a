//! Signals from inside of the box are for the command; none of them is a stop.

use rstest::rstest;

use crate::harness::script;
use crate::misbehaviour::misbehaving;

#[test]
fn the_first_process_cannot_be_killed_from_inside() {
    script("kill -9 1; kill -STOP 1; exit 4")
        .start()
        .ends()
        .returned("4");
}

#[rstest]
fn it_is_forwarded(
    #[values(
        "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "ALRM", "36", "64"
    )]
    signal: &str,
) {
    let handler = format!("trap 'exit 7' {signal}; kill -{signal} 1; while :; do :; done");
    // dash takes real-time signals by number as well.
    script(&handler).start().ends().returned("7");
}

#[test]
fn a_forwarded_signal_that_has_no_handler_kills_the_command() {
    script("kill -TERM 1; while :; do :; done")
        .start()
        .ends()
        .was_killed("15");
}

#[test]
fn some_signals_are_not_forwarded() {
    let text = "for s in CHLD CONT URG TSTP TTIN TTOU; do trap \"echo $s\" $s; done
        for s in CHLD CONT URG TSTP TTIN TTOU; do kill -$s 1; done
        trap 'echo last; exit 0' USR1; kill -USR1 1; while :; do :; done";
    let ended = script(text).start().ends();
    let output = &ended.returned("0").output;
    assert!(
        !output.iter().any(|line| line != "last" && line != "CHLD"),
        "{output:?}"
    );
}

/// The sender that `sigqueue` names is what the sending process likes.
#[test]
fn a_stop_cannot_be_forged_by_naming_another_sender() {
    let forged = misbehaving("queue-as-outsider");
    let ended = script(&format!("{forged}; while :; do :; done"))
        .start()
        .ends();
    ended.was_killed("15");
}

#[test]
fn it_reaches_the_command_and_not_its_children() {
    let text =
        "(trap 'echo child' USR1; trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done) &
        trap 'exit 8' USR1; while :; do sleep 0.01; done";
    let mut running = script(text).start();
    running.says("ready");
    running.exec("kill -USR1 1").wait().unwrap();
    assert_eq!(running.ends().returned("8").output, Vec::<String>::new());
}

#[test]
fn from_kubectl_exec_it_is_forwarded() {
    let mut running =
        script("trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done").start();
    running.says("ready");
    running.exec("kill -TERM 1").wait().unwrap();
    running.ends().returned("8");
}

#[test]
fn what_the_supervisor_itself_causes_is_not_forwarded() {
    // Its standard error is a pipe that nobody reads, so what it says about the report is a SIGPIPE.
    let broken = "exec 3>&1; mkfifo p; : <p & exec 4>p; wait; exec \"$@\" 2>&4 4>&-";
    let ended = script("trap 'exit 9' PIPE; sleep 0.1; echo lived; exit 5")
        .option("--report=/no/such/file")
        .through(&["sh", "-c", broken, "sh"])
        .start()
        .ends();
    assert_eq!((ended.code, ended.output), (5, vec!["lived".to_owned()]));
}
