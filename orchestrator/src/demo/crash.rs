//! `darwin demo-crash`: the demo's cull, with the control plane killed at random points of it.
//!
//! The demo is brought to the eve of its first cull once; what the control plane keeps is copied then. Each point
//! begins from that copy, kills the control plane somewhere between its start and the end of the cull, starts it
//! again, and compares the final decisions with those of a run that nobody disturbed. netd, the proxy and the
//! world live on through all of it, as they would on a host.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as HostInstant};

use netd::client::Client;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::drive::{DriveError, Options, Run, STALLED};
use super::evidence::{Docket, Tables};
use super::files::{FIRST_CULL, Places, Rates};
use super::stage::{Stage, StageError, Wanted};
use policy::time::HOUR_MS;

/// Between two looks at the journal while something short is awaited.
const LOOK: Duration = Duration::from_millis(10);

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many points.
    pub points: u32,
    /// Where the random points come from.
    pub seed: u64,
}

/// Runs the plan; the summary, and whether every point ended as the undisturbed run.
///
/// # Errors
/// [`DriveError`].
pub fn crash(plan: Plan) -> Result<(Value, bool), DriveError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DriveError::Start)?;
    let mut run = runtime.block_on(async { Run::new(Options { json: true, ..Options::default() }) })?;
    let mut stage = Stage::build(Wanted { rates: Rates::birth(), live_judge: false })?;
    run.open(&mut stage)?;
    run.give_birth(&mut stage, &runtime)?;
    reach_the_eve(&mut run, &mut stage, &runtime)?;
    let eve = Eve::copy(stage.places(), stage.folder())?;
    let mut world = World { run, stage, runtime, eve };
    let (undisturbed, cull_ms) = world.undisturbed()?;
    let mut random = ChaCha12Rng::seed_from_u64(plan.seed);
    let mut points = Vec::new();
    for point in 0..plan.points {
        let after_ms = random.next_u64() % cull_ms.max(1);
        let after = Duration::from_millis(after_ms);
        let (at_kill, decisions) = world.disturbed(after)?;
        let same = decisions == undisturbed;
        let line = format!("  point {point}: killed after {after:?}, cull {at_kill}; same decisions: {same}");
        world.run.screen.line(&line);
        points.push(json!({"after_ms": after_ms, "at_kill": at_kill, "same": same, "decisions": decisions}));
    }
    let same = points.iter().all(|point| point["same"] == Value::Bool(true));
    world.stage.stop();
    let summary = json!({"seed": plan.seed, "cull_ms": cull_ms, "undisturbed": undisturbed, "points": points, "same": same});
    Ok((summary, same))
}

/// Lets time pass to the last evening before the cull, in small jumps at the end so that it is not passed by.
fn reach_the_eve(run: &mut Run, stage: &mut Stage, runtime: &Runtime) -> Result<(), DriveError> {
    let day_before = FIRST_CULL.plus_ms(-36 * HOUR_MS).ms();
    wait_for(run, stage, runtime, &async |tables: &mut Tables| Ok(tables.last_ms().await? >= day_before))?;
    stage.stop_serve();
    // A jump only after half a second of idleness: time enough to see that the last wake of the day is over.
    stage.set_rates(Rates { busy: 600, idle: 600, idle_max_ms: 500 });
    stage.start_serve()?;
    let evening = FIRST_CULL.plus_ms(-15 * HOUR_MS).ms();
    wait_for(run, stage, runtime, &async |tables: &mut Tables| Ok(tables.last_ms().await? >= evening))?;
    stage.stop_serve();
    stage.set_rates(Rates::default());
    Ok(())
}

/// Waits until the journal shows what is wanted; the clock may not stand still for too long meanwhile.
fn wait_for(
    run: &mut Run,
    stage: &mut Stage,
    runtime: &Runtime,
    wanted: &impl AsyncFn(&mut Tables) -> Result<bool, super::evidence::EvidenceError>,
) -> Result<(), DriveError> {
    let mut tables = runtime.block_on(Tables::open(&stage.places().journal()))?;
    let end = HostInstant::now() + STALLED;
    while !runtime.block_on(wanted(&mut tables))? {
        if HostInstant::now() > end {
            return Err(DriveError::Stalled(STALLED));
        }
        stage.check()?;
        run.pause(runtime, LOOK)?;
    }
    runtime.block_on(tables.close());
    Ok(())
}

/// What the control plane keeps, as it stood on the eve.
struct Eve {
    copy: PathBuf,
    spools: Vec<(PathBuf, u64)>,
}

impl Eve {
    fn copy(places: &Places, folder: &Path) -> Result<Self, DriveError> {
        let copy = folder.join("eve");
        copy_tree(&places.serve, &copy)?;
        let spools = ["netd", "proxy"].map(|source| places.spool_of(source));
        let length = |path: PathBuf| {
            let bytes = fs::metadata(&path).map_or(0, |seen| seen.len());
            (path, bytes)
        };
        Ok(Self { copy, spools: spools.into_iter().map(length).collect() })
    }

