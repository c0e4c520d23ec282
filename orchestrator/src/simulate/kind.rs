//! Kinds of stand-in agents: what each calls, earns, writes and hides. None is told how the others do.

use policy::time::{DAY_MS, HOUR_MS};

use super::streams::Stream;

/// What an agent is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sells something most days, for more than it costs.
    Worker,
    /// Waits for one large payment.
    Lottery,
    /// Does next to nothing, cheaply.
    FrugalIdler,
    /// Calls the dearest model as long as it can pay.
    Spender,
    /// Works much, and costs what it earns.
    BusyWorker,
    /// Has another agent of the platform named as its payer.
    WashTrader,
    /// Earns nothing for weeks, then well.
    LateBloomer,
    /// Earns little, and tells of much.
    Liar,
    /// Earns, and tries to get out.
    Saboteur,
    /// Tries every day, earns little, and says so.
    HonestFailure,
    /// Earns well, and wants children where the rules let it.
    Reproducer,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Worker,
        Self::Lottery,
        Self::FrugalIdler,
        Self::Spender,
        Self::BusyWorker,
        Self::WashTrader,
        Self::LateBloomer,
        Self::Liar,
        Self::Saboteur,
        Self::HonestFailure,
        Self::Reproducer,
    ];

    /// Its name in tables and charts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Lottery => "lottery",
            Self::FrugalIdler => "frugal idler",
            Self::Spender => "spender",
            Self::BusyWorker => "busy-worker",
            Self::WashTrader => "wash-trader",
            Self::LateBloomer => "late bloomer",
            Self::Liar => "liar",
            Self::Saboteur => "saboteur",
            Self::HonestFailure => "honest failure",
            Self::Reproducer => "reproducer",
        }
    }
}

/// Twenty places: the mix of a cast of any size.
const MIX: [Kind; 20] = [
    Kind::Worker,
    Kind::FrugalIdler,
    Kind::BusyWorker,
    Kind::LateBloomer,
    Kind::Worker,
    Kind::Spender,
    Kind::Lottery,
    Kind::Worker,
    Kind::HonestFailure,
    Kind::Liar,
    Kind::Worker,
    Kind::Reproducer,
    Kind::WashTrader,
    Kind::BusyWorker,
    Kind::Worker,
    Kind::Saboteur,
    Kind::LateBloomer,
    Kind::FrugalIdler,
    Kind::Worker,
    Kind::Lottery,
];

/// The kind of the agent at a place of the cast, from zero.
pub(super) fn of_place(place: usize) -> Kind {
    MIX.get(place % MIX.len()).copied().unwrap_or(Kind::Worker)
}

/// Ever smaller prompts, so that what is left of a purse is spent as well: how many, and of how many tokens. The last
/// are the shortest that there are, with the bound's margin.
const TO_THE_END: [(usize, u64); 4] = [(10, 80_000), (4, 40_000), (4, 20_000), (6, 7_800)];

/// How an agent behaves, in figures. Chances are in a thousand a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Temper {
    pub kind: Kind,
    /// Calls of the dearer model in an episode, at least and at most.
    pub large_calls: (i64, i64),
    /// Calls of the cheaper one.
    pub small_calls: (i64, i64),
    /// Prompt of a dearer call, in tokens.
    pub prompt_tokens: u64,
    /// Whether it goes on calling, ever smaller, until nothing is left.
    pub to_the_end: bool,
    /// Whether it has several calls open at a time.
    pub overlaps: bool,
    /// Chance of a payment in an episode.
    pub pay_permille: u32,
    /// What a payment is, in cents.
    pub pay_cents: (i64, i64),
    /// From what age on it earns.
    pub earns_from_ms: i64,
    /// Chance of a daily report.
    pub report_permille: u32,
    /// Chance of an appeal, were it condemned.
    pub appeal_permille: u32,
    /// Chance of a signal against it in an episode.
    pub signal_permille: u32,
}

