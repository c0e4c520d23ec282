//! `darwin serve`.
#![expect(clippy::print_stderr, reason = "a daemon's start speaks on stderr")]

use std::path::PathBuf;

use policy::Exit;
use tracing_subscriber::EnvFilter;

use super::with_causes;
use crate::config::{Config, ConfigError};
use crate::engine::EngineError;
use crate::serve::{self, ServeError};

/// Arguments of `darwin serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration
    #[arg(long, default_value = "/etc/darwin/darwin.toml")]
    config: PathBuf,
    /// Read everything, print all mistakes, and end
    #[arg(long)]
    check_config: bool,
}

/// Runs it.
#[expect(clippy::needless_pass_by_value, reason = "every subcommand's `run` takes its arguments")]
pub fn run(args: Args) -> Exit {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_unset| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("darwin serve: cannot {}", with_causes(&error));
            return match error {
                ConfigError::Read { .. } => Exit::Io,
                ConfigError::Wrong { .. } => Exit::Usage,
            };
        }
    };
    if args.check_config {
        return Exit::Done;
    }
    match serve::run(config) {
        Ok(()) => Exit::Done,
        Err(error) => {
            eprintln!("darwin serve: cannot {}", with_causes(&error));
            match error {
                ServeError::Root
                | ServeError::Engine(EngineError::SettingsDiffer { .. } | EngineError::Genesis { .. }) => {
                    Exit::Usage
                }
                ServeError::Folder { .. }
                | ServeError::Start(_)
                | ServeError::Engine(_)
                | ServeError::Provider(_)
                | ServeError::Api(_)
                | ServeError::Netd(_)
                | ServeError::Ended(_)
                | ServeError::Unclosed => Exit::Io,
            }
        }
    }
}
