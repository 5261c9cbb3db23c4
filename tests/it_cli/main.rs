//! The program as its users meet it: arguments, messages, exit codes, files.

mod arguments;
mod check;
mod compare;
mod convert;
mod generate;
mod machines;
mod outputs;
#[cfg(target_os = "linux")]
mod processes;
mod program;
mod reports;
mod runs;