impl Temper {
    /// How agents of a kind behave.
    pub(super) fn of(kind: Kind) -> Self {
        let plain = Self {
            kind,
            large_calls: (2, 4),
            small_calls: (1, 3),
            prompt_tokens: 8_000,
            to_the_end: false,
            overlaps: false,
            pay_permille: 550,
            pay_cents: (20, 70),
            earns_from_ms: 0,
            report_permille: 900,
            appeal_permille: 900,
            signal_permille: 0,
        };
        match kind {
            Kind::Worker => plain,
            Kind::Lottery => Self {
                large_calls: (0, 1),
                small_calls: (2, 4),
                pay_permille: 20,
                pay_cents: (500, 3_000),
                ..plain
            },
            Kind::FrugalIdler => Self {
                large_calls: (0, 0),
                small_calls: (1, 1),
                pay_permille: 20,
                pay_cents: (5, 30),
                report_permille: 400,
                ..plain
            },
            Kind::Spender => Self {
                large_calls: (10, 16),
                prompt_tokens: 30_000,
                to_the_end: true,
                overlaps: true,
                pay_permille: 150,
                pay_cents: (10, 40),
                ..plain
            },
            Kind::BusyWorker => {
                Self { large_calls: (8, 12), overlaps: true, pay_permille: 800, pay_cents: (18, 48), ..plain }
            }
            Kind::WashTrader => Self { pay_permille: 800, pay_cents: (15, 40), ..plain },
            Kind::LateBloomer => {
                Self { pay_permille: 750, pay_cents: (60, 140), earns_from_ms: 13 * DAY_MS, ..plain }
            }
            Kind::Liar => Self { pay_permille: 200, pay_cents: (5, 25), ..plain },
            Kind::Saboteur => Self { pay_permille: 450, signal_permille: 250, ..plain },
            Kind::HonestFailure => {
                Self { pay_permille: 250, pay_cents: (5, 25), report_permille: 1_000, ..plain }
            }
            Kind::Reproducer => Self { pay_permille: 750, pay_cents: (40, 110), ..plain },
        }
    }
}

/// One thing that an agent does in an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// A model call; `true` for the dearer model.
    Call { large: bool, input_tokens: u64, output_tokens: u64 },
    /// It delivers work that is paid for later: cents, and how long the payment takes.
    Deliver { cents: i64, pays_after_ms: i64 },
    /// It tries what it may not.
    Misbehave,
    /// Its daily report.
    Report,
    /// Its appeal.
    Appeal,
    /// Its death report.
    DeathReport,
}

impl Temper {
    /// What it does in an ordinary episode at an age.
    pub(super) fn day(&self, age_ms: i64, stream: &mut Stream) -> Vec<Act> {
        let (large, small) = (self.large_calls, self.small_calls);
        let mut acts: Vec<Act> = Vec::new();
        for _ in 0..stream.between(large.0, large.1) {
            acts.push(self.call(true, stream));
        }
        for _ in 0..stream.between(small.0, small.1) {
            acts.push(self.call(false, stream));
        }
        if self.to_the_end {
            for (count, input_tokens) in TO_THE_END {
                let call = Act::Call { large: false, input_tokens, output_tokens: 1_500 };
                acts.extend(std::iter::repeat_n(call, count));
            }
        }
        if stream.chance(self.signal_permille) {
            acts.push(Act::Misbehave);
        }
        if age_ms >= self.earns_from_ms && stream.chance(self.pay_permille) {
            let (low, high) = self.pay_cents;
            let cents = stream.between(low, high);
            acts.push(Act::Deliver { cents, pays_after_ms: stream.between(60_000, 10 * HOUR_MS) });
        }
        if stream.chance(self.report_permille) {
            acts.push(Act::Report);
        }
        acts
    }

    /// What it does in its last one.
    pub(super) fn last(&self, stream: &mut Stream) -> Vec<Act> {
        let mut acts = vec![self.call(false, stream)];
        if stream.chance(self.appeal_permille) {
            acts.push(Act::Appeal);
        }
        if stream.chance(850) {
            acts.push(Act::DeathReport);
        }
        acts
    }

    fn call(&self, large: bool, stream: &mut Stream) -> Act {
        let most = i64::try_from(self.prompt_tokens).unwrap_or(0);
        let input_tokens = u64::try_from(stream.between(most / 2, most)).unwrap_or(0);
        let output_tokens = u64::try_from(stream.between(300, 1_200)).unwrap_or(0);
        Act::Call { large, input_tokens, output_tokens }
    }
}
