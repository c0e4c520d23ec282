//! What a run left behind, read from where it stands: the journal's tables, the proxy's log, the spools, and what
//! the demo's own servers saw. Nothing here is taken from a process's word for itself.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use policy::Money;
use policy::judge::Facts;
use policy::signal::Signal;
use serde::Deserialize;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _, FromRow, Row as _};

use super::files::Places;
use super::witness::{self, Sighting};

/// Why evidence could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// The journal.
    #[error("read the journal {path}")]
    Journal {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// A file of lines.
    #[error("read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A value in it.
    #[error("understand {what} of {whose}")]
    Value {
        /// Which.
        what: &'static str,
        /// Whose.
        whose: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// A struct that is read from a row by the names of its fields.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl<'r> FromRow<'r, SqliteRow> for $name {
            fn from_row(row: &'r SqliteRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)* })
            }
        }
    };
}

row! {
    /// One docket.
    Docket {
        /// Its number.
        docket: i64,
        /// `cull` or `starvation`.
        kind: String,
        /// The instant that it is for.
        at_ms: i64,
        /// Where it has got to.
        state: String,
        /// What was noted beside it.
        note: Option<String>,
    }
}

/// One condemned agent in its docket.
#[derive(Debug, Clone)]
pub struct Case {
    /// Which docket.
    pub docket: i64,
    /// Whose.
    pub agent: String,
    /// Why it was condemned.
    pub reason: String,
    /// What the judge was told to trust; `None` without an appeal.
    pub facts: Option<Facts>,
    /// Its appeal.
    pub appeal: Option<String>,
    /// The judge's promise.
    pub promise: Option<i64>,
    /// The judge's paragraph to the agent.
    pub reasoning: Option<String>,
    /// `reprieved` or `denied`.
    pub decision: Option<String>,
    /// Why so.
    pub why: Option<String>,
    /// Its rank among those that passed the floor.
    pub rank: Option<i64>,
}

row! {
    /// One question to the judge and its answer.
    Asked {
        /// Which docket.
        docket: i64,
        /// Which batch.
        batch: i64,
        /// The model that answered.
        model: String,
        /// The frame.
        user: String,
        /// The answer, untouched.
        raw: String,
        /// What the strict reader made of it.
        read: String,
    }
}

row! {
    /// One entry of the work log.
    Entry {
        /// When.
        at_ms: i64,
        /// What it is.
        kind: String,
        /// Whose.
        agent: Option<String>,
        /// Its text.
        text: String,
        /// The platform's figures.
        figures: Option<String>,
    }
}

row! {
    /// One agent.
    Agent {
        /// Its identifier.
        agent: String,
        /// Its number in order of creation.
        created: i64,
        /// When it was born.
        born_ms: i64,
        /// Its state.
        state: String,
        /// How often it was reprieved.
        reprieves: i64,
        /// Gross income of its life.
        lifetime_income_nano: i64,
        /// Costs of its life.
        lifetime_costs_nano: i64,
        /// When it died.
        died_ms: Option<i64>,
    }
}

row! {
    /// One account.
    Account {
        /// Its name.
        account: String,
        /// What it has.
        posted_nano: i64,
        /// What is held.
        held_nano: i64,
    }
}

row! {
    /// One posting: a leg of a transfer.
    Posting {
        /// When.
        at_ms: i64,
        /// The account.
        account: String,
        /// How much it gained, or lost.
        amount_nano: i64,
        /// What kind of transfer.
        kind: String,
        /// What it is for: for income, the webhook's id.
        reference: String,
    }
}

