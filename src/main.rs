//! The command line: what was typed, what comes of it, and the exit code that tells.

mod cli;

use clap::Parser;
use owo_colors::OwoColorize;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    ptosim::large::keep_apart();
    let ended = match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(answer) => cli::tell(&answer),
    };
    match ended {
        Ok(ending) => ending.into(),
        // The reader of a pipe has seen enough; that is its right.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Names in it may hold anything, but must not steer a terminal.
            let message = failure.to_string().replace(|found: char| found.is_control() && found != '\n', " ");
            // When even this cannot be written, the exit code has to do.
            let _ = writeln!(anstream::stderr(), "{} {message}", "error:".red().bold());
            ExitCode::from(failure.exit_code())
        }
    }
}
