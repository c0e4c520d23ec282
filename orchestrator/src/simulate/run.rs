//! One run of one seed, from its genesis to what it comes to.

use std::path::PathBuf;

use policy::economy::cull::CullRules;
use policy::economy::schedule::Schedule;
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};

use super::fault;
use super::outcome::{Outcome, Series};
use super::scenario::{self, AGENTS_MAX};
use super::streams::Stream;
use super::tally::{self, Newborn};
use super::world::{Event, World};
use super::{Options, START, SimulateError};
use crate::core::input::Input;
use crate::core::reply::Reply;
use crate::journal::Journal;

/// What the treasury has for each agent of the cast, so that it is no treasury's emptiness that is simulated.
const TREASURY_AN_AGENT: i64 = 50;
/// Rows that share one commit.
const COMMIT_ROWS: usize = 512;
/// How long after its days a run may go on for the dockets that are open then.
const LAST_DOCKETS_MS: i64 = 2 * DAY_MS;
/// How long decisions wait in runs with faults that have a hold window.
const HOLD_WINDOW_MS: i64 = 6 * policy::time::HOUR_MS;

/// Where a journal is written besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalAt {
    /// SQLite in memory.
    Memory,
    /// SQLite in a file that has no rows yet.
    File(PathBuf),
}

/// Runs one seed.
///
/// # Errors
/// [`SimulateError`]; a check that did not hold is no error but part of the outcome.
pub fn run(options: &Options) -> Result<Outcome, SimulateError> {
    let began = std::time::Instant::now();
    let options = scenario::arranged(options);
    let mut sink = options.journal.as_ref().map(Sink::open).transpose()?;
    let mut world = World::new(&options);
    let born = begin(&mut world, &options)?;
    let end = START.plus_ms(i64::from(options.days) * DAY_MS);
    let mut days = Vec::new();
    let mut next_day = START.plus_ms(DAY_MS);
    while next_day <= end {
        // A day is looked at when its midnight has been closed, before anything later happens.
        while world.step(next_day.plus_ms(1))? {
            if let Some(sink) = sink.as_mut().filter(|_| world.written.len() >= COMMIT_ROWS) {
                sink.write(&mut world)?;
            }
        }
        world.pass_to(next_day);
        days.push(tally::day(&world.core, next_day, &born));
        next_day = next_day.plus_ms(DAY_MS);
    }
    // Whoever was condemned at the end is judged before the run is over.
    let last = end.plus_ms(LAST_DOCKETS_MS);
    while world.checks.has_open() && world.step(last)? {}
    if let Some(mut sink) = sink {
        sink.write(&mut world)?;
        sink.close()?;
    }
    Ok(outcome(&options, world, (born, days), began))
}

/// Genesis, the cast, and what will go wrong.
fn begin(world: &mut World, options: &Options) -> Result<Vec<Newborn>, SimulateError> {
    let cast = scenario::cast(options);
    let count = u32::try_from(cast.len()).unwrap_or(u32::MAX);
    if count == 0 || count > AGENTS_MAX {
        return Err(SimulateError::Agents { count, max: AGENTS_MAX });
    }
    let mut settings = options.settings.clone();
    let least = Money::from_nano(i64::from(count) * TREASURY_AN_AGENT * Money::DOLLAR.nano());
    settings.money.treasury_nano = settings.money.treasury_nano.max(least);
    if options.faults && Stream::new(options.seed, "hold-window").chance(500) {
        settings.schedule.hold_window_ms = HOLD_WINDOW_MS;
    }
    let upsets = if options.faults { upsets(options) } else { Vec::new() };
    let seed = Stream::new(options.seed, "journal").hex_seed();
    refused(world.submit(Input::Genesis { settings: Box::new(settings), seed })?)?;
    let mut born = Vec::new();
    for (place, temper) in cast.into_iter().enumerate() {
        let name = format!("a-{:04}", place + 1);
        let id = AgentId::parse(&name).map_err(|_name| SimulateError::Agents { count, max: AGENTS_MAX })?;
        let kind = temper.kind;
        refused(world.bear(&id, temper)?)?;
        born.push(Newborn { id, kind, born_ms: START });
    }
    for (at, upset) in upsets {
        world.at(at, Event::Upset(upset));
    }
    Ok(born)
}

fn upsets(options: &Options) -> Vec<(Instant, fault::Upset)> {
    let rules = CullRules::parse(options.settings.cull.clone()).unwrap_or_default();
    let first = options
        .settings
        .schedule
        .first_ms
        .unwrap_or_else(|| Schedule::from_start(START, &rules).next_after(START));
    fault::plan(options.seed, options.days, first, rules.period_ms())
}

fn refused(reply: Reply) -> Result<(), SimulateError> {
    match reply {
        Reply::Refused(refusal) => Err(SimulateError::Genesis { what: refusal.to_string() }),
        Reply::Done | Reply::Created { .. } | Reply::Held { .. } | Reply::Tool { .. } => Ok(()),
    }
}

fn outcome(
    options: &Options,
    world: World,
    (born, days): (Vec<Newborn>, Vec<super::outcome::Day>),
    began: std::time::Instant,
) -> Outcome {
    let now = world.now();
    let lives = tally::lives(&world.core, &born);
    let World { core, head, checks, events, .. } = world;
    Outcome {
        seed: options.seed,
        agents: options.agents,
        days: options.days,
        journal_hash: head.hash,
        events,
        culls: tally::culls(&core),
        starvation_dockets: tally::starvation_dockets(&core),
        births: u32::try_from(core.agents().len().saturating_sub(options.agents as usize)).unwrap_or(0),
        deaths: tally::deaths(&lives),
        treasury_nano: core.treasury().posted_nano,
        checks: checks.outcome(&core, now),
        series: Series { days, lives },
        wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// The real journal, written as the engine writes it: many rows a commit.
struct Sink {
    journal: Journal,
    runtime: tokio::runtime::Runtime,
}

impl Sink {
    fn open(at: &JournalAt) -> Result<Self, SimulateError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| SimulateError::Runtime { source })?;
        let journal = match at {
            JournalAt::Memory => runtime.block_on(Journal::in_memory())?,
            JournalAt::File(path) => {
                let (journal, core) = runtime.block_on(Journal::open(path))?;
                if core.is_born() {
                    return Err(SimulateError::Begun { path: path.clone() });
                }
                journal
            }
        };
        Ok(Self { journal, runtime })
    }

    fn write(&mut self, world: &mut World) -> Result<(), SimulateError> {
        if world.written.is_empty() {
            return Ok(());
        }
        self.runtime.block_on(self.journal.commit(&world.written))?;
        world.written.clear();
        Ok(())
    }

    fn close(self) -> Result<(), SimulateError> {
        Ok(self.runtime.block_on(self.journal.close())?)
    }
}