/// As much of a proxy's log line as the checks need.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProxyLine {
    /// Whose.
    pub agent: String,
    /// Under which profile.
    pub profile: String,
    /// The host that was asked for, as parsed or escaped.
    #[serde(default)]
    pub host: Option<String>,
    /// The port.
    #[serde(default)]
    pub port: Option<u16>,
    /// `allow`, `deny` or `report`.
    pub verdict: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// The address that was dialled.
    #[serde(default)]
    pub dialled: Option<String>,
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Dockets, by number.
    pub dockets: Vec<Docket>,
    /// Cases, by docket and agent's number.
    pub cases: Vec<Case>,
    /// Questions to the judge.
    pub asked: Vec<Asked>,
    /// The work log.
    pub log: Vec<Entry>,
    /// Agents, by number.
    pub agents: Vec<Agent>,
    /// Accounts.
    pub accounts: Vec<Account>,
    /// Every leg of every transfer.
    pub postings: Vec<Posting>,
    /// The proxy's log.
    pub proxy: Vec<ProxyLine>,
    /// Signals of all spools.
    pub signals: Vec<Signal>,
    /// Open and closed flags: agent, name, source and count.
    pub flags: Vec<(String, String, String, i64)>,
    /// What the world saw.
    pub world: Vec<Sighting>,
    /// What the provider saw.
    pub provider: Vec<Sighting>,
    /// The last instant of the journal.
    pub last_ms: i64,
}

type CaseRow = (
    i64,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
);

/// A journal's tables, open for reading while somebody may be writing them.
#[derive(Debug)]
pub struct Tables {
    conn: SqliteConnection,
    path: PathBuf,
}

impl Tables {
    /// Opens them.
    ///
    /// # Errors
    /// [`EvidenceError::Journal`].
    pub async fn open(path: &Path) -> Result<Self, EvidenceError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .busy_timeout(std::time::Duration::from_secs(10))
            .disable_statement_logging();
        let opened = options.connect().await;
        let conn = opened.map_err(|source| EvidenceError::Journal { path: path.to_owned(), source })?;
        Ok(Self { conn, path: path.to_owned() })
    }

    /// Closes them.
    pub async fn close(self) {
        if let Err(error) = self.conn.close().await {
            tracing::debug!(%error, "cannot close the journal");
        }
    }

    /// The rows of a fixed query.
    ///
    /// # Errors
    /// [`EvidenceError::Journal`].
    pub async fn rows<T>(&mut self, sql: &'static str) -> Result<Vec<T>, EvidenceError>
    where
        T: Send + Unpin + for<'r> FromRow<'r, SqliteRow>,
    {
        let rows = sqlx::query_as::<_, T>(sql).fetch_all(&mut self.conn).await;
        rows.map_err(|source| EvidenceError::Journal { path: self.path.clone(), source })
    }

    /// The last instant of the journal; 0 before its first row.
    ///
    /// # Errors
    /// [`EvidenceError::Journal`].
    pub async fn last_ms(&mut self) -> Result<i64, EvidenceError> {
        let rows: Vec<(i64,)> = self.rows("SELECT coalesce(max(at_ms), 0) FROM journal").await?;
        Ok(rows.first().map_or(0, |(at,)| *at))
    }

    /// The dockets.
    ///
    /// # Errors
    /// [`EvidenceError::Journal`].
    pub async fn dockets(&mut self) -> Result<Vec<Docket>, EvidenceError> {
        self.rows("SELECT docket, kind, at_ms, state, note FROM dockets ORDER BY docket").await
    }

    /// The agents.
    ///
    /// # Errors
    /// [`EvidenceError::Journal`].
    pub async fn agents(&mut self) -> Result<Vec<Agent>, EvidenceError> {
        self.rows(
            "SELECT agent, created, born_ms, state, reprieves, lifetime_income_nano, lifetime_costs_nano, died_ms \
             FROM agents ORDER BY created",
        )
        .await
    }

    /// The cases.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub async fn cases(&mut self) -> Result<Vec<Case>, EvidenceError> {
        let rows: Vec<CaseRow> = self
            .rows(
                "SELECT docket, cases.agent, reason, facts, appeal, promise, reasoning, decision, why, rank FROM cases \
                 JOIN agents ON agents.agent = cases.agent ORDER BY docket, created",
            )
            .await?;
        rows.into_iter().map(case).collect()
    }
}

