//! `man-pages DIR`: a page for each program and each subcommand that people see.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;

fn main() -> anyhow::Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).context("usage: man-pages DIR")?.into();
    std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
    for program in [
        orchestrator::cli::Cli::command(),
        netd::cli::Cli::command(),
        proxy::cli::Cli::command(),
        image_audit::cli::Cli::command(),
    ] {
        let name = program.get_name().to_owned();
        write(&dir, &name, program)?;
    }
    Ok(())
}

fn write(dir: &Path, name: &str, command: clap::Command) -> anyhow::Result<()> {
    let mut page = Vec::new();
    let command = command.name(name.to_owned());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        write(dir, &format!("{name}-{}", sub.get_name()), sub.clone())?;
    }
    clap_mangen::Man::new(command).render(&mut page)?;
    let path = dir.join(format!("{name}.1"));
    std::fs::write(&path, page).with_context(|| format!("write {}", path.display()))
}
