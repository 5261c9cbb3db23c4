//! `ptosim convert`: any workload in any format.

use super::files::Files;
use super::{Ending, Failure, ImportArgs, MachineArgs, print};
use ptosim::config::Machine;
use ptosim::engine;
use ptosim::export::{Recording, Subject, Target, losses, targets};
use ptosim::graph::Graph;
use ptosim::report::{Output, columns};
use ptosim::workload::binary::write_binary;
use ptosim::workload::import::formats;
use ptosim::workload::{Program, Workload, WriteError, write_trace};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What our own formats are called, what they are, and how their names end.
const OWN: [(&str, &str, &str); 2] = [
    ("native", "our traces: JSON Lines, one operation a line", ".jsonl"),
    ("ptob", "our binary traces, mapped into memory when read", ".ptob"),
];

/// Nodes of a graph that Graphviz draws in good time.
const DRAWN: usize = 2000;

/// Write a workload in another format, and tell what is lost
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The format of OUT is that of its ending, or --to. A name that ends in .gz is compressed.
Timelines (chrome, simpler) come from a run on --machine.

Examples:
  ptosim convert --list                            formats that can be read and written
  ptosim convert graph.stg graph.jsonl             another program's graph as a trace
  ptosim convert trace.jsonl.gz trace.ptob         binary: much faster to read again
  ptosim convert bgemm:m=4 bgemm.dot               a picture for Graphviz
  ptosim convert trace.jsonl out --to simpler      a folder with deps.json, swimlane records, …")]
pub struct Args {
    /// File, `-` for standard input, or a generator
    #[arg(value_name = "IN", required_unless_present = "list")]
    workload: Option<String>,
    /// File to write, `-` for standard output, or a folder for formats of several files
    #[arg(value_name = "OUT", required_unless_present = "list")]
    output: Option<PathBuf>,
    /// Format of OUT, instead of that of its ending
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// List all formats
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    import: ImportArgs,
    #[command(flatten)]
    machine: MachineArgs,
}

/// How the output is written.
enum Form {
    Native,
    Binary,
    Other(&'static Target),
}

impl Form {
    /// The files that are written: the output itself, or those in a folder of this name.
    fn paths(&self, output: &Path) -> Vec<PathBuf> {
        match self {
            Form::Other(target) => target.files.iter().map(|(name, _)| file_of(output, name)).collect(),
            Form::Native | Form::Binary => vec![output.to_owned()],
        }
    }
}

/// A file of an output: the output itself if it has no name of its own, else one in the folder.
fn file_of(output: &Path, name: &str) -> PathBuf {
    if name.is_empty() { output.to_owned() } else { output.join(name) }
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let (Some(workload), Some(output), false) = (&args.workload, &args.output, args.list) else {
        print(&list())?;
        return Ok(Ending::Good);
    };
    let form = form(args.to.as_deref(), output)?;
    let machine = args.machine.load()?;
    let read = args.machine.files(args.import.files(Files::default(), workload), &machine);
    form.paths(output).iter().fold(read, |files, path| files.writes("OUT", Some(path))).check()?;
    let (spec, workload) = (workload, args.import.open(workload, &machine)?);
    let mut lines = workload.notes();
    match form {
        Form::Native => write_native(workload.as_ref(), output)?,
        Form::Binary => write(output, |file| own(write_binary(workload.as_ref(), file), output))?.commit()?,
        Form::Other(target) if target.files.len() > 1 && output == Path::new("-") => {
            let name = target.name;
            return Err(Failure::Usage(format!("--to {name}: it has several files; name a folder instead of -")));
        }
        Form::Other(target) => {
            let program = Program::load(workload.as_ref())?;
            lines.extend(export(&program, spec, &machine, target, output)?);
        }
    }
    for line in lines {
        // What is told here helps, but the file is written.
        let _ = writeln!(anstream::stderr(), "{line}");
    }
    Ok(Ending::Good)
}

fn form(to: Option<&str>, output: &Path) -> Result<Form, Failure> {
    let name = output.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let known = || OWN.iter().map(|own| own.0).chain(targets().iter().map(|target| target.name)).collect::<Vec<_>>();
    match to {
        Some("native") => Ok(Form::Native),
        Some("ptob") => Ok(Form::Binary),
        Some("parquet") if !cfg!(feature = "parquet") => Err(Failure::Usage(
            "--to parquet: this program was built without it; build one with `cargo build --release --features parquet`"
                .into(),
        )),
        Some(to) => targets()
            .iter()
            .find(|target| target.name == to)
            .map(Form::Other)
            .ok_or_else(|| Failure::Usage(format!("--to {to}: unknown format; known are {}", known().join(", ")))),
        None if ends(&[OWN[0].2]) || name == "-" => Ok(Form::Native),
        None if ends(&[OWN[1].2]) => Ok(Form::Binary),
        None => targets().iter().find(|target| ends(target.endings)).map(Form::Other).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: its ending tells no format; name it with --to, one of {}",
                output.display(),
                known().join(", ")
            ))
        }),
    }
}

