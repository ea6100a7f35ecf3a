//! Whatever happens, in any order.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Write(String),
    Rotate,
    /// The kubelet makes the container anew.
    Again,
    Look,
    Read,
    Pause,
    /// Another reader goes on from the position.
    Replace,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => "[a-z \n]{0,80}".prop_map(Act::Write),
        2 => Just(Act::Rotate),
        1 => Just(Act::Again),
        3 => Just(Act::Look),
        6 => Just(Act::Read),
        1 => Just(Act::Pause),
        1 => Just(Act::Replace),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn whatever_happens_all_is_read_once_or_a_gap_is_told(
        acts in prop::collection::vec(act(), 0..60),
        sure: bool,
    ) {
        let new = if sure { Reader::new } else { Reader::unsure };
        let mut kubelet = Kubelet::start();
        let mut reader = new(&kubelet, None);
        for act in acts {
            match act {
                Act::Write(text) => kubelet.write(&text),
                Act::Rotate => kubelet.rotate(),
                Act::Again => kubelet.attempt_again(),
                Act::Look => reader.look(),
                Act::Read => { reader.step(); }
                Act::Pause => reader.now += Duration::from_secs(1),
                Act::Replace => {
                    let mut next = new(&kubelet, reader.tail.position().cloned());
                    next.seen = reader.seen;
                    next.now = reader.now;
                    reader = next;
                }
            }
        }
        reader.end(&mut kubelet);
        if reader.seen.gaps.is_empty() {
            prop_assert_eq!(&reader.seen.bytes, &kubelet.written);
        } else {
            let may_lack = kubelet.rotations >= 4 || kubelet.attempt > 0;
            prop_assert!(may_lack, "{:?}", reader.seen.gaps);
            prop_assert!(is_subsequence(&reader.seen.bytes, &kubelet.written));
        }
    }
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|other| other == byte))
}
