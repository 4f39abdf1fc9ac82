//! `onionskin assess server --apply`: the server's own encryption turned on, and off again.
//!
//! What is done already is seen from the server each time, never from notes of ours. So a run that
//! was killed, or that waits for a restart, goes on with the same command.
//!
//! | module | what it is |
//! |---|---|
//! | [`state`](self) | what is known of the server before anything is decided |
//! | [`refusals`](self) | states in which nothing is changed |
//! | [`steps`](self) | what there is to do, from the state alone |
//! | [`carry`](self) | how a step is done |
//! | [`keys`](self), [`keyring`](self), [`configuration`](self) | files: keys, manifests, options |
//! | [`process`](self) | the server's process, its program and its options |
//! | [`proof`](self) | a planted text, looked for before and behind |

mod background;
mod carry;
mod configuration;
mod files;
mod keyring;
mod keys;
mod process;
mod proof;
mod refusals;
mod report;
mod request;
mod restart;
mod state;
mod step;
mod steps;
mod tables;

use crate::{AssessError, reader::Reader};
use proof::Proof;
use state::State;
use step::Step;

pub use proof::Planted;
pub use report::{ApplyReport, FORMAT, Outcome, StepReport, VERSION};
pub use request::Request;

/// How often the steps are gone through without a restart. New tables come meanwhile.
const MOST_ROUNDS: u32 = 5;

/// Says what there is to do, or does it.
pub fn apply(request: &Request, tell: &mut dyn FnMut(&str)) -> Result<ApplyReport, AssessError> {
    let mut state = State::read(request)?;
    refuse(&state, request)?;
    let mut report = ApplyReport::of(request, &state.facts);
    if !request.yes {
        let planned = steps::of(&state, request)?;
        report.steps.extend(planned.iter().map(StepReport::planned));
        return Ok(report);
    }
    let mut changer = locked(request)?;
    let mut proof = None;
    if let Some(database) = &request.look.plant {
        let begun = Proof::begin(request, &state, database)?;
        tell(&begun.told());
        proof = Some(begun);
        state = State::read(request)?;
    }
    let (mut restarts, mut rounds) = (0, 0);
    let mut failed: Vec<(Step, String)> = Vec::new();
    let rest = loop {
        let mut restart = None;
        for step in steps::of(&state, request)? {
            if matches!(step, Step::Restart { .. }) {
                restart = Some(step);
                break;
            }
            let done = carry::out(&step, &state, request, &mut changer, tell)?;
            match done {
                Some(why) => failed.push((step, why)),
                None if step.is_done_here() => report.steps.push(StepReport::done(&step)),
                None => {}
            }
        }
        state = State::read(request)?;
        let left = steps::of(&state, request)?;
        let (Some(step), Some(command)) = (restart, &request.restart_with) else {
            // What was set has more to be done behind it. A step that failed stays.
            let more = |step: &Step| step.is_done_here() && !failed.iter().any(|(f, _)| f == step);
            let waits = left.iter().any(|step| matches!(step, Step::Restart { .. }));
            rounds += 1;
            if !waits && rounds < MOST_ROUNDS && left.iter().any(more) {
                continue;
            }
            break left;
        };
        restarts += 1;
        if restarts > 1 {
            return Err(AssessError::State(
                "the server was restarted, and would have to be restarted again: look into its error log".into(),
            ));
        }
        tell(&step.to_string());
        drop(changer);
        restart::with(command, &state, request)?;
        report.steps.push(StepReport::done(&step));
        state = State::read(request)?;
        refuse(&state, request)?;
        changer = locked(request)?;
    };
    for step in &rest {
        report
            .steps
            .push(match failed.iter().find(|(f, _)| f == step) {
                Some((_, why)) => StepReport::left(step, why),
                None => StepReport::planned(step),
            });
    }
    if let Some(proof) = proof {
        let complete = report.count(Outcome::ToDo) == 0;
        report.planted = Some(proof.end(request, complete)?);
    }
    Ok(report)
}

fn refuse(state: &State, request: &Request) -> Result<(), AssessError> {
    let refused = refusals::of(state, request);
    match refused.is_empty() {
        true => Ok(()),
        false => Err(AssessError::State(refused.join("; "))),
    }
}

/// A connection that changes things, one at a time on a server. The lock ends with it; that of
/// a run that was killed, with its last statement.
fn locked(request: &Request) -> Result<Reader, AssessError> {
    let mut reader = Reader::connect_for_changes(&request.look.connect)?;
    let answer = reader.rows("SELECT GET_LOCK('onionskin_apply', 5)")?;
    let got = answer
        .unwrap_or_default()
        .into_iter()
        .flatten()
        .flatten()
        .next();
    match got.as_deref() {
        Some("1") => Ok(reader),
        _ => Err(AssessError::State(
            "another --apply or --revert runs on this server, or the last statement of one that was killed".into(),
        )),
    }
}
