//! Commands that cannot be started, and where they are looked for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rstest::rstest;

use crate::harness::{Ended, Plan, command, script};
use crate::processes::SUPERVISOR;

fn failed(ended: &Ended, code: &str, words: &str) {
    ended.returned(code);
    assert_eq!(ended.field("startedAt"), None, "{}", ended.report);
    let failure = ended.field("startFailure").unwrap_or_default();
    assert!(failure.contains(words), "{}", ended.report);
    assert!(!ended.errors.is_empty(), "it is said on standard error too");
}

#[rstest]
#[case::not_in_path("no-such-program", "127", "\\\"no-such-program\\\": No such file")]
#[case::no_such_file("/no/such/program", "127", "No such file")]
#[case::no_folder("/proc/version/x", "127", "Not a directory")]
#[case::no_name("", "127", "No such file")]
#[case::a_folder("/tmp", "126", "Permission denied")]
#[case::not_executable("/proc/version", "126", "Permission denied")]
#[case::not_executable_here("./report", "126", "Permission denied")]
fn a_command_that_cannot_be_started(#[case] name: &str, #[case] code: &str, #[case] words: &str) {
    failed(&command(&[name]).start().ends(), code, words);
}

#[test]
fn a_name_too_long_for_any_file_and_for_a_report() {
    let ended = command(&[&format!("./{}", "é\"".repeat(700))])
        .start()
        .ends();
    failed(&ended, "126", "cannot start");
    assert!(
        (500..=510).contains(&ended.report.len()),
        "{}",
        ended.report.len()
    );
}

/// A file beside the report, which is in the current folder.
fn with_file(plan: Plan, name: &str, content: &str, mode: u32) -> Plan {
    let file = plan.folder().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, content).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    plan
}

#[test]
fn a_script_without_an_interpreter_line_is_not_given_to_a_shell() {
    let plan = with_file(command(&["./x"]), "x", "exit 0\n", 0o755);
    failed(&plan.start().ends(), "126", "Exec format error");
}

#[test]
fn a_missing_interpreter_is_told_from_a_missing_program() {
    let plan = with_file(command(&["./x"]), "x", "#!/no/such/shell\n", 0o755);
    failed(
        &plan.start().ends(),
        "127",
        "which is its interpreter or loader",
    );
}

#[rstest]
#[case::the_first_that_can_be_executed("a:b:c", "b")]
#[case::an_empty_element_is_the_current_folder("a::b", "here")]
#[case::what_cannot_be_there("/proc/version:report:/no:c", "c")]
fn path_is_searched_in_order(#[case] path: &str, #[case] expected: &str) {
    let plan = command(&["named-so"]).variable("PATH", &format!("{path}:/usr/bin:/bin"));
    let program = |name: &str| format!("#!/bin/sh\necho {name}\n");
    let plan = with_file(plan, "a/named-so", &program("a"), 0o644);
    let plan = with_file(plan, "b/named-so", &program("b"), 0o755);
    let plan = with_file(plan, "c/named-so", &program("c"), 0o755);
    let plan = with_file(plan, "named-so", &program("here"), 0o755);
    let ended = plan.start().ends();
    assert_eq!(ended.returned("0").output, [expected]);
}

#[test]
fn that_a_file_may_not_be_executed_tells_more_than_that_others_are_missing() {
    let plan = command(&["named-so"]).variable("PATH", "a:/usr/bin:/bin");
    let plan = with_file(plan, "a/named-so", "", 0o644);
    failed(&plan.start().ends(), "126", "Permission denied");
}

#[test]
fn without_a_path_programs_are_where_runtimes_look() {
    let ended = command(&["echo", "found"])
        .through(&["env", "-u", "PATH"])
        .start()
        .ends();
    assert_eq!(ended.returned("0").output, ["found"]);
}

#[test]
fn arguments_environment_and_folder_are_as_given() {
    let plan = command(&["sh", "-c", "echo \"$0|$1|$2|$A|$PWD\"", "a b", "", "--"]);
    let folder = plan.folder().to_str().unwrap().to_owned();
    let ended = plan.variable("A", "x y").start().ends();
    assert_eq!(
        ended.returned("0").output,
        [format!("a b||--|x y|{folder}")]
    );
}

#[test]
fn no_more_processes_allowed() {
    let ended = script("true")
        .by_nobody()
        .through(&["prlimit", "--nproc=1", "--"])
        .start()
        .ends();
    failed(&ended, "126", "Resource temporarily unavailable");
}

#[rstest]
#[case(&["--grace=soon"], "--grace is not a number of seconds")]
#[case(&["--further"], "an option is not known")]
fn a_wrong_command_line_is_reported_as_well(#[case] options: &[&str], #[case] words: &str) {
    let plan = options
        .iter()
        .fold(command(&["true"]), |plan, option| plan.option(option));
    failed(&plan.start().ends(), "126", words);
}

#[test]
fn no_command_at_all() {
    failed(&command(&[]).start().ends(), "126", "there is no command");
}

#[rstest]
#[case(&[])]
#[case(&["walk"])]
#[case(&["install"])]
fn an_unknown_verb_is_a_usage_error(#[case] words: &[&str]) {
    let run = Command::new(SUPERVISOR).args(words).output().unwrap();
    assert_eq!(run.status.code(), Some(64));
    assert!(
        String::from_utf8(run.stderr)
            .unwrap()
            .starts_with("boxes-supervisor: usage: ")
    );
}

#[test]
fn its_version() {
    let run = Command::new(SUPERVISOR).arg("--version").output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    assert_eq!(
        run.stdout,
        concat!("boxes-supervisor ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()
    );
}
