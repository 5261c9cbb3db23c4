//! The program as its users meet it: arguments, messages, exit codes, files.

mod arguments;
mod compare;
mod machines;
mod needs_engine;
mod outputs;
mod program;
