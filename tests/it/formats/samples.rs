//! A small valid file of every format, made here.

use super::timelines::timeline;
use ptosim::config::{Machine, Workers};
use ptosim::engine::simulate;
use ptosim::export::{Recording, Subject, Target, targets};
use ptosim::graph::Graph;
use ptosim::report::Arrows;
use ptosim::workload::binary::write_binary;
use ptosim::workload::{Program, Workload, generate, write_trace};

/// A machine that can run anything.
pub fn machine() -> Machine {
    let workers = Workers { clusters: 4, cube: 0, vector: 0, ai_cpu: 2, accelerator: 2, any: 0 };
    Machine { workers, ..Machine::default() }
}

/// The format of this name that can be written.
pub fn target(name: &str) -> &'static Target {
    targets().iter().find(|target| target.name == name).expect("it can be written")
}

/// The files of a workload in a format; `None` when it cannot run.
pub fn written(workload: &dyn Workload, target: &Target) -> Option<Vec<(&'static str, Vec<u8>)>> {
    let (program, machine) = (Program::load(workload).expect("valid"), machine());
    let graph = Graph::survey(&program, &machine).ok()?;
    let mut recording = Recording::default();
    let report = simulate(&program, &machine, &mut recording).ok()?;
    if report.deadlock.is_some() {
        return None;
    }
    let subject = Subject { program: &program, graph: &graph, machine: &machine, recording: Some(&recording) };
    let file = |(name, write): &(&'static str, ptosim::export::WriteFile)| {
        let mut bytes = Vec::new();
        write(&subject, &mut bytes).expect("memory does not fail");
        (*name, bytes)
    };
    Some(target.files.iter().map(file).collect())
}

/// The first file of a generated workload in a format.
fn generated(spec: &str, format: &str) -> Vec<u8> {
    let workload = generate::generator(spec).expect("a generator");
    let files = written(workload.as_ref(), target(format)).expect("it runs");
    files.into_iter().next().expect("a format has a file").1
}

const STG: &str = "4\n0 0 0\n1 9 1 0\n2 4 1 0\n3 3 2 1 2\n4 6 1 2\n5 0 2 3 4\n# CP Length : 12\n";
const DAX: &str = r#"<?xml version="1.0"?><adag name="d"><job id="A" name="mProject" runtime="1.5">
<uses file="f" link="output" size="10"/></job><job id="B" name="mAdd" runtime="2"><uses file="f" link="input" size="10"/></job>
<child ref="B"><parent ref="A"/></child></adag>"#;
const HICANN: &str = r#"[{"taskId":3,"execTime":112,"coreType":"AIC","funcName":"a","successors":[4],"remainingPredecessors":0},
{"taskId":4,"execTime":99,"coreType":"AIV","funcName":"b","successors":[],"remainingPredecessors":1}]"#;
const CHAKRA: &str = r#"{"workload_graph":[{"Id":7,"Name":"mm(1)","NodeType":4,"data_deps":[2],"runtime":318,"is_cpu_op":true},
{"Id":2,"Name":"ar","NodeType":"COMM_COLL_NODE","ctrlDeps":[7],"data_deps":[]}]}"#;
const CHAKRA_OBJECTS: &str = r#"{"version": "0.0.4"}{"id": "1", "name": "mm", "type": "COMP_NODE", "durationMicros": "10"}
{"id": "2", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [{"name": "is_cpu_op", "boolVal": false}]}"#;
const PYTORCH: &str = r#"{"schema":"1.0.1","nodes":[{"id":1,"name":"aten::mm","parent":1,"inputs":[[5,6,0,4,4,"cpu"]],
"outputs":[[8,9,0,4,4,"cpu"]]},{"id":3,"name":"aten::add","parent":0,"inputs":[[[8,9,0,4,4,"cpu"]],1],"outputs":[]}]}"#;

/// A message: its length and its bytes.
fn message(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

/// Two nodes of a Chakra trace; the second waits for the first.
fn chakra_binary() -> Vec<u8> {
    let metadata = message(b"\x0a\x050.0.4");
    let first = message(b"\x08\x01\x12\x02mm\x18\x04\x38\x0a");
    let second = message(b"\x08\x02\x12\x03add\x18\x04\x2a\x01\x01\x38\x05\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x01");
    [metadata, first, second].concat()
}

/// Format and content.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    const SPEC: &str = "bgemm:batch=1,m=1,n=2,k=2";
    let workload = generate::generator(SPEC).expect("a generator");
    let (mut native, mut binary) = (Vec::new(), Vec::new());
    write_trace(workload.as_ref(), &mut native).expect("memory does not fail");
    write_binary(workload.as_ref(), &mut binary).expect("memory does not fail");
    vec![
        ("native", native),
        ("ptob", binary),
        ("stg", STG.into()),
        ("dax", DAX.into()),
        ("hicann", HICANN.into()),
        ("chakra", CHAKRA.into()),
        ("chakra", CHAKRA_OBJECTS.into()),
        ("chakra", chakra_binary()),
        ("pytorch", PYTORCH.into()),
        ("dot", generated(SPEC, "dot")),
        ("wfformat", generated(SPEC, "wfformat")),
        ("chrome", generated(SPEC, "chrome")),
        (
            "chrome",
            timeline(workload.as_ref(), &machine(), Arrows::load(workload.as_ref(), &machine()).ok()).expect("it runs"),
        ),
        ("simpler", generated(SPEC, "simpler")),
    ]
}