    /// Puts everything back: folder, and spools cut to where they were (their writers append).
    fn restore(&self, places: &Places) -> Result<(), DriveError> {
        fs::remove_dir_all(&places.serve).map_err(keeping(&places.serve))?;
        copy_tree(&self.copy, &places.serve)?;
        for (spool, bytes) in &self.spools {
            let file = fs::File::options().write(true).open(spool);
            match file {
                Ok(file) => file.set_len(*bytes).map_err(keeping(spool))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(keeping(spool)(error)),
            }
        }
        Ok(())
    }
}

fn keeping(path: &Path) -> impl Fn(io::Error) -> DriveError {
    let path = path.to_owned();
    move |source| DriveError::Keep { path: path.clone(), source }
}

/// Copies folders and files with their owners and modes; sockets are left out.
fn copy_tree(from: &Path, to: &Path) -> Result<(), DriveError> {
    let seen = fs::symlink_metadata(from).map_err(keeping(from))?;
    if seen.is_dir() {
        fs::create_dir(to).map_err(keeping(to))?;
        for entry in fs::read_dir(from).map_err(keeping(from))?.flatten() {
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        fs::set_permissions(to, seen.permissions()).map_err(keeping(to))?;
    } else if seen.is_file() {
        fs::copy(from, to).map_err(keeping(to))?;
    } else {
        return Ok(());
    }
    chown(to, Some(seen.uid()), Some(seen.gid())).map_err(keeping(to))
}

fn is_the_cull(docket: &Docket) -> bool {
    docket.kind == "cull" && docket.at_ms == FIRST_CULL.ms()
}

struct World {
    run: Run,
    stage: Stage,
    runtime: Runtime,
    eve: Eve,
}

impl World {
    /// The cull with nobody in its way: its decisions, and how long it takes.
    fn undisturbed(&mut self) -> Result<(Value, u64), DriveError> {
        self.eve.restore(self.stage.places())?;
        let began = HostInstant::now();
        self.stage.start_serve()?;
        let decisions = self.finish()?;
        Ok((decisions, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)))
    }

    /// The cull with the control plane killed `after` its start: where the cull stood then, and its decisions.
    fn disturbed(&mut self, after: Duration) -> Result<(String, Value), DriveError> {
        self.eve.restore(self.stage.places())?;
        self.stage.launch_serve()?;
        self.run.pause(&self.runtime, after)?;
        self.stage.kill_serve();
        let state = self.cull_state()?;
        self.stage.start_serve()?;
        Ok((state, self.finish()?))
    }

    fn cull_state(&self) -> Result<String, DriveError> {
        let dockets = self.runtime.block_on(async {
            let mut tables = Tables::open(&self.stage.places().journal()).await?;
            let dockets = tables.dockets().await?;
            tables.close().await;
            Ok::<_, super::evidence::EvidenceError>(dockets)
        })?;
        let cull = dockets.into_iter().find(is_the_cull);
        Ok(cull.map_or_else(|| "not yet scheduled".to_owned(), |cull| cull.state))
    }

    /// Waits for the cull's end, checks the journal, and leaves no run behind.
    fn finish(&mut self) -> Result<Value, DriveError> {
        wait_for(&mut self.run, &mut self.stage, &self.runtime, &async |tables: &mut Tables| {
            let dockets = tables.dockets().await?;
            Ok(dockets.iter().any(|docket| is_the_cull(docket) && docket.state == "done"))
        })?;
        self.stage.kill_serve();
        let finished = self.stage.verify().map_err(StageError::from)?;
        let released = self.wait_until_released()?;
        let mut decisions = self.decisions()?;
        decisions["verified"] = Value::Bool(finished.status.success());
        decisions["released"] = Value::Bool(released);
        Ok(decisions)
    }

    fn wait_until_released(&mut self) -> Result<bool, DriveError> {
        let mut client = Client::connect(self.stage.places().netd_socket())?;
        let end = HostInstant::now() + Duration::from_secs(5);
        while HostInstant::now() < end {
            if client.list()?.is_empty() {
                return Ok(true);
            }
            self.run.pause(&self.runtime, LOOK)?;
        }
        Ok(false)
    }

    fn decisions(&self) -> Result<Value, DriveError> {
        let (cases, log) = self.runtime.block_on(async {
            let mut tables = Tables::open(&self.stage.places().journal()).await?;
            let cases = tables.cases().await?;
            let log: Vec<(String, String)> = tables
                .rows("SELECT kind, agent FROM work_log WHERE kind IN ('death_report', 'no_death_report', 'reprieve')")
                .await?;
            tables.close().await;
            Ok::<_, super::evidence::EvidenceError>((cases, log))
        })?;
        let cases = cases.iter().map(|case| {
            json!([case.agent, case.reason, case.promise, case.decision, case.why, case.rank, case.appeal])
        });
        let mut log: Vec<String> = log.into_iter().map(|(kind, agent)| format!("{agent}: {kind}")).collect();
        log.sort();
        Ok(json!({"cases": cases.collect::<Vec<_>>(), "log": log}))
    }
}
