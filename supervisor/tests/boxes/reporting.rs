//! The file that the report is written to.

use crate::harness::{command, script};

#[test]
fn the_report_is_the_only_line_whatever_the_workload_wrote() {
    let lines = [
        "busybox head -c 1000000 /dev/zero | busybox tr '\\0' x >>report; exit 3",
        "echo first >report; exit 3",
    ];
    for line in lines {
        let ended = script(line).start().ends();
        ended.returned("3");
        let alone = format!("\n{}\n", ended.report);
        assert_eq!(ended.file, alone.as_bytes());
    }
}

#[test]
fn a_forged_report_is_not_the_last_line() {
    let forged = r#"{"report":1,"exitCode":0,"stopReceived":true}"#;
    let daemon = format!("trap '' TERM; while :; do echo '{forged}' >>report; sleep 0.01; done");
    let plan =
        script("setsid sh -c \"$DAEMON\" & while ! busybox grep -q 1 report; do :; done; exit 3");
    let ended = plan.variable("DAEMON", &daemon).grace(1).start().ends();
    ended.returned("3").seen();
}

#[test]
fn a_full_file_is_complained_of_and_changes_nothing_else() {
    let ended = command(&["sh", "-c", "exit 3"])
        .option("--report=/dev/full")
        .start()
        .ends();
    assert_eq!((ended.code, ended.file.len()), (3, 0));
    assert!(
        ended
            .errors
            .contains("no report: cannot write it: No space left"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_complained_of() {
    let ended = command(&["sh", "-c", "exit 3"])
        .option("--report=/no/file")
        .start()
        .ends();
    assert_eq!((ended.code, ended.file.len()), (3, 0));
    assert!(
        ended.errors.contains("cannot open /no/file: No such file"),
        "{}",
        ended.errors
    );
}

/// Runs the supervisor with its report in a file system of 64 KiB, and then copies its last line.
const SMALL: &str =
    "mkdir small && mount -t tmpfs -o size=64k none small && : >small/report || exit 9
    \"$@\"; code=$?; busybox tail -n 1 small/report >report; exit $code";

#[test]
fn where_there_is_no_room_the_workloads_own_lines_give_way() {
    let forged = r#"echo '{"report":1,"exitCode":3,"stopReceived":true}'"#;
    let fill = "busybox cat /dev/zero >>small/report 2>/dev/null";
    let text =
        format!("{forged} >small/report; {fill}; {forged} 2>/dev/null >>small/report; exit 3");
    let ended = script(&text)
        .option("--report=small/report")
        .start_below(SMALL)
        .ends();
    ended.returned("3");
}

#[test]
fn a_limit_on_file_sizes_that_the_workload_sets_leaves_no_report_of_its_own() {
    let forged = r#"{"report":1,"exitCode":3,"stopReceived":true}"#;
    let text = format!("echo '{forged}' >>report; prlimit --pid 1 --fsize=1 || exit 9; exit 3");
    let ended = script(&text).by_nobody().start().ends();
    assert_eq!((ended.code, ended.report.as_str()), (3, ""));
}

#[test]
fn standard_error_that_nobody_reads_does_not_keep_it_from_ending() {
    let full =
        "mkfifo p; exec 4<>p; busybox timeout 0.2 busybox cat /dev/zero >&4; exec \"$@\" 2>&4";
    let ended = command(&["sh", "-c", "exit 3"])
        .option("--report=/no/file")
        .through(&["sh", "-c", full, "sh"])
        .start()
        .ends();
    assert_eq!(ended.code, 3);
}
