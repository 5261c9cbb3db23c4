//! Places that cannot be written, as far as they show without a run.

use crate::program::{in_folder, refuses};
use assert_cmd::cargo::cargo_bin;
use std::fs::{self, File};
use std::process::{Command, Stdio};

#[test]
fn one_file_cannot_take_two_outputs() {
    refuses("run bgemm --json out --schedule out", "--json and --schedule both write out; give them different files");
    refuses(
        "run bgemm --json out --schedule ./out",
        "--json and --schedule both write ./out; give them different files",
    );
    refuses("run bgemm --json - --html -", "--json and --html both write -; give them different files");
}

#[test]
fn a_file_that_is_read_is_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = include_str!("../../workloads/x_policies.jsonl");
    let files = [
        ("in.jsonl", trace),
        ("m.toml", "kernels = \"k.toml\"\n"),
        ("k.toml", include_str!("../../kernels/reference.toml")),
        ("p.toml", "[policy]\nname = \"lifo\"\n"),
        ("s.toml", "workload = \"sweep/results.csv\"\nfrom = \"native\"\n"),
        ("sweep/results.csv", trace),
        ("a_topo.json", "[{\"taskId\":0,\"successors\":[]}]"),
        ("a_tilefwk_prof_data.json", "[]"),
        ("deps.json", "{\"tasks\":[{\"task_id\":0,\"kernel_ids\":[-1,-1,-1]}],\"edges\":[]}"),
        ("name_map.json", "{\"callable_id_to_name\":{}}"),
    ];
    fs::create_dir(folder.path().join("sweep")).expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("room on the disk");
    }
    let call = |arguments: &str| in_folder(folder.path(), arguments, "");
    assert_eq!(call("run in.jsonl --quiet --json r.json --schedule r.csv").code, 0);
    let result = fs::read(folder.path().join("r.json")).expect("it was written");
    for (arguments, message) in [
        ("run in.jsonl --json in.jsonl", "--json in.jsonl would replace the workload in.jsonl"),
        ("run in.jsonl --html ./in.jsonl", "--html ./in.jsonl would replace the workload in.jsonl"),
        ("run in.jsonl --machine m.toml --json m.toml", "--json m.toml would replace the machine file m.toml"),
        ("run in.jsonl --machine m.toml --schedule k.toml", "--schedule k.toml would replace the kernel table k.toml"),
        (
            "run in.jsonl --policy-config p.toml --dot p.toml",
            "--dot p.toml would replace the policy configuration p.toml",
        ),
        ("report r.json --html r.json", "--html r.json would replace the result r.json"),
        ("report r.json --schedule r.csv --html r.csv", "--html r.csv would replace the schedule r.csv"),
        ("compare in.jsonl --csv in.jsonl", "--csv in.jsonl would replace the workload in.jsonl"),
        ("convert in.jsonl sweep/../in.jsonl", "OUT sweep/../in.jsonl would replace the workload in.jsonl"),
        ("check in.jsonl --json in.jsonl", "--json in.jsonl would replace the workload in.jsonl"),
        ("size in.jsonl --svg in.jsonl", "--svg in.jsonl would replace the workload in.jsonl"),
        (
            "check a_topo.json --json a_tilefwk_prof_data.json",
            "would replace a file of the workload a_tilefwk_prof_data.json",
        ),
        ("run . --json name_map.json", "--json name_map.json would replace a file of the workload ./name_map.json"),
        ("run . --json deps.json", "--json deps.json would replace the workload ./deps.json"),
        ("sweep s.toml --out sweep", "--out sweep/results.csv would replace the workload sweep/results.csv"),
    ] {
        let ended = call(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments}: {ended:?}");
        assert!(ended.stderr.contains(message), "{arguments}: {}", ended.stderr);
    }
    for (name, text) in files {
        assert_eq!(fs::read_to_string(folder.path().join(name)).expect("it is there"), text, "{name}");
    }
    assert_eq!(fs::read(folder.path().join("r.json")).expect("it is there"), result);
}

