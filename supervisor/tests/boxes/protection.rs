//! What a workload of the supervisor's own user cannot do to it.

use rstest::rstest;

use crate::harness::script;
use crate::misbehaviour::misbehaving;

#[rstest]
fn it_cannot_look_into_the_supervisor(
    #[values("environ", "maps", "mem", "fd", "cwd", "root", "exe")] what: &str,
) {
    let text = format!(
        "(: </proc/$$/{what}) || exit 1; (: </proc/1/{what}) 2>/dev/null && exit 2; exit 4"
    );
    script(&text).by_nobody().start().ends().returned("4");
}

#[rstest]
fn it_cannot_take_hold_of_it(#[values("ptrace", "read-memory", "take-descriptor")] how: &str) {
    let ended = script(&misbehaving(how)).by_nobody().start().ends();
    ended.returned("0");
}

#[test]
fn nobody_with_a_read_only_root() {
    let ended = script("touch /x 2>/dev/null || echo read only; id -u; exit 3")
        .by_nobody_in_a_read_only_root()
        .start()
        .ends();
    assert_eq!(ended.returned("3").output, ["read only", "65532"]);
}
