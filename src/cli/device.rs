//! `ptosim device`, `submit` and `inspect`: one window, two processes, and a look at it.

use super::threads::executors;
use super::{Ending, Failure, MachineArgs, print};
use ptosim::engine::threads::mapped::{self, DeviceOptions};
use ptosim::report::count;
use ptosim::workload;
use std::path::PathBuf;

/// Make a window in a file and run the tasks that another process submits to it
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example, in two terminals:
  ptosim device --window-file /dev/shm/window
  ptosim submit --window-file /dev/shm/window bgemm")]
pub struct DeviceArgs {
    /// The file; it is made new
    #[arg(long, value_name = "FILE")]
    window_file: PathBuf,
    #[command(flatten)]
    machine: MachineArgs,
    /// Threads that run blocks, as many as there are workers at most, and 47
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = executors)]
    executors: Option<usize>,
    /// Kernels spin for their cycles instead of doing nothing
    #[arg(long)]
    spin: bool,
}

/// Submit a workload to the window of a device
#[derive(clap::Args, Debug)]
pub struct SubmitArgs {
    /// The file that `ptosim device` made
    #[arg(long, value_name = "FILE")]
    window_file: PathBuf,
    /// Trace file, `-` for standard input, or a generator such as bgemm:batch=2,m=8
    workload: String,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Print the state of a window, also that of a process that died
#[derive(clap::Args, Debug)]
pub struct InspectArgs {
    /// The file
    #[arg(value_name = "FILE")]
    window_file: PathBuf,
}

/// What a thread panics with where the bytes of a window cannot be right becomes part of the error.
fn tell_panics_as_errors() {
    std::panic::set_hook(Box::new(|_| {}));
}

pub fn device(args: &DeviceArgs) -> Result<Ending, Failure> {
    tell_panics_as_errors();
    let machine = args.machine.load()?;
    let options = DeviceOptions { executors: args.executors, spin: args.spin };
    let tasks = mapped::device(&args.window_file, &machine, &options)?;
    print(&format!("ran {tasks} tasks\n"))?;
    Ok(Ending::Good)
}

pub fn submit(args: &SubmitArgs) -> Result<Ending, Failure> {
    tell_panics_as_errors();
    let machine = args.machine.load()?;
    let workload = workload::open(&args.workload)?;
    let submitted = mapped::submit(&args.window_file, workload.as_ref(), &machine)?;
    print(&format!("submitted {} tasks, {} edges; all consumed\n", submitted.tasks, submitted.edges))?;
    if let n_controls @ 1.. = workload.controls()?.len() {
        let commands = count(n_controls as u64, "timed command");
        print(&format!("note: {commands} of the program had no effect: a device follows none\n"))?;
    }
    Ok(Ending::Good)
}

pub fn inspect(args: &InspectArgs) -> Result<Ending, Failure> {
    tell_panics_as_errors();
    print(&mapped::inspect(&args.window_file)?)?;
    Ok(Ending::Good)
}
