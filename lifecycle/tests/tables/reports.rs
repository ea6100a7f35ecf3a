//! What is read as a report of the supervisor, and which report is believed (contract §8).

use boxes_lifecycle::{End, Report, report_key};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{ABox, APod, Decides, a_running_box, an_ended_pod, told};
use crate::supervision::{AReport, exited, not_started, signaled};

/// As the supervisor writes them: a return, a signal, a start that failed, and all there can be.
const RETURNED: &str = r#"{"report":1,"key":"0123456789abcdef","exitCode":3,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#;
const SIGNALED: &str = r#"{"report":1,"key":"0123456789abcdef","signal":9,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":true,"survivors":2}"#;
const NOT_STARTED: &str = r#"{"report":1,"key":"0123456789abcdef","exitCode":127,"startFailure":"cannot start \"{\"report\":1}\": no such file","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#;

fn parsed(message: &str) -> Report {
    Report::parse(message).unwrap()
}

fn returned() -> Report {
    Report {
        key: "0123456789abcdef".to_owned(),
        end: End::Code(3),
        started: Some("2026-11-30T19:00:00.123456Z".parse().unwrap()),
        ended: "2026-11-30T19:00:01Z".parse().unwrap(),
        stop_received: false,
        oom_kills: Some(0),
    }
}

#[test]
fn a_return_is_read() {
    assert_eq!(parsed(RETURNED), returned());
}

#[test]
fn a_signal_is_read() {
    let expected = Report {
        end: End::Signal(9),
        stop_received: true,
        oom_kills: None,
        ..returned()
    };
    assert_eq!(parsed(SIGNALED), expected);
}

#[test]
fn a_start_that_failed_is_read() {
    let message = r#"cannot start "{"report":1}": no such file"#.to_owned();
    let expected = Report {
        end: End::NotStarted { code: 127, message },
        started: None,
        ..returned()
    };
    assert_eq!(parsed(NOT_STARTED), expected);
}

#[rstest]
#[case::a_line_end(format!("{RETURNED}\n"))]
#[case::line_ends_around(format!("\n{RETURNED}\n\n"))]
#[case::zeros_behind(format!("{RETURNED}\n\0\0\0"))]
#[case::spaces_around(format!("  {RETURNED}\t\r\n"))]
#[case::text_before(format!("half a word\n{RETURNED}\n"))]
#[case::a_megabyte_before(format!("{}\n{RETURNED}", "{".repeat(1 << 20)))]
#[case::replaced_bytes_before(format!("\u{fffd}\u{fffd}\n{RETURNED}"))]
#[case::other_reports_before(format!("{SIGNALED}\n{NOT_STARTED}\n{RETURNED}\n"))]
#[case::an_unknown_field(with_field(r#""survivors":2"#))]
#[case::an_unknown_object(with_field(r#""usage":{"cpu":[1,{"x":null}]}"#))]
#[case::an_unknown_bomb(with_field(&format!(r#""x":{}{}"#, "[".repeat(120), "]".repeat(120))))]
#[case::nulls(with_field(r#""signal":null,"startFailure":null"#))]
#[case::as_long_as_it_gets(padded(512))]
fn the_last_line_is_read(#[case] message: String) {
    assert_eq!(parsed(&message), returned());
}

/// The report of a return with one more field.
fn with_field(field: &str) -> String {
    RETURNED.replace('}', &format!(",{field}}}"))
}

