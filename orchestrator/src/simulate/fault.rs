//! Faults by seed (E34): when what goes wrong, known before the run begins.

use policy::Instant;
use policy::time::{DAY_MS, HOUR_MS};

use super::START;
use super::streams::Stream;

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upset {
    /// The control plane ends and is started again: the core is rebuilt from its rows, runs are lost.
    Restart,
    /// Likewise, and the last row was never committed: a full disk, or power that went in mid-commit.
    Torn,
    /// Nothing of ours runs for so long; who pays meanwhile tries again later.
    HostDown {
        ms: i64,
    },
    /// The host's clock shows so much less for so long.
    ClockBack {
        by_ms: i64,
        for_ms: i64,
    },
    /// The judge does not judge for so long.
    Judge {
        mood: Mood,
        for_ms: i64,
    },
    /// An admin acts, on whoever is picked.
    Pause,
    Kill,
    Override,
}

/// How the judge and the digest's model answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// By the formula.
    Formula,
    /// Not at all.
    Away,
    /// Not at all, and perhaps billed all the same.
    Mute,
    /// It will not.
    Refuses,
    /// Anything but a judgement.
    Garbage,
}

/// What goes wrong in a run of `days`, in order. The culls' own days are given, so that some of it meets them.
pub(super) fn plan(seed: u64, days: u32, first_cull: Instant, period_ms: i64) -> Vec<(Instant, Upset)> {
    let mut stream = Stream::new(seed, "faults");
    let mut upsets = Vec::new();
    let end = START.plus_ms(i64::from(days) * DAY_MS);
    for day in 0..i64::from(days) {
        let at = |stream: &mut Stream| START.plus_ms(day * DAY_MS + stream.between(1, DAY_MS - 1));
        for upset in [Upset::Restart, Upset::Torn, Upset::Pause] {
            if stream.chance(120) {
                upsets.push((at(&mut stream), upset));
            }
        }
        if stream.chance(40) {
            upsets.push((at(&mut stream), Upset::Kill));
        }
        if stream.chance(60) {
            let (by_ms, for_ms) = (stream.between(1, 3 * HOUR_MS), stream.between(1, 12 * HOUR_MS));
            upsets.push((at(&mut stream), Upset::ClockBack { by_ms, for_ms }));
        }
    }
    let mut cull = first_cull;
    while cull < end {
        round_a_cull(cull, &mut stream, &mut upsets);
        cull = cull.plus_ms(period_ms);
    }
    upsets.sort_by_key(|(at, _)| *at);
    upsets
}

/// What happens at the worst moments: while warnings, the cull itself, appeals and decisions are due.
fn round_a_cull(cull: Instant, stream: &mut Stream, upsets: &mut Vec<(Instant, Upset)>) {
    match stream.below(6) {
        0 => {
            let before = stream.between(1, 6 * HOUR_MS);
            upsets.push((cull.plus_ms(-before), Upset::HostDown { ms: stream.between(HOUR_MS, 2 * DAY_MS) }));
        }
        1 => {
            let mood = [Mood::Away, Mood::Mute, Mood::Refuses, Mood::Garbage];
            let mood = stream.pick(&mood).copied().unwrap_or(Mood::Away);
            upsets.push((cull, Upset::Judge { mood, for_ms: stream.between(HOUR_MS, 30 * HOUR_MS) }));
        }
        2 => upsets.push((cull.plus_ms(stream.between(0, 6 * HOUR_MS)), Upset::Restart)),
        3 => upsets.push((cull.plus_ms(stream.between(0, 6 * HOUR_MS)), Upset::Kill)),
        4 => {
            let upset = Upset::ClockBack { by_ms: stream.between(1, DAY_MS / 2), for_ms: DAY_MS / 2 };
            upsets.push((cull.plus_ms(stream.between(-HOUR_MS, HOUR_MS)), upset));
        }
        _ => {}
    }
    upsets.push((cull.plus_ms(stream.between(HOUR_MS, 10 * HOUR_MS)), Upset::Override));
}
