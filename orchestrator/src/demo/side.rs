//! Commands that are hidden from `--help`: the demo's two processes of its own, `darwin demo-provider` and
//! `darwin demo-world`, its crash test, `darwin demo-crash`, and its look at the kernel, `darwin demo-probe`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the driver waits for a line on stdout")]

use std::future::Future;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use nix::sched::{CloneFlags, unshare};
use policy::Exit;

use super::crash::{Plan, crash};
use super::drive::DriveError;
use super::https::ServerError;
use super::provider;
use super::users::UserError;
use super::world::{self, WorldConfig};

/// Arguments of `darwin demo-provider`.
#[derive(Debug, clap::Args)]
pub struct ProviderArgs {
    /// Folder with its certificate, and for its notes
    #[arg(long)]
    folder: PathBuf,
}

/// Arguments of `darwin demo-world`.
#[derive(Debug, clap::Args)]
pub struct WorldArgs {
    /// Folder with certificates and the webhook's secret, and for its notes
    #[arg(long)]
    folder: PathBuf,
    /// The control plane's API socket
    #[arg(long)]
    api: PathBuf,
    /// Address of the market and the name server
    #[arg(long)]
    market: Ipv4Addr,
    /// Address of the library
    #[arg(long)]
    library: Ipv4Addr,
}

/// Arguments of `darwin demo-crash`.
#[derive(Debug, clap::Args)]
pub struct CrashArgs {
    /// How often the control plane is killed, each time in a cull of its own
    #[arg(long, default_value_t = 50)]
    points: u32,
    /// Where the random points come from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the crash test: 0 where every point ended as the undisturbed run, 1 where one did not.
pub fn crash_test(args: &CrashArgs) -> Exit {
    match crash(Plan { points: args.points, seed: args.seed }) {
        Ok((summary, same)) => {
            println!("{summary:#}");
            if same { Exit::Done } else { Exit::Negative }
        }
        Err(error) => {
            eprintln!("darwin demo-crash: cannot {}", crate::cli::with_causes(&error));
            if matches!(error, DriveError::Interrupted) { Exit::Unknown } else { error.exit() }
        }
    }
}

/// Runs the provider until it is stopped.
pub fn provider(args: ProviderArgs) -> Exit {
    run("demo-provider", provider::serve(args.folder, |address| println!("ready {address}")))
}

/// Runs the world until it is stopped.
pub fn world(args: WorldArgs) -> Exit {
    let config = WorldConfig {
        folder: args.folder,
        dns: args.market,
        market: args.market,
        library: args.library,
        api: args.api,
    };
    run("demo-world", world::serve(config, || println!("ready")))
}

/// Tries what every episode needs: namespaces as an ordinary user. 0, or 3 with what to do.
pub fn probe() -> Exit {
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    match unshare(flags) {
        Ok(()) => Exit::Done,
        Err(errno) => {
            eprintln!("{}: {errno}", UserError::Namespace(errno));
            Exit::Usage
        }
    }
}

fn run(name: &str, serving: impl Future<Output = Result<(), ServerError>>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("darwin {name}: cannot start: {error}");
            return Exit::Io;
        }
    };
    match runtime.block_on(serving) {
        Ok(()) => Exit::Done,
        Err(error) => {
            eprintln!("darwin {name}: cannot {}", crate::cli::with_causes(&error));
            Exit::Io
        }
    }
}