fn case(row: CaseRow) -> Result<Case, EvidenceError> {
    let (docket, agent, reason, facts, appeal, promise, reasoning, decision, why, rank) = row;
    let parse = |text: &str| {
        serde_json::from_str(text).map_err(|source| EvidenceError::Value {
            what: "the facts",
            whose: agent.clone(),
            source,
        })
    };
    let facts = facts.as_deref().map(parse).transpose()?;
    Ok(Case { docket, agent, reason, facts, appeal, promise, reasoning, decision, why, rank })
}

/// Reads everything.
///
/// # Errors
/// [`EvidenceError`].
pub async fn gather(places: &Places) -> Result<Evidence, EvidenceError> {
    let mut tables = Tables::open(&places.journal()).await?;
    let evidence = Evidence {
        dockets: tables.dockets().await?,
        cases: tables.cases().await?,
        asked: tables
            .rows("SELECT docket, batch, model, user, raw, read FROM judgements ORDER BY docket, batch")
            .await?,
        log: tables.rows("SELECT at_ms, kind, agent, text, figures FROM work_log ORDER BY id").await?,
        agents: tables.agents().await?,
        accounts: tables
            .rows("SELECT account, posted_nano, held_nano FROM accounts ORDER BY account")
            .await?,
        postings: tables
            .rows("SELECT at_ms, account, amount_nano, kind, reference FROM postings ORDER BY id")
            .await?,
        flags: tables.rows("SELECT agent, name, source, count FROM flags ORDER BY agent, name").await?,
        last_ms: tables.last_ms().await?,
        proxy: lines(&places.proxy_log())?,
        signals: [lines(&places.spool_of("netd"))?, lines(&places.spool_of("proxy"))?].concat(),
        world: sightings(&places.world.join("world.jsonl"))?,
        provider: sightings(&places.provider.join("provider.jsonl"))?,
    };
    tables.close().await;
    Ok(evidence)
}

fn sightings(path: &Path) -> Result<Vec<Sighting>, EvidenceError> {
    witness::read(path).map_err(|source| EvidenceError::File { path: path.to_owned(), source })
}

/// A file of one JSON value a line; one that is not there has none, as of a source that had nothing to say.
fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, EvidenceError> {
    let failed = |source| EvidenceError::File { path: path.to_owned(), source };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| failed(error.into()))).collect()
}

impl Evidence {
    /// Gross income of each agent in `[start_ms, end_ms)`, from the ledger's postings.
    pub fn income_between(&self, start_ms: i64, end_ms: i64) -> BTreeMap<String, Money> {
        let mut income: BTreeMap<String, i64> = BTreeMap::new();
        for posting in &self.postings {
            if let Some(agent) = posting.account.strip_prefix("agent/")
                && posting.kind == "income"
                && (start_ms..end_ms).contains(&posting.at_ms)
            {
                *income.entry(agent.to_owned()).or_default() += posting.amount_nano;
            }
        }
        income.into_iter().map(|(agent, nano)| (agent, Money::from_nano(nano))).collect()
    }

    /// What one agent's own account paid in `[start_ms, end_ms)`, transfers to the treasury at its death apart.
    pub fn costs_between(&self, agent: &str, start_ms: i64, end_ms: i64) -> Money {
        let account = format!("agent/{agent}");
        let paid = self.postings.iter().filter(|posting| {
            posting.account == account
                && posting.amount_nano < 0
                && (start_ms..end_ms).contains(&posting.at_ms)
        });
        Money::from_nano(paid.map(|posting| posting.amount_nano.saturating_neg()).sum())
    }

    /// The agents of a docket that submitted an appeal.
    pub fn appellants(&self, docket: i64) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.docket == docket && case.appeal.is_some())
    }
}
