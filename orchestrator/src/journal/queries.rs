//! Every statement that reaches the database. They keep to what SQLite and PostgreSQL share.

use policy::Instant;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::chain::{Head, Record};
use crate::core::row::{Cell, Row, Table};

/// Rows that are read at a time.
const PAGE: i64 = 1_000;

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, SqliteArguments>;

/// Makes the tables that are missing.
pub(super) async fn create(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let fixed = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS journal (seq BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, input TEXT NOT NULL,
            reply TEXT NOT NULL, effects TEXT NOT NULL, hash TEXT NOT NULL);
        CREATE VIEW IF NOT EXISTS postings AS
            SELECT id, at_ms, debit AS account, -amount_nano AS amount_nano, kind, reference, seq FROM transfers
            UNION ALL
            SELECT id, at_ms, credit AS account, amount_nano, kind, reference, seq FROM transfers;";
    for table in Table::ALL {
        run(conn, &create_table(table)).await?;
    }
    sqlx::raw_sql(fixed).execute(conn).await.map(|_done| ())
}

/// Begins a transaction that sees one state of the database.
pub(super) async fn begin(
    conn: &mut SqliteConnection,
) -> Result<sqlx::Transaction<'_, sqlx::Sqlite>, sqlx::Error> {
    conn.begin().await
}

pub(super) async fn meta(conn: &mut SqliteConnection, key: &str) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(key).fetch_optional(conn).await
}

pub(super) async fn write_meta(
    conn: &mut SqliteConnection,
    key: &str,
    value: &str,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    sqlx::query(sql).bind(key).bind(value).execute(conn).await.map(|_done| ())
}

/// Whether the database has a journal's tables at all.
pub(super) async fn is_journal(conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('meta', 'journal')";
    sqlx::query_scalar::<_, i64>(sql).fetch_one(conn).await.map(|count| count == 2)
}

/// Whether the journal has a row.
pub(super) async fn has_rows(conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let first = sqlx::query_scalar::<_, i64>("SELECT seq FROM journal LIMIT 1").fetch_optional(conn).await?;
    Ok(first.is_some())
}

pub(super) async fn append(conn: &mut SqliteConnection, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO journal (seq, at_ms, input, reply, effects, hash) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(signed(record.seq))
    .bind(record.at_ms.ms())
    .bind(&record.input)
    .bind(&record.reply)
    .bind(&record.effects)
    .bind(&record.hash)
    .execute(conn)
    .await
    .map(|_done| ())
}

/// The rows after `after`, a page of them.
pub(super) async fn page(conn: &mut SqliteConnection, after: u64) -> Result<Vec<Record>, sqlx::Error> {
    let sql =
        "SELECT seq, at_ms, input, reply, effects, hash FROM journal WHERE seq > $1 ORDER BY seq LIMIT $2";
    let rows = sqlx::query(sql).bind(signed(after)).bind(PAGE).fetch_all(conn).await?;
    rows.iter().map(record).collect()
}

/// Writes a row of a table of projections, over the one with the same key.
pub(super) async fn project(conn: &mut SqliteConnection, row: &Row, seq: u64) -> Result<(), sqlx::Error> {
    let query = sqlx::query(AssertSqlSafe(upsert(row.table)));
    let bound = row.cells.iter().fold(query, bind);
    bound.bind(signed(seq)).execute(conn).await.map(|_done| ())
}

/// Everything in a table of projections, with the journal row that wrote it.
pub(super) async fn projected(
    conn: &mut SqliteConnection,
    table: Table,
) -> Result<Vec<(Vec<Cell>, u64)>, sqlx::Error> {
    let sql = format!("SELECT {}, seq FROM {}", table.columns().join(", "), table.name());
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let count = table.columns().len();
            let cells = (0..count).map(|at| cell(row, at)).collect::<Result<Vec<_>, _>>()?;
            Ok((cells, unsigned(row.try_get(count)?)))
        })
        .collect()
}

async fn run(conn: &mut SqliteConnection, sql: &str) -> Result<(), sqlx::Error> {
    // Put together from the names in `Table` alone.
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await.map(|_done| ())
}

/// Columns whose name ends in a unit of time or money, or that count, hold numbers; the rest text.
fn create_table(table: Table) -> String {
    let column = |name: &&str| {
        let kind = if is_number(name) { "BIGINT" } else { "TEXT" };
        format!("{name} {kind}")
    };
    let columns: Vec<String> = table.columns().iter().map(column).collect();
    let key = table.columns().first().copied().unwrap_or("id");
    format!(
        "CREATE TABLE IF NOT EXISTS {} ({}, seq BIGINT NOT NULL, PRIMARY KEY ({key}))",
        table.name(),
        columns.join(", ")
    )
}

fn is_number(column: &str) -> bool {
    column.ends_with("_ms")
        || column.ends_with("_nano")
        || matches!(
            column,
            "id" | "created"
                | "paused"
                | "reprieves"
                | "exempt"
                | "docket"
                | "batch"
                | "promise"
                | "rank"
                | "count"
        )
}

fn upsert(table: Table) -> String {
    let columns = table.columns();
    let marks: Vec<String> = (1..=columns.len() + 1).map(|at| format!("${at}")).collect();
    let key = columns.first().copied().unwrap_or("id");
    let rest: Vec<String> =
        columns.iter().skip(1).chain(&["seq"]).map(|name| format!("{name} = excluded.{name}")).collect();
    format!(
        "INSERT INTO {} ({}, seq) VALUES ({}) ON CONFLICT ({key}) DO UPDATE SET {}",
        table.name(),
        columns.join(", "),
        marks.join(", "),
        rest.join(", ")
    )
}

fn bind<'q>(query: Query<'q>, cell: &'q Cell) -> Query<'q> {
    match cell {
        Cell::Null => query.bind(None::<i64>),
        Cell::Int(value) => query.bind(*value),
        Cell::Text(text) => query.bind(text.as_str()),
    }
}

/// A cell as it stands, whatever its column was declared as: a changed type is a changed value.
fn cell(row: &SqliteRow, at: usize) -> Result<Cell, sqlx::Error> {
    use sqlx::{TypeInfo as _, ValueRef as _};
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    match value.type_info().name() {
        "TEXT" => row.try_get::<String, _>(at).map(Cell::Text),
        _ => row.try_get::<i64, _>(at).map(Cell::Int),
    }
}

fn record(row: &SqliteRow) -> Result<Record, sqlx::Error> {
    Ok(Record {
        seq: unsigned(row.try_get(0)?),
        at_ms: Instant::from_ms(row.try_get(1)?),
        input: row.try_get(2)?,
        reply: row.try_get(3)?,
        effects: row.try_get(4)?,
        hash: row.try_get(5)?,
    })
}

/// The head that the journal states.
pub(super) async fn head(conn: &mut SqliteConnection) -> Result<Head, sqlx::Error> {
    let seq = meta(conn, "head_seq").await?.and_then(|text| text.parse().ok());
    let hash = meta(conn, "head_hash").await?;
    Ok(match (seq, hash) {
        (Some(seq), Some(hash)) => Head { seq, hash },
        _ => Head::empty(),
    })
}

pub(super) async fn write_head(conn: &mut SqliteConnection, head: &Head) -> Result<(), sqlx::Error> {
    write_meta(conn, "head_seq", &head.seq.to_string()).await?;
    write_meta(conn, "head_hash", &head.hash).await
}

fn signed(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn unsigned(seq: i64) -> u64 {
    u64::try_from(seq).unwrap_or(0)
}
