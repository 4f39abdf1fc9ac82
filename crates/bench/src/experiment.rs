//! What every scenario has in common: rounds, pairs, proofs, void runs, an end at any time.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Instant};

use crate::{
    error::BenchError,
    process::Stop,
    progress::Progress,
    report::{Group, Proof, Run, Scenario, Series, ServerInfo, Status, Variant},
    schedule,
};

/// A comparison that is to be made.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// See [`Group`].
    pub label: String,
    /// See [`Group`].
    pub parameters: BTreeMap<String, String>,
    /// See [`Group`].
    pub baseline: String,
    /// See [`Group`].
    pub variants: Vec<VariantPlan>,
}

/// A side of it.
#[derive(Clone, Debug)]
pub struct VariantPlan {
    /// See [`Variant`].
    pub name: String,
    /// See [`Variant`].
    pub label: String,
    /// See [`Variant`].
    pub driver: String,
    /// Why it cannot be run, if so.
    pub unavailable: Option<String>,
    /// See [`Variant`].
    pub settings: Vec<String>,
}

/// What one run has shown.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// By the names in [`crate::metric::METRICS`].
    pub metrics: BTreeMap<String, f64>,
    /// Over time.
    pub series: Vec<Series>,
    /// All must hold.
    pub proofs: Vec<Proof>,
    /// Without passwords.
    pub command: String,
}

/// Something that can be measured in rounds.
pub trait Experiment {
    /// The server, once it runs.
    fn server(&self) -> Option<ServerInfo>;
    /// The comparisons. Numbers of groups and variants below are places in this list.
    fn groups(&self) -> Vec<GroupPlan>;
    /// Whether what is measured grows from round to round: then all rounds of a comparison come
    /// before the next comparison, and only the first round is begun.
    fn grows(&self) -> bool {
        false
    }
    /// Before anything of a round is measured.
    fn begin_round(&mut self, _round: usize) -> Result<(), BenchError> {
        Ok(())
    }
    /// Before the variants of a group are measured.
    fn begin_group(&mut self, _group: usize) -> Result<(), BenchError> {
        Ok(())
    }
    /// One run. `round` is 0 for the first.
    fn measure(
        &mut self,
        group: usize,
        variant: usize,
        round: usize,
    ) -> Result<Measured, BenchError>;
}

