//! `darwin judge`: the judge's frame and its strict reader.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use policy::Exit;

use super::document;
use crate::judge::document::{Docket, Frame, Read, render};

/// Arguments of `darwin judge`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Put a docket (JSON on stdin) into requests to the judge
    Render {
        /// Seed of every shuffle, label, sigil and key; drawn from the system if left out
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Read a judge's reply (its text on stdin) to one batch
    Read {
        /// File with the batch, one of those that `render` printed
        #[arg(long)]
        frame: PathBuf,
    },
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    match args.command {
        Command::Render { seed } => run_render(seed),
        Command::Read { frame } => run_read(&frame),
    }
}

/// The system gave no random number.
#[derive(Debug, thiserror::Error)]
#[error("draw a seed; give one with --seed")]
struct SeedError(#[source] io::Error);

fn run_render(seed: Option<u64>) -> Exit {
    let docket: Docket = match document::from_stdin() {
        Ok(docket) => docket,
        Err(error) => return document::unread(&error),
    };
    let seed = match seed.map_or_else(drawn, Ok) {
        Ok(seed) => seed,
        Err(error) => return document::failed(&SeedError(error)),
    };
    match render(&docket, seed) {
        Ok(rendered) => document::print(&rendered, Exit::Done),
        Err(error) => document::wrong(&error),
    }
}

fn drawn() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

fn run_read(frame: &std::path::Path) -> Exit {
    let frame: Frame = match document::from_file(frame) {
        Ok(frame) => frame,
        Err(error) => return document::unread(&error),
    };
    let seats = match frame.seats() {
        Ok(seats) => seats,
        Err(error) => return document::wrong(&error),
    };
    match document::stdin() {
        Ok(reply) => {
            let read = Read::new(&seats, &reply);
            let exit = if read.is_accepted() { Exit::Done } else { Exit::Negative };
            document::print(&read, exit)
        }
        Err(error) => document::unread(&error),
    }
}
