//! The command line: reads it whole, runs it, says the exit code.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Parser, Subcommand};
use policy::image::{Policy, Severity, Thresholds, escape};
use policy::{Exit, Instant, Mistake};

use crate::policy_file;
use crate::{AuditError, Limits, Report, Source, SourceError, audit_platform};

/// Fails a build whose image carries setuid bits, capabilities or, from `--fail-on medium` on, forbidden binaries.
#[derive(Debug, Parser)]
#[command(name = "image-audit", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Audit an image: exit 0 clean, 1 refused, 2 could not tell, 3 usage or policy error, 4 I/O.
    Scan(Scan),
    /// Print the built-in policy, or check one of your own.
    #[command(subcommand)]
    Policy(PolicyCommand),
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Print the built-in policy.
    Default,
    /// Read a policy and name every mistake in it; exit 3 if there is one.
    Check {
        /// The policy.
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Scan {
    /// `dir:ROOTFS`, `docker-archive:F`, `oci:DIR`, `oci-archive:F`, `tar:F`, `-`, or a bare path.
    source: String,
    /// Write the report as FORMAT (human or json) to FILE, or to standard output; may be repeated.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]")]
    output: Vec<String>,
    /// A policy that extends the built-in one.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Audit the images of one platform alone, like linux/amd64; all of them otherwise.
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<String>,
    /// The severity that fails the build: info, low, medium or high.
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<String>,
}

/// Why a command gave no report, or could not write it.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The source is none that this version reads.
    #[error("use the source")]
    Source(#[from] SourceError),
    /// No such severity.
    #[error("use --fail-on {0:?}: it is one of info, low, medium, high")]
    FailOn(String),
    /// No such output.
    #[error("use -o {0:?}: it is human or json, then perhaps =FILE; this version writes no other format")]
    Output(String),
    /// The policy is not there or may not be read.
    #[error("read the policy {place}")]
    ReadPolicy {
        /// The file.
        place: String,
        /// What the host said.
        source: io::Error,
    },
    /// The policy has mistakes.
    #[error("use the policy:\n  {}", mistakes.iter().map(|m| format!("{place}:{m}")).collect::<Vec<_>>().join("\n  "))]
    Policy {
        /// The file.
        place: String,
        /// All of them.
        mistakes: Vec<Mistake>,
    },
    /// There is no report.
    #[error("audit {place}")]
    Audit {
        /// The source, as it was given.
        place: String,
        /// Why.
        source: AuditError,
    },
    /// The report could not be written.
    #[error("write the report to {place}")]
    Write {
        /// A file, or standard output.
        place: String,
        /// What the host said.
        source: io::Error,
    },
}

impl CliError {
    /// The exit code that says so.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Source(_) | Self::FailOn(_) | Self::Output(_) | Self::Policy { .. } => Exit::Usage,
            Self::Audit { source, .. } => source.exit(),
            Self::Write { .. } | Self::ReadPolicy { .. } => Exit::Io,
        }
    }
}

/// Runs what was asked for.
///
/// # Errors
/// [`CliError`], with the exit code that it stands for.
pub fn run(cli: &Cli) -> Result<Exit, CliError> {
    match &cli.command {
        Command::Scan(scan) => run_scan(scan),
        Command::Policy(PolicyCommand::Default) => print(&policy_file::default_text()),
        Command::Policy(PolicyCommand::Check { file }) => {
            let policy = read_policy(file)?;
            print(&format!("{}: no mistake; {} allowances\n", file.display(), policy.allows.len()))
        }
    }
}

fn print(text: &str) -> Result<Exit, CliError> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|source| CliError::Write { place: "standard output".into(), source })?;
    Ok(Exit::Done)
}

fn read_policy(file: &Path) -> Result<Policy, CliError> {
    let place = file.display().to_string();
    let text =
        fs::read_to_string(file).map_err(|source| CliError::ReadPolicy { place: place.clone(), source })?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Instant::from_ms(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX));
    policy_file::parse(&text, now).map_err(|mistakes| CliError::Policy { place, mistakes })
}

/// Everything of the command line is read before the image is: a mistake in it must not cost a scan.
fn run_scan(scan: &Scan) -> Result<Exit, CliError> {
    let source = Source::parse(&scan.source)?;
    let mut policy = scan.policy.as_deref().map(read_policy).transpose()?.unwrap_or_default();
    if let Some(name) = &scan.fail_on {
        let severity = Severity::parse(name).ok_or_else(|| CliError::FailOn(name.clone()))?;
        policy.fail_on = Thresholds::all(severity);
    }
    let outputs = scan.output.iter().map(|text| Output::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let failed = |error| CliError::Audit { place: escape(source.to_string().as_bytes()), source: error };
    let report =
        audit_platform(&source, &policy, &Limits::default(), scan.platform.as_deref()).map_err(failed)?;
    if outputs.is_empty() {
        Output { format: Format::Human, file: None }.write(&report)?;
    }
    outputs.iter().try_for_each(|output| output.write(&report))?;
    Ok(report.verdict().exit())
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Human,
    Json,
}

#[derive(Debug)]
struct Output {
    format: Format,
    file: Option<PathBuf>,
}

impl Output {
    fn parse(text: &str) -> Result<Self, CliError> {
        let (format, file) = match text.split_once('=') {
            Some((_, "")) => return Err(CliError::Output(text.into())),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "human" => Format::Human,
            "json" => Format::Json,
            _ => return Err(CliError::Output(text.into())),
        };
        Ok(Self { format, file })
    }

    fn write(&self, report: &Report) -> Result<(), CliError> {
        let text = match self.format {
            Format::Human => report.to_human(),
            Format::Json => report.to_json(),
        };
        let written = match &self.file {
            Some(file) => fs::write(file, text),
            None => io::stdout().lock().write_all(text.as_bytes()),
        };
        let place =
            self.file.as_ref().map_or_else(|| "standard output".into(), |file| file.display().to_string());
        written.map_err(|source| CliError::Write { place, source })
    }
}
