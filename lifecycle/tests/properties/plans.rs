//! Random lives.

use boxes_crds::BoxSpec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::model::{Command, Disturbance, OnTerm, Plan, Start, Wait};

/// The lives of an ordinary run are always the same, so that a change fails only for what it
/// changed. Others are tried with `PROPTEST_RNG_SEED` and more with `PROPTEST_CASES`.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let more = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if more { asked.cases } else { count },
        rng_seed: match asked.rng_seed {
            RngSeed::Random => RngSeed::Fixed(2026),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        failure_persistence: None,
        ..asked
    }
}

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![
        8 => Just(Start::Good),
        1 => Just(Start::NoImage),
        1 => Just(Start::NoProgram),
        1 => Just(Start::Rejected),
        1 => Just(Start::InitFails),
    ]
}

fn on_term() -> impl Strategy<Value = OnTerm> {
    prop_oneof![
        Just(OnTerm::Dies),
        Just(OnTerm::Ignores),
        prop::sample::select(vec![0, 7, 143]).prop_map(OnTerm::Returns),
    ]
}

fn ends() -> impl Strategy<Value = Wait> {
    prop_oneof![
        2 => prop::sample::select(vec![0, 1, 5, 127, 137, 143, 255]).prop_map(Wait::Code),
        1 => prop::sample::select(vec![6, 9, 11, 15, 64]).prop_map(Wait::Signal),
    ]
}

prop_compose! {
    pub(crate) fn command()(
        start in start(),
        pull in 0_i64..6,
        runs in prop::option::of(0_i64..25),
        ends in ends(),
        on_term in on_term(),
        oom in prop::bool::weighted(0.1),
        sidecar in prop::bool::weighted(0.2),
        forges in prop::bool::weighted(0.3),
    ) -> Command {
        Command { start, pull, runs, ends, on_term, oom, sidecar, forges }
    }
}

prop_compose! {
    fn spec()(
        stopped in prop::option::weighted(0.1, Just(true)),
        deadline in prop::option::weighted(0.3, 1_i64..20),
        start_deadline in prop::option::weighted(0.2, 1_i64..10),
        grace in prop::option::of(0_i64..5),
        ttl in prop::option::weighted(0.2, 0_i64..10),
    ) -> BoxSpec {
        BoxSpec {
            image: "busybox".to_owned(),
            stopped,
            active_deadline_seconds: deadline,
            start_deadline_seconds: start_deadline,
            termination_grace_period_seconds: grace,
            ttl_seconds_after_finished: ttl,
            ..BoxSpec::default()
        }
    }
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    use Disturbance as D;
    let fixed = vec![
        D::StopBox,
        D::UnstopBox,
        D::DeleteBox,
        D::DeleteNamespace,
        D::EditImage,
        D::ForceStop,
        D::ConfirmStopped,
        D::EvictPod,
        D::PreemptPod,
        D::NodePressure,
        D::AddForeignFinalizer,
        D::DropForeignFinalizer,
        D::RefuseDeadlines,
        D::ForbidPods,
        D::RefusePods,
        D::AllowPods,
        D::KubeletFallsSilent,
        D::KubeletReturns,
        D::NodeVanishes,
        D::NodeOutOfService,
        D::LoseContainer,
        D::KubeletForgets,
        D::RestartController,
        D::CollectorStops,
        D::CollectorReturns,
        D::StripOutput,
        D::AbandonOutput,
    ];
    prop_oneof![
        12 => prop::sample::select(fixed),
        1 => (1_i64..15).prop_map(D::LowerDeadline),
        1 => prop::option::of(0_u32..3).prop_map(|grace| D::DeletePod { grace }),
    ]
}

prop_compose! {
    /// A life with up to four disturbances, whose caches may lag.
    pub(crate) fn plan()(
        spec in spec(),
        command in command(),
        schedules_after in prop::option::weighted(0.9, 0_i64..8),
        disturbances in prop::collection::vec((0_usize..120, disturbance()), 0..5),
        lag in (0_usize..6, 0_usize..6),
        name_taken in prop::bool::weighted(0.05),
        supervised in any::<bool>(),
        saves_output in prop::option::of(0_usize..60),
    ) -> Plan {
        let life = Plan::of(command);
        Plan { spec, schedules_after, disturbances, lag, name_taken, supervised, saves_output, ..life }
    }
}
