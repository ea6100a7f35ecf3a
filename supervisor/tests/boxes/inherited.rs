//! What a command gets from its supervisor: nothing but what was given.

use std::path::Path;

use crate::harness::{command, script};
use crate::processes::eventually;

/// The fields of `/proc/<pid>/status` that tell of signals, all of them empty.
const NO_SIGNALS: [&str; 3] = [
    "SigBlk:\t0000000000000000",
    "SigIgn:\t0000000000000000",
    "SigCgt:\t0000000000000000",
];

#[test]
fn no_descriptors_but_the_standard_ones() {
    let ended = command(&["busybox", "ls", "/proc/self/fd"]).start().ends();
    // The last is that of the listed folder.
    assert_eq!(ended.returned("0").output, ["0", "1", "2", "3"]);
}

#[test]
fn none_that_the_supervisor_was_given_besides() {
    let plan = command(&["busybox", "ls", "/proc/self/fd"]);
    let given = ["sh", "-c", "exec 7</dev/null; exec \"$@\"", "sh"];
    let ended = plan.through(&given).start().ends();
    assert_eq!(ended.returned("0").output, ["0", "1", "2", "3"]);
}

#[test]
fn standard_descriptors_that_were_closed_stay_closed() {
    let ended =
        script("busybox ls /proc/self/fd >out; [ \"$(busybox tr '\\n' ' ' <out)\" = '0 1 ' ]")
            .through(&["sh", "-c", "exec \"$@\" 0<&- 1>&- 2>&-", "sh"])
            .start()
            .ends();
    ended.returned("0");
}

#[test]
fn signals_have_their_default_meaning() {
    let list = ["busybox", "grep", "^Sig[BIC]", "/proc/self/status"];
    assert_eq!(
        command(&list).start().ends().returned("0").output,
        NO_SIGNALS
    );
}

#[test]
fn even_when_the_supervisor_was_started_with_ignored_ones() {
    let ignoring = "trap '' PIPE CHLD TERM USR1 HUP; exec \"$@\"";
    let ended = command(&["busybox", "grep", "^Sig[BIC]", "/proc/self/status"])
        .through(&["sh", "-c", ignoring, "sh"])
        .start()
        .ends();
    assert_eq!(ended.returned("0").output, NO_SIGNALS);
}

#[test]
fn a_session_of_its_own() {
    let ended = script(
        "read -r pid name state parent group session rest </proc/self/stat
        echo $((pid == group)) $((pid == session)) $parent",
    )
    .start()
    .ends();
    assert_eq!(ended.returned("0").output, ["1 1 1"]);
}

#[test]
fn the_environment_without_the_key() {
    let ended = command(&["env"])
        .variable("BOXES_REPORT_KEY", "0f3c")
        .variable("A", "b")
        .start()
        .ends();
    let output = &ended.returned("0").output;
    assert!(output.contains(&"A=b".to_owned()), "{output:?}");
    assert!(
        !output.iter().any(|line| line.contains("0f3c")),
        "{output:?}"
    );
    assert_eq!(ended.field("key"), Some("\"0f3c\""), "{}", ended.report);
}

#[test]
fn its_input_and_output_are_nobody_elses() {
    let mut running = script("echo ready; exec sleep 1000").start();
    running.says("ready");
    let supervisor = running.supervisor();
    // Whoever is at the other end sees when the command closes its own.
    let open = |number: i32| Path::new(&format!("/proc/{supervisor}/fd/{number}")).is_symlink();
    eventually("closed descriptors", || {
        (!open(0) && !open(1)).then_some(())
    });
    assert!(open(2));
}
