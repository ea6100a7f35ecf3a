//! How a life ends, where the model knows how it must.

use boxes_crds::BoxSpec;
use proptest::prelude::*;

use crate::model::{Command, Crash, Disturbance, OnTerm, Plan, Start, Wait, run};
use crate::plans::{cases, command};

type End = (&'static str, &'static str, Option<i32>, Option<i32>);

/// What a supervisor can report it does, and then it is believed.
fn assert_ends(plan: Plan, expected: End) {
    let supervised = plan.supervised;
    let report = run(plan);
    let (state, reason, code, signal) = expected;
    let expected = (Some(state), Some(reason), code, signal);
    assert_eq!(report.ending(), expected, "{report:#?}");
    let observed = report.status.evidence.as_deref() == Some("Observed");
    if supervised && (code.is_some() || signal.is_some() || reason == "Timeout") {
        assert!(observed, "{report:#?}");
    }
}

/// The end of a command that nobody stops. Only a supervisor can tell a code from a signal.
fn own_end(command: Command, supervised: bool) -> End {
    let shown = command.ends.shown();
    let killed = command.ends == Wait::Signal(9) || !supervised;
    match (command.start, command.ends) {
        (Start::Good, _) if command.oom && shown == 137 && killed => {
            ("Exited", "OOM", Some(137), None)
        }
        (Start::Good, Wait::Signal(number)) if supervised => {
            ("Exited", "Signal", None, Some(number))
        }
        (Start::Good, _) => ("Exited", "Exit", Some(shown), None),
        (Start::NoProgram, _) if supervised => ("Stopped", "StartFailed", Some(127), None),
        _ => ("Stopped", "StartFailed", None, None),
    }
}

/// The end of one that is stopped while it runs.
fn stopped(reason: &'static str, on_term: OnTerm, supervised: bool) -> End {
    match on_term {
        OnTerm::Returns(143) if !supervised => ("Stopped", reason, None, Some(15)),
        OnTerm::Dies => ("Stopped", reason, None, Some(15)),
        OnTerm::Returns(code) => ("Stopped", reason, Some(code), None),
        OnTerm::Ignores => ("Stopped", reason, None, Some(9)),
    }
}

fn with_grace(grace: i64) -> BoxSpec {
    BoxSpec {
        image: "busybox".to_owned(),
        termination_grace_period_seconds: Some(grace),
        ..BoxSpec::default()
    }
}

fn on_term() -> impl Strategy<Value = OnTerm> {
    prop_oneof![
        Just(OnTerm::Dies),
        Just(OnTerm::Ignores),
        prop::sample::select(vec![0, 7, 143]).prop_map(OnTerm::Returns),
    ]
}

fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![
        Just(Crash::Never),
        (1_usize..10).prop_map(Crash::After),
        Just(Crash::Always)
    ]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn what_nobody_stops_ends_as_it_ends(
        command in command(),
        lag in (0_usize..8, 0_usize..8),
        crash in crash(),
        supervised in any::<bool>(),
    ) {
        prop_assume!(command.runs.is_some() && command.start != Start::NoImage);
        let plan = Plan { lag, crash, supervised, ..Plan::of(command) };
        assert_ends(plan, own_end(command, supervised));
    }

    #[test]
    fn what_comes_after_the_end_changes_nothing(
        code in 0_i32..=255,
        late in prop::sample::select(vec![
            Disturbance::StopBox,
            Disturbance::DeletePod { grace: None },
            Disturbance::EvictPod,
            Disturbance::PreemptPod,
            Disturbance::LowerDeadline(2),
            Disturbance::NodeVanishes,
            Disturbance::DeleteBox,
            Disturbance::ForceStop,
        ]),
        at in 18_usize..40,
        lag in (0_usize..8, 0_usize..8),
        supervised in any::<bool>(),
        clock_ahead in -20_i64..20,
    ) {
        // Without a supervisor the times decide.
        let clock_ahead = if supervised { clock_ahead } else { 0 };
        // It ends in moment 12 or before, more than a second earlier.
        let command = Command { pull: 0, ..Command::returning(code, 3) };
        let disturbances = vec![(at, late)];
        let plan = Plan { disturbances, lag, supervised, clock_ahead, ..Plan::of(command) };
        assert_ends(plan, ("Exited", "Exit", Some(code), None));
    }

    #[test]
    fn what_comes_between_the_end_and_the_kubelets_word_changes_nothing(
        code in 0_i32..=255,
        late in prop::sample::select(vec![
            Disturbance::StopBox,
            Disturbance::DeletePod { grace: None },
            Disturbance::EvictPod,
            Disturbance::PreemptPod,
            Disturbance::DeleteBox,
        ]),
        at in 18_usize..50,
        supervised in any::<bool>(),
        clock_ahead in -20_i64..20,
        crash in crash(),
    ) {
        let clock_ahead = if supervised { clock_ahead } else { 0 };
        let silence = (8, Disturbance::KubeletFallsSilent);
        let disturbances = vec![silence, (at, late), (60, Disturbance::KubeletReturns)];
        let command = Command { pull: 0, ..Command::returning(code, 3) };
        let life = Plan { supervised, clock_ahead, ..Plan::of(command) };
        let plan = Plan { disturbances, crash, ..life };
        assert_ends(plan, ("Exited", "Exit", Some(code), None));
    }

    #[test]
    fn a_stop_is_told_by_what_the_command_made_of_it(
        on_term in on_term(),
        grace in 0_i64..6,
        at in 20_usize..60,
        asked in prop::sample::select(vec![
            (Disturbance::StopBox, "Stopped"),
            (Disturbance::DeleteBox, "Stopped"),
            (Disturbance::DeletePod { grace: None }, "PodDeleted"),
            (Disturbance::EvictPod, "Evicted"),
            (Disturbance::PreemptPod, "Preempted"),
            (Disturbance::NodePressure, "Evicted"),
            (Disturbance::DeleteNamespace, "PodDeleted"),
        ]),
        refused in any::<bool>(),
        sidecar in any::<bool>(),
        forges in any::<bool>(),
        crash in crash(),
        supervised in any::<bool>(),
        clock_ahead in -20_i64..20,
    ) {
        let clock_ahead = if supervised { clock_ahead } else { 0 };
        let (how, reason) = asked;
        let mut disturbances = vec![(at, how)];
        if refused {
            disturbances.insert(0, (0, Disturbance::RefuseDeadlines));
        }
        let command = Command { sidecar, forges, ..Command::endless(on_term) };
        let life = Plan { supervised, clock_ahead, ..Plan::of(command) };
        let plan = Plan { spec: with_grace(grace), disturbances, crash, ..life };
        assert_ends(plan, stopped(reason, on_term, supervised));
    }

    #[test]
    fn a_deadline_gives_neither_code_nor_signal(
        on_term in on_term(),
        deadline in 3_i64..20,
        crash in crash(),
        lag in (0_usize..8, 0_usize..8),
        supervised in any::<bool>(),
    ) {
        let spec = BoxSpec { active_deadline_seconds: Some(deadline), ..with_grace(3) };
        let life = Plan::of(Command::endless(on_term));
        let plan = Plan { spec, lag, crash, supervised, ..life };
        assert_ends(plan, ("Exited", "Timeout", None, None));
    }

    #[test]
    fn an_end_before_the_deadline_is_its_own(
        code in 0_i32..=255,
        silent in 0_usize..14,
        supervised in any::<bool>(),
    ) {
        // The kubelet looks only after the deadline, and then says DeadlineExceeded.
        let spec = BoxSpec { active_deadline_seconds: Some(8), ..with_grace(3) };
        let disturbances = vec![
            (silent.max(5), Disturbance::KubeletFallsSilent),
            (60, Disturbance::KubeletReturns),
        ];
        let command = Command { pull: 0, ..Command::returning(code, 5) };
        let plan = Plan { spec, disturbances, supervised, ..Plan::of(command) };
        assert_ends(plan, ("Exited", "Exit", Some(code), None));
    }

    #[test]
    fn a_supervisor_that_is_killed_reports_nothing_and_nobody_speaks_for_it(
        at in 20_usize..60,
        forges in any::<bool>(),
        crash in crash(),
    ) {
        let disturbances = vec![(at, Disturbance::DeletePod { grace: Some(1) })];
        let command = Command { forges, ..Command::endless(OnTerm::Ignores) };
        let life = Plan { supervised: true, ..Plan::of(command) };
        let report = run(Plan { spec: with_grace(9), disturbances, crash, ..life });
        prop_assert_eq!(report.ending(), (Some("Stopped"), Some("PodDeleted"), None, Some(9)));
        prop_assert_eq!(report.status.evidence.as_deref(), Some("Derived"));
        let mut history = report.status.history.iter();
        let exited = history.find(|entry| entry.type_ == "Exited").unwrap();
        prop_assert_eq!(exited.data["report"].as_str(), Some("missing"));
    }

    #[test]
    fn a_deadline_of_the_pod_counts_and_not_one_set_too_late(late in 0_usize..3) {
        let spec = BoxSpec { active_deadline_seconds: Some(6), ..with_grace(3) };
        let disturbances = vec![(late, Disturbance::EditImage)];
        let plan = Plan { spec, disturbances, ..Plan::of(Command::endless(OnTerm::Dies)) };
        assert_ends(plan, ("Exited", "Timeout", None, None));
    }

    #[test]
    fn a_start_that_takes_too_long_has_failed(
        deadline in 1_i64..8,
        sidecar in any::<bool>(),
        unbound in any::<bool>(),
        crash in crash(),
    ) {
        let spec = BoxSpec { start_deadline_seconds: Some(deadline), ..with_grace(3) };
        let command = Command { start: Start::NoImage, sidecar, ..Command::returning(0, 1) };
        let schedules_after = (!unbound).then_some(0);
        let plan = Plan { spec, schedules_after, crash, ..Plan::of(command) };
        assert_ends(plan, ("Stopped", "StartFailed", None, None));
    }

    #[test]
    fn a_node_that_is_gone_ends_its_box(
        at in 20_usize..60,
        how in prop::sample::select(vec![
            vec![Disturbance::NodeVanishes],
            vec![Disturbance::StopBox, Disturbance::NodeVanishes],
            vec![Disturbance::NodeVanishes, Disturbance::DeleteBox],
            vec![Disturbance::KubeletFallsSilent, Disturbance::ConfirmStopped],
            vec![Disturbance::NodeOutOfService, Disturbance::DeleteBox],
        ]),
        crash in crash(),
    ) {
        let disturbances = how.into_iter().map(|it| (at, it)).collect();
        let plan = Plan { disturbances, crash, ..Plan::of(Command::endless(OnTerm::Dies)) };
        assert_ends(plan, ("Stopped", "NodeLost", None, None));
    }

    #[test]
    fn an_unseen_end_is_not_invented(
        at in 20_usize..60,
        how in prop::sample::select(vec![Disturbance::LoseContainer, Disturbance::KubeletForgets]),
        sidecar in any::<bool>(),
        crash in crash(),
    ) {
        let command = Command { sidecar, ..Command::endless(OnTerm::Dies) };
        let plan = Plan { disturbances: vec![(at, how)], crash, ..Plan::of(command) };
        assert_ends(plan, ("Stopped", "PodLost", None, None));
    }

    #[test]
    fn a_pod_that_vanished_is_lost_and_not_made_again(
        at in 20_usize..60,
        and in prop::option::of(prop::sample::select(vec![
            Disturbance::DeleteBox,
            Disturbance::RestartController,
            Disturbance::StopBox,
        ])),
        lag in (0_usize..8, 0_usize..8),
        crash in crash(),
    ) {
        // By then its run is recorded, whatever the lag.
        let mut disturbances = vec![
            (at, Disturbance::StripEvidence),
            (at, Disturbance::DeletePod { grace: Some(0) }),
        ];
        disturbances.extend(and.map(|it| (at, it)));
        let command = Command { pull: 0, ..Command::endless(OnTerm::Dies) };
        let report = run(Plan { disturbances, lag, crash, ..Plan::of(command) });
        prop_assert_eq!(report.ending(), (Some("Stopped"), Some("PodLost"), None, None));
        prop_assert_eq!(report.pods_made, 1);
    }
}
