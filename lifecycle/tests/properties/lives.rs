//! Every life ends, once, and honestly, whatever disturbs it. What must hold of each single write
//! is checked by the model while it runs (`tests/model/checks.rs`).

use proptest::prelude::*;

use crate::model::{Crash, Disturbance, Plan, Report, run};
use crate::plans::{cases, command, plan};

/// Nothing is left to do or to say, and nothing of the box is left over.
fn assert_settled(report: &Report) {
    if let Some(left) = &report.left {
        assert_eq!(left.write, None, "{report:#?}");
        assert_eq!(left.status, None, "{report:#?}");
    }
    assert!(!report.pod_exists, "{report:#?}");
    assert!(report.pods_made <= 1, "{report:#?}");
    let ended = report.status.reason.is_some();
    let ran = report.status.run.is_some() || report.status.stop.is_some();
    assert!(ended || !ran, "{report:#?}");
    let output = report.status.output.as_ref();
    let told = output.is_none_or(|output| !["Pending", "Saving"].contains(&output.state.as_str()));
    assert!(told || !report.box_exists, "{report:#?}");
}

/// What a crash may not change: what is in memory alone, and so may be learnt again at another
/// time, is left out.
fn survives_crashes(plan: &Plan) -> bool {
    let timing = [Disturbance::ForbidPods, Disturbance::RestartController];
    plan.lag == (0, 0) && !plan.disturbances.iter().any(|(_, it)| timing.contains(it))
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn a_life_settles(plan in plan()) {
        assert_settled(&run(plan));
    }

    #[test]
    fn a_life_settles_under_a_controller_that_crashes_after_every_write(mut plan in plan()) {
        plan.crash = Crash::Always;
        assert_settled(&run(plan));
    }

    #[test]
    fn a_write_that_arrives_twice_changes_nothing(mut plan in plan()) {
        let once = run(plan.clone());
        plan.repeats = true;
        let twice = run(plan);
        assert_settled(&twice);
        prop_assert_eq!(once.ending(), twice.ending());
        prop_assert_eq!(once.pods_made, twice.pods_made);
    }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn a_crash_after_any_write_leads_to_the_same_end(mut plan in plan()) {
        plan.lag = (0, 0);
        prop_assume!(survives_crashes(&plan));
        let whole = run(plan.clone());
        for nth in 1..=whole.writes.len() {
            let crash = Crash::After(nth);
            let cut = run(Plan { crash, ..plan.clone() });
            prop_assert_eq!(whole.ending(), cut.ending(), "after {:?}", &whole.writes[..nth]);
            prop_assert_eq!(whole.box_exists, cut.box_exists);
            prop_assert_eq!(whole.pods_made, cut.pods_made);
        }
    }

    #[test]
    fn a_task_costs_at_most_eight_writes(
        command in command(),
        schedules in 0_i64..2,
        supervised in any::<bool>(),
        saves_output in prop::option::of(0_usize..60),
    ) {
        let schedules_after = Some(schedules);
        let life = Plan { schedules_after, supervised, ..Plan::of(command) };
        let report = run(Plan { saves_output, ..life });
        prop_assume!(report.status.stop.is_none());
        // What is saved is recorded before its pod goes, and a collector that is late is said to be.
        let late = saves_output.is_some_and(|takes| takes > 30);
        let more = [command.sidecar, saves_output.is_some(), late];
        let most = 8 + more.into_iter().filter(|it| *it).count();
        prop_assert!(report.writes.len() <= most, "{:?}", report.writes);
    }

    #[test]
    fn a_stop_costs_two_more(
        command in command(),
        at in 0_usize..60,
        supervised in any::<bool>(),
    ) {
        let disturbances = vec![(at, Disturbance::StopBox)];
        let report = run(Plan { disturbances, supervised, ..Plan::of(command) });
        prop_assert!(report.writes.len() <= 10, "{:?}", report.writes);
    }
}