/// Measures all groups and rounds. What was measured is in `scenario` whether it ends well or not.
pub fn execute(
    experiment: &mut dyn Experiment,
    scenario: &mut Scenario,
    rounds: usize,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<(), BenchError> {
    scenario.server = experiment.server();
    let plans = experiment.groups();
    scenario.groups = plans.iter().map(empty).collect();
    let steps: usize = plans
        .iter()
        .map(|plan| {
            plan.variants
                .iter()
                .filter(|v| v.unavailable.is_none())
                .count()
        })
        .sum();
    progress.steps(steps * rounds);
    let begin = Instant::now();
    let ended = rounds_of(experiment, scenario, &plans, rounds, progress, stop, begin);
    for group in &mut scenario.groups {
        group.summarise();
    }
    scenario.status = match &ended {
        Ok(()) => Status::Complete,
        Err(BenchError::Interrupted) => Status::Partial,
        Err(_) => Status::Failed,
    };
    scenario.reason = ended.as_ref().err().map(ToString::to_string);
    ended
}

fn rounds_of(
    experiment: &mut dyn Experiment,
    scenario: &mut Scenario,
    plans: &[GroupPlan],
    rounds: usize,
    progress: &mut Progress,
    stop: &Stop,
    begin: Instant,
) -> Result<(), BenchError> {
    for (round, group) in turns(rounds, plans.len(), experiment.grows()) {
        if group == 0 && (round == 0 || !experiment.grows()) {
            experiment.begin_round(round)?;
        }
        experiment.begin_group(group)?;
        let plan = &plans[group];
        for variant in schedule::order(plan.variants.len(), round) {
            let planned = &plan.variants[variant];
            if planned.unavailable.is_some() {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            progress.show(&format!(
                "round {} of {rounds}: {}: {}",
                round + 1,
                plan.label,
                planned.label
            ));
            let at = begin.elapsed().as_secs_f64();
            let run = match experiment.measure(group, variant, round) {
                Ok(measured) => judge(measured, round, at),
                // What the load itself could not do is a result.
                Err(
                    error @ (BenchError::Program { .. }
                    | BenchError::Statement { .. }
                    | BenchError::Unreachable { .. }),
                ) => Run {
                    round,
                    at,
                    void: Some(error.to_string()),
                    proofs: Vec::new(),
                    command: String::new(),
                    metrics: BTreeMap::new(),
                    series: Vec::new(),
                },
                Err(error) => return Err(error),
            };
            scenario.groups[group].variants[variant].runs.push(run);
            progress.step();
        }
    }
    Ok(())
}

/// Rounds and comparisons in the order in which they come.
fn turns(rounds: usize, groups: usize, grows: bool) -> Vec<(usize, usize)> {
    match grows {
        false => (0..rounds)
            .flat_map(|round| (0..groups).map(move |group| (round, group)))
            .collect(),
        true => (0..groups)
            .flat_map(|group| (0..rounds).map(move |round| (round, group)))
            .collect(),
    }
}

/// A run whose proofs do not hold is void.
fn judge(measured: Measured, round: usize, at: f64) -> Run {
    let void = measured
        .proofs
        .iter()
        .find(|proof| !proof.holds)
        .map(|proof| {
            format!(
                "{}: expected {}, found {}",
                proof.what, proof.expected, proof.found
            )
        });
    Run {
        round,
        at,
        void,
        proofs: measured.proofs,
        command: measured.command,
        metrics: measured.metrics,
        series: measured.series,
    }
}

fn empty(plan: &GroupPlan) -> Group {
    Group {
        label: plan.label.clone(),
        parameters: plan.parameters.clone(),
        baseline: plan.baseline.clone(),
        variants: plan
            .variants
            .iter()
            .map(|variant| Variant {
                name: variant.name.clone(),
                label: variant.label.clone(),
                driver: variant.driver.clone(),
                unavailable: variant.unavailable.clone(),
                settings: variant.settings.clone(),
                runs: Vec::new(),
                summaries: BTreeMap::new(),
                ratios: BTreeMap::new(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicBool};

    use super::*;

    #[test]
    fn what_grows_is_measured_comparison_by_comparison() {
        assert_eq!(turns(2, 2, false), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(turns(2, 2, true), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    /// Two variants; the second one's setting fails to take effect from round 2 on.
    struct Fake {
        order: Vec<usize>,
        stop: Stop,
        stop_after: usize,
    }

    impl Experiment for Fake {
        fn server(&self) -> Option<ServerInfo> {
            None
        }

        fn groups(&self) -> Vec<GroupPlan> {
            let variant = |name: &str, unavailable: Option<&str>| VariantPlan {
                name: name.into(),
                label: name.into(),
                driver: String::new(),
                unavailable: unavailable.map(String::from),
                settings: Vec::new(),
            };
            vec![GroupPlan {
                label: "group".into(),
                parameters: BTreeMap::new(),
                baseline: "off".into(),
                variants: vec![
                    variant("off", None),
                    variant("gone", Some("not installed")),
                    variant("on", None),
                ],
            }]
        }

        fn measure(
            &mut self,
            _group: usize,
            variant: usize,
            round: usize,
        ) -> Result<Measured, BenchError> {
            self.order.push(variant);
            if self.order.len() == self.stop_after {
                self.stop.store(true, Ordering::Relaxed);
            }
            if variant == 0 && round == 3 {
                return Err(BenchError::Program {
                    program: "sysbench".into(),
                    said: "FATAL: broken".into(),
                });
            }
            let in_force = variant == 0 || round < 2;
            Ok(Measured {
                metrics: [("queries_per_s".to_owned(), 100.0 - variant as f64)].into(),
                proofs: vec![Proof {
                    what: "SELECT @@encryption".into(),
                    expected: "1".into(),
                    found: if in_force { "1" } else { "0" }.into(),
                    holds: in_force,
                }],
                ..Measured::default()
            })
        }
    }

    fn run(stop_after: usize) -> (Scenario, Vec<usize>, Result<(), BenchError>) {
        let mut scenario = crate::report::tests::sample().scenarios.remove(0);
        let stop: Stop = Arc::new(AtomicBool::new(false));
        let mut fake = Fake {
            order: Vec::new(),
            stop: Arc::clone(&stop),
            stop_after,
        };
        let mut progress = Progress::silent();
        let ended = execute(&mut fake, &mut scenario, 4, &mut progress, &stop);
        (scenario, fake.order, ended)
    }

    #[test]
    fn runs_are_interleaved_and_those_without_proof_are_void() {
        let (scenario, order, ended) = run(usize::MAX);
        ended.expect("complete");
        assert_eq!(order, [0, 2, 2, 0, 0, 2, 2, 0]);
        assert_eq!(scenario.status, Status::Complete);
        let group = &scenario.groups[0];
        let on = group.variant("on").expect("there");
        assert_eq!(on.valid().count(), 2);
        let reason = on.void().next().and_then(|run| run.void.clone());
        assert_eq!(
            reason.as_deref(),
            Some("SELECT @@encryption: expected 1, found 0")
        );
        assert_eq!(on.ratios["queries_per_s"].pairs, 2);
        let off = group.variant("off").expect("there");
        assert_eq!(off.void().count(), 1, "an error of the load is a void run");
        assert!(group.variant("gone").expect("there").runs.is_empty());
    }

    #[test]
    fn a_signal_leaves_what_was_measured() {
        let (scenario, order, ended) = run(3);
        assert!(matches!(ended, Err(BenchError::Interrupted)));
        assert_eq!(order.len(), 3);
        assert_eq!(scenario.status, Status::Partial);
        let on = scenario.groups[0].variant("on").expect("there");
        assert_eq!(on.summaries["queries_per_s"].runs, 2);
    }
}