#[cfg(target_os = "linux")]
#[test]
fn links_to_what_is_read_are_found_and_devices_are_free_to_use() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), include_str!("../../workloads/x_policies.jsonl")).expect("room");
    std::os::unix::fs::symlink("in.jsonl", folder.path().join("link")).expect("links work");
    let ended = in_folder(folder.path(), "run in.jsonl --json link", "");
    assert!(ended.code == 2 && ended.stderr.contains("--json link would replace the workload in.jsonl"), "{ended:?}");
    let ended = in_folder(folder.path(), "run in.jsonl --json /dev/null --html /dev/null --dot /dev/stdout", "");
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
    let output = Command::new(cargo_bin("ptosim")).arg("machines").stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("error: cannot write standard output: No space left"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn help_and_version_that_cannot_be_written_end_with_2() {
    for call in ["--help", "-h", "help", "run --help", "help run", "--version", "-V"] {
        let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
        let mut command = Command::new(cargo_bin("ptosim"));
        let output = command.args(call.split(' ')).stdout(full).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{call}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("error: cannot write standard output: No space left"), "{call}: {message}");
        let mut command = Command::new(cargo_bin("ptosim"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command.args(call.split(' ')).stdout(writer).output().expect("the program starts");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()), "{call}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_reason_to_complain() {
    let mut command = Command::new(cargo_bin("ptosim"));
    let mut child = command
        .args(["machines", "a2a3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_ends_the_run_and_all_old_files_stay() {
    for option in ["--html", "--chrome", "--perfetto", "--critical-path", "--json"] {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("schedule.csv");
        fs::write(&kept, "old").expect("room on the disk");
        let mut command = Command::new(cargo_bin("ptosim"));
        command.args(["run", "random:n=20k,fanin=3", "--quiet", option, "/dev/full", "--schedule"]).arg(&kept);
        let output = command.output().expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{option}: {message}");
        assert!(message.starts_with("error: cannot write /dev/full: No space left"), "{option}: {message}");
        assert_eq!(fs::read_to_string(&kept).expect("it is there"), "old", "{option}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{option}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_open_file_is_written_to_and_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("all.txt");
    std::os::unix::fs::symlink("/dev/stdout", folder.path().join("link")).expect("links work");
    let schedule = "task,block,worker,submit,ready,start,end\n";
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"] {
        let file = File::create(&place).expect("room on the disk");
        let mut command = Command::new(cargo_bin("ptosim"));
        command.current_dir(&folder).args(["run", "chain:n=2", "--schedule", path]).stdout(file);
        assert!(command.status().expect("the program starts").success(), "{path}");
        let text = fs::read_to_string(&place).expect("it is there");
        assert!(text.starts_with(schedule), "{path}: {text}");
        assert!(text.contains("completed in"), "the report comes behind it, {path}: {text}");
    }
    let file = File::create(&place).expect("room on the disk");
    let mut command = Command::new(cargo_bin("ptosim"));
    command.args(["run", "chain:n=2", "--quiet", "--progress-cycles", "9", "--schedule", "/dev/stderr"]).stderr(file);
    assert!(command.status().expect("the program starts").success());
    let text = fs::read_to_string(&place).expect("it is there");
    assert!(text.contains(schedule) && text.contains("cycle 9: "), "{text}");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2, "nothing else is left behind");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_with_a_name_is_written_directly() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("every Linux has it").success());
    let mut command = Command::new(cargo_bin("ptosim"));
    command.args(["run", "chain:n=2", "--quiet", "--schedule"]).arg(&pipe);
    let mut child = command.spawn().expect("the program starts");
    let text = fs::read_to_string(&pipe).expect("the program writes");
    assert!(child.wait().expect("the program ends").success());
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn all_reports_at_once_are_the_same_as_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--html", "--chrome", "--perfetto", "--critical-path", "--schedule"];
    let file = |way: &str, option: &str| folder.path().join(format!("{way}{option}"));
    let run = |way: &str, options: &[&str]| {
        let mut command = Command::new(cargo_bin("ptosim"));
        command.args(["run", "random:n=20k,fanin=3", "--machine", "a2a3", "--quiet"]);
        for option in options {
            command.arg(option).arg(file(way, option));
        }
        assert!(command.status().expect("the program starts").success());
    };
    run("all", &options);
    for option in options {
        run("one", &[option]);
        let [all, one] = ["all", "one"].map(|way| fs::read(file(way, option)).expect("it was written"));
        assert!(all == one, "{option} differs");
    }
}