/// Writes one of the formats that are not ours and returns what is lost. A timeline has all tasks: faults and timed commands are
/// lost in these formats, so that the run that is shown has none.
fn export(
    program: &Program,
    spec: &str,
    machine: &Machine,
    target: &'static Target,
    output: &Path,
) -> Result<Vec<String>, Failure> {
    let mut lines: Vec<String> = losses(program, target)?.into_iter().map(|loss| format!("lost: {loss}")).collect();
    let shown = if target.needs_run { program.undisturbed() } else { program.clone() };
    let graph = Graph::survey(&shown, machine)?;
    let mut recording = None;
    if target.needs_run {
        let mut rows = Recording::default();
        let report = engine::simulate(&shown, machine, &mut rows)?;
        if report.deadlock.is_some() {
            return Err(Failure::Usage(format!(
                "the run ends in a deadlock, so there is no whole timeline; `ptosim run {spec}` on the same machine tells more"
            )));
        }
        if program.is_disturbed() {
            lines.push(
                "the timeline is that of a run without faults and timed commands: all tasks run to their end".into(),
            );
        }
        recording = Some(rows);
    }
    let subject = Subject { program: &shown, graph: &graph, machine, recording: recording.as_ref() };
    write_files(&subject, target, output)?;
    if target.name == "dot" && graph.tasks.len() > DRAWN {
        lines.push(format!("{} tasks; Graphviz draws up to about {DRAWN} in good time", graph.tasks.len()));
    }
    Ok(lines)
}

/// Writes the files of a format and puts them into place when all are whole.
fn write_files(subject: &Subject<'_>, target: &'static Target, output: &Path) -> Result<(), Failure> {
    // Dropped last, when no unfinished file is in it any more.
    let _made = (target.files.len() > 1).then(|| Folder::make(output)).transpose()?;
    let mut files = Vec::new();
    for (name, write_file) in target.files {
        let path = file_of(output, name);
        let fill = |file: &mut dyn Write| {
            write_file(subject, file).map_err(|source| Output::error(&path.display().to_string(), source).into())
        };
        files.push(write(&path, fill)?);
    }
    files.into_iter().try_for_each(|file| file.commit().map_err(Failure::from))
}

/// A folder for an output. Those that had to be made go again if nothing comes into them.
struct Folder {
    /// Innermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    fn make(path: &Path) -> Result<Folder, Failure> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let folder = Folder { made: path.ancestors().take_while(is_missing).map(Path::to_owned).collect() };
        fs::create_dir_all(path).map_err(|source| Output::error(&path.display().to_string(), source))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What has something in it stays.
        self.made.iter().for_each(|path| drop(fs::remove_dir(path)));
    }
}

/// Writes a workload as a trace of ours, compressed if the name says so.
pub fn write_native(workload: &dyn Workload, output: &Path) -> Result<(), Failure> {
    Ok(write(output, |file| own(write_trace(workload, file), output))?.commit()?)
}

/// Writes a file that is still to be put into place.
fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<Output, Failure> {
    let name = path.display().to_string();
    let mut output = Output::open(&name)?;
    let mut buffered = BufWriter::with_capacity(1 << 16, &mut output);
    fill(&mut buffered)?;
    buffered.flush().map_err(|source| Output::error(&name, source))?;
    drop(buffered);
    Ok(output)
}

fn own(written: Result<u64, WriteError>, path: &Path) -> Result<(), Failure> {
    written.map(drop).map_err(|error| match error {
        WriteError::Workload(error) => error.into(),
        WriteError::Output(source) => Output::error(&path.display().to_string(), source).into(),
    })
}

fn list() -> String {
    let row = |name: &str, what: &str, endings: &[&str]| vec![format!("  {name}"), what.to_owned(), endings.join(" ")];
    let own: Vec<_> = OWN.iter().map(|&(name, what, ending)| row(name, what, &[ending])).collect();
    let mut read = own.clone();
    read.extend(formats().iter().map(|format| row(format.name(), format.description(), format.endings())));
    let mut written = own;
    written.extend(targets().iter().map(|target| row(target.name, target.description, target.endings)));
    format!("Read (--from):\n{}\nWritten (--to):\n{}", columns(&[], &read), columns(&[], &written))
}