/// The report of a return, so many bytes long.
fn padded(length: usize) -> String {
    let missing = length - with_field(r#""pad":"""#).len();
    with_field(&format!(r#""pad":"{}""#, "x".repeat(missing)))
}

/// The report of a return with other words in one place.
fn instead(of: &str, other: &str) -> String {
    assert!(RETURNED.contains(of), "{of}");
    RETURNED.replace(of, other)
}

/// The report of a start that failed with another code.
fn failing_with(code: &str) -> String {
    NOT_STARTED.replace("\"exitCode\":127", code)
}

#[rstest]
#[case::nothing(String::new())]
#[case::line_ends("\n\n\n".to_owned())]
#[case::white_space(" \t\r".to_owned())]
#[case::zeros("\0\0\0\0".to_owned())]
#[case::words("Killed".to_owned())]
#[case::replaced_bytes("\u{fffd}PNG\u{fffd}\u{fffd}".to_owned())]
#[case::replaced_bytes_within(instead("0123", "01\u{fffd}\u{fffd}3\u{fffd}")[1..].to_owned())]
#[case::a_megabyte_of_braces("{".repeat(1 << 20))]
#[case::a_megabyte_of_brackets("[".repeat(1 << 20))]
#[case::a_megabyte_of_line_ends("\n".repeat(1 << 20))]
#[case::nested_objects(r#"{"report":"#.repeat(50))]
#[case::a_number("1".to_owned())]
#[case::null("null".to_owned())]
#[case::an_empty_object("{}".to_owned())]
#[case::fields_without_names(r#"[1,"0123456789abcdef",3,null,null,null,"2026-11-30T19:00:01Z",false,0]"#.to_owned())]
#[case::a_list_of_one(format!("[{RETURNED}]"))]
#[case::a_report_in_quotes(format!("{RETURNED:?}"))]
#[case::two_on_one_line(format!("{RETURNED}{RETURNED}"))]
#[case::text_before_on_its_line(format!("x{RETURNED}"))]
#[case::text_behind_on_its_line(format!("{RETURNED}x"))]
#[case::text_behind(format!("{RETURNED}\nbye"))]
#[case::white_space_behind(format!("{RETURNED}\n "))]
#[case::zeros_before(format!("\0\0{RETURNED}"))]
#[case::a_zero_within(instead("3,", "3,\0"))]
#[case::split_over_two_lines(instead(",\"endedAt", "\n,\"endedAt"))]
#[case::too_long(padded(513))]
#[case::too_long_by_spaces(format!("{}{RETURNED}", " ".repeat(512)))]
#[case::too_long_by_characters(instead("0123", &"\u{fffd}".repeat(160)))]
#[case::no_version(instead("\"report\":1,", ""))]
#[case::version_0(instead("\"report\":1", "\"report\":0"))]
#[case::version_2(instead("\"report\":1", "\"report\":2"))]
#[case::version_in_words(instead("\"report\":1", "\"report\":\"1\""))]
#[case::version_in_parts(instead("\"report\":1", "\"report\":1.0"))]
#[case::no_key(instead("\"key\":\"0123456789abcdef\",", ""))]
#[case::key_that_is_null(instead("\"0123456789abcdef\"", "null"))]
#[case::key_that_is_a_number(instead("\"0123456789abcdef\"", "123456789"))]
#[case::key_twice(with_field(r#""key":"0123456789abcdef""#))]
#[case::code_twice(with_field(r#""exitCode":3"#))]
#[case::time_twice(with_field(r#""endedAt":"2026-11-30T19:00:01Z""#))]
#[case::no_end(instead("\"exitCode\":3,", ""))]
#[case::code_and_signal(with_field(r#""signal":9"#))]
#[case::code_0_and_signal(instead("\"exitCode\":3", "\"exitCode\":0,\"signal\":9"))]
#[case::code_256(instead(":3,", ":256,"))]
#[case::negative_code(instead(":3,", ":-1,"))]
#[case::code_in_parts(instead(":3,", ":3.0,"))]
#[case::code_in_words(instead(":3,", ":\"3\","))]
#[case::code_with_an_exponent(instead(":3,", ":3e0,"))]
#[case::code_beyond_all(instead(":3,", ":99999999999999999999999999,"))]
#[case::code_as_a_list(instead(":3,", ":[3],"))]
#[case::signal_0(SIGNALED.replace(":9,", ":0,"))]
#[case::signal_65(SIGNALED.replace(":9,", ":65,"))]
#[case::signal_255(SIGNALED.replace(":9,", ":255,"))]
#[case::negative_signal(SIGNALED.replace(":9,", ":-9,"))]
#[case::signal_by_name(SIGNALED.replace(":9,", ":\"KILL\","))]
#[case::failure_with_another_code(failing_with("\"exitCode\":1"))]
#[case::failure_with_0(failing_with("\"exitCode\":0"))]
#[case::failure_with_128(failing_with("\"exitCode\":128"))]
#[case::failure_without_a_code(failing_with("\"exitCode\":null"))]
#[case::failure_with_a_signal(failing_with("\"signal\":9"))]
#[case::failure_with_code_and_signal(failing_with("\"exitCode\":127,\"signal\":9"))]
#[case::failure_that_is_no_text(NOT_STARTED.replace(r#""cannot start \"{\"report\":1}\": no such file""#, "true"))]
#[case::no_end_time(instead("\"endedAt\":\"2026-11-30T19:00:01.000000Z\",", ""))]
#[case::end_time_without_a_zone(instead("01.000000Z", "01.000000"))]
#[case::end_time_in_seconds(instead("\"2026-11-30T19:00:01.000000Z\"", "1796065201"))]
#[case::end_time_that_is_none(instead("2026-11-30T19:00:01", "2026-13-32T25:61:61"))]
#[case::end_time_beyond_all(instead("2026-11-30T19:00:01", "99999-11-30T19:00:01"))]
#[case::start_time_that_is_none(instead("2026-11-30T19:00:00.123456Z", "noon"))]
#[case::no_word_of_a_stop(instead("\"stopReceived\":false,", ""))]
#[case::stop_as_a_number(instead("false", "0"))]
#[case::stop_in_words(instead("false", "\"false\""))]
#[case::stop_that_is_null(instead("false", "null"))]
#[case::negative_kills(instead("Kills\":0", "Kills\":-1"))]
#[case::kills_in_parts(instead("Kills\":0", "Kills\":0.5"))]
#[case::kills_beyond_all(instead("Kills\":0", "Kills\":18446744073709551616"))]
#[case::a_bomb_in_a_field(instead(":3,", &format!(":{}{},", "[".repeat(150), "]".repeat(150))))]
fn what_is_no_report(#[case] message: String) {
    assert_eq!(Report::parse(&message), None);
}

#[rstest]
#[case::returned(RETURNED)]
#[case::signaled(SIGNALED)]
#[case::not_started(NOT_STARTED)]
fn a_cut_line_is_no_report(#[case] line: &str) {
    for cut in 1..line.len() {
        let (front, back) = line.split_at(cut);
        for left in [front, back] {
            assert_eq!(Report::parse(left), None, "{left}");
            assert_eq!(Report::parse(&format!("{line}\n{left}")), None, "{left}");
        }
        // Two halves with a line end between are none either.
        assert_eq!(Report::parse(&format!("{front}\n{back}")), None);
    }
}

#[rstest]
#[case::most(u64::MAX, Some(u64::MAX))]
#[case::none(0, Some(0))]
fn kills_are_counted(#[case] written: u64, #[case] expected: Option<u64>) {
    let line = instead("Kills\":0", &format!("Kills\":{written}"));
    assert_eq!(parsed(&line).oom_kills, expected);
}

#[test]
fn every_code_and_every_signal_is_read() {
    for code in 0..=255 {
        let line = instead(":3,", &format!(":{code},"));
        assert_eq!(parsed(&line).end, End::Code(code));
    }
    for number in 1..=64 {
        let line = SIGNALED.replace(":9,", &format!(":{number},"));
        assert_eq!(parsed(&line).end, End::Signal(number));
    }
}

#[test]
fn the_key_of_a_box_is_its_own_and_stays() {
    // Pods of an older build are still believed.
    assert_eq!(report_key("box-1"), "e22d9d1151fa0d06");
    assert_ne!(report_key("box-1"), report_key("box-2"));
    assert_ne!(report_key(""), report_key("box-1"));
}

/// The evidence and, of the history, why a report is not believed.
fn judged(object: ABox, pod: APod) -> String {
    let status = object.with(pod).status();
    let evidence = status.evidence.clone().unwrap_or_default();
    let mut history = status.history.iter();
    let exited = history.find(|entry| entry.type_ == "Exited").unwrap();
    match exited.data.get("report") {
        None => evidence,
        Some(why) => format!("{evidence} {}", why.as_str().unwrap()),
    }
}

fn ended(code: i32) -> APod {
    an_ended_pod(code, "Error")
}

#[rstest]
#[case::of_a_pod_without_a_supervisor(ended(3).with_message(&exited(3).line()), "Derived")]
#[case::nothing_of_a_pod_without_a_supervisor(ended(3), "Derived")]
#[case::nothing(ended(3).supervised(), "Derived missing")]
#[case::empty(ended(3).supervised().with_message(""), "Derived missing")]
#[case::words(ended(3).supervised().with_message("out of disk"), "Derived missing")]
#[case::of_another_box(ended(3).reports(&exited(3).of_another_box()), "Derived missing")]
#[case::without_a_key(ended(3).reports(&exited(3).without("key")), "Derived missing")]
#[case::with_an_empty_key(ended(3).reports(&exited(3).with(json!({"key": ""}))), "Derived missing")]
#[case::with_half_a_key(ended(3).reports(&exited(3).with(json!({"key": &report_key("box-1")[..8]}))), "Derived missing")]
#[case::with_more_than_a_key(ended(3).reports(&exited(3).with(json!({"key": report_key("box-1") + "0"}))), "Derived missing")]
#[case::with_the_uid_for_a_key(ended(3).reports(&exited(3).with(json!({"key": "box-1"}))), "Derived missing")]
#[case::of_another_version(ended(3).reports(&exited(3).with(json!({"report": 2}))), "Derived missing")]
#[case::before_the_last_line(ended(3).supervised().with_message(&format!("{}\nbye", exited(3).line())), "Derived missing")]
#[case::before_a_forged_one(ended(3).supervised().with_message(&forged_after(&exited(3))), "Derived missing")]
#[case::after_a_forged_one(ended(3).supervised().with_message(&forged_before(&exited(3))), "Observed")]
#[case::code_0(an_ended_pod(0, "Completed").reports(&exited(0)), "Observed")]
#[case::code_3(ended(3).reports(&exited(3)), "Observed")]
#[case::code_255(ended(255).reports(&exited(255)), "Observed")]
#[case::another_code(ended(3).reports(&exited(0)), "Derived disagrees")]
#[case::code_0_for_another(ended(0).reports(&exited(3)), "Derived disagrees")]
#[case::code_for_a_kill(ended(137).reports(&exited(0)), "Derived disagrees")]
#[case::signal_11(ended(139).reports(&signaled(11)), "Observed")]
#[case::signal_64(ended(192).reports(&signaled(64)), "Observed")]
#[case::code_of_a_signal(ended(139).reports(&exited(139)), "Observed")]
#[case::another_signal(ended(139).reports(&signaled(9)), "Derived disagrees")]
#[case::signal_for_its_number(ended(11).reports(&signaled(11)), "Derived disagrees")]
#[case::signal_for_a_return(ended(0).reports(&signaled(15)), "Derived disagrees")]
#[case::not_found(ended(127).reports(&not_started(127, "x")), "Observed")]
#[case::not_executable(ended(126).reports(&not_started(126, "x")), "Observed")]
#[case::not_found_for_not_executable(ended(126).reports(&not_started(127, "x")), "Derived disagrees")]
#[case::not_found_for_a_return(ended(0).reports(&not_started(127, "x")), "Derived disagrees")]
fn which_report_is_believed(#[case] pod: APod, #[case] expected: &str) {
    assert_eq!(judged(a_running_box(), pod), expected);
}

fn forged_after(report: &AReport) -> String {
    format!("{}\n{}\n", report.line(), exited(0).of_another_box().line())
}

fn forged_before(report: &AReport) -> String {
    format!("{}\n{}\n", exited(0).of_another_box().line(), report.line())
}

#[test]
fn a_pod_that_lost_its_label_is_believed() {
    let mut pod = ended(3).reports(&exited(3));
    pod.0.metadata.labels = None;
    assert_eq!(
        told(&a_running_box().with(pod).status()),
        "Exited Exit 3 - Observed"
    );
}
