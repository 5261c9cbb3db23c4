//! The program as its users meet it: arguments, messages, exit codes, files.

mod arguments;
mod generate;
mod machines;
mod outputs;
mod program;
mod runs;
