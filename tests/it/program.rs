//! A program in memory: the operations of a workload as a plain list, readable by the engine and printable as a trace.

use ptosim::id::{BufferId, TaskType};
use ptosim::workload::{Cost, Operation, Region, Source, Submit, Symbols, Workload, WorkloadError};
use serde_json::{Map, Value, json};

/// A list of operations. Scopes match, and buffers are bound before they are used.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// In program order.
    pub ops: Vec<Op>,
}

/// One operation with its data.
#[derive(Clone, Debug)]
pub enum Op {
    /// Device memory that outlives the run.
    Buffer {
        /// The name being bound.
        buffer: BufferId,
        /// Its size.
        bytes: u64,
    },
    /// A task; boxed because the other operations are small.
    Submit(Box<Submit>),
    /// Opens a scope.
    ScopeBegin,
    /// Closes the innermost open scope.
    ScopeEnd,
}

impl Program {
    /// The submissions in program order, so that the position is the task's id.
    pub fn submits(&self) -> impl Iterator<Item = &Submit> {
        self.ops.iter().filter_map(|op| match op {
            Op::Submit(submit) => Some(&**submit),
            Op::Buffer { .. } | Op::ScopeBegin | Op::ScopeEnd => None,
        })
    }

    /// The program as a trace in the native format.
    pub fn trace(&self) -> String {
        let header = json!({"op": "header", "format": "ptosim-trace", "version": 1, "name": "random"});
        let lines = self.ops.iter().map(Op::line);
        std::iter::once(header).chain(lines).fold(String::new(), |text, line| text + &line.to_string() + "\n")
    }
}

impl Op {
    fn line(&self) -> Value {
        match self {
            Op::Buffer { buffer, bytes } => json!({"op": "buffer", "id": name(*buffer), "bytes": bytes}),
            Op::Submit(submit) => submit_line(submit),
            Op::ScopeBegin => json!({"op": "scope_begin"}),
            Op::ScopeEnd => json!({"op": "scope_end"}),
        }
    }
}

fn submit_line(submit: &Submit) -> Value {
    let regions = |regions: &[Region]| regions.iter().map(region).collect::<Vec<_>>();
    let kind = submit.kind.expect("programs of the tests name the type of every task");
    let mut line = Map::new();
    let mut put = |key: &str, value: Value, default: Value| {
        if value != default {
            line.insert(key.into(), value);
        }
    };
    put("op", json!("submit"), Value::Null);
    put("worker_type", json!(kind.name()), Value::Null);
    put("cycles", cycles(submit.cost.expect("programs of the tests give every cost")), Value::Null);
    put("deps", json!(submit.deps), json!([]));
    put("in", json!(regions(&submit.reads)), json!([]));
    put("out", json!(regions(&submit.writes)), json!([]));
    put("inout", json!(regions(&submit.updates)), json!([]));
    let new: Vec<_> = submit.allocates.iter().map(|new| json!([name(new.buffer), new.bytes])).collect();
    put("new", json!(new), json!([]));
    put("out_bytes", json!(submit.out_bytes), json!(0));
    put("blocks", json!(submit.blocks), json!(1));
    put("sync_start", json!(submit.sync_start), json!(false));
    if kind == TaskType::Mix {
        put("units", json!({"CUBE": submit.units.cube, "VECTOR": submit.units.vector}), Value::Null);
    }
    put("submit_at", json!(submit.submit_at), json!(0));
    Value::Object(line)
}

fn cycles(cost: Cost) -> Value {
    match cost {
        Cost::Cycles(cycles) => json!(cycles),
        Cost::PerKind { cube, vector } => json!({"CUBE": cube, "VECTOR": vector}),
    }
}

fn region(region: &Region) -> Value {
    if region.rows == 1 {
        json!([name(region.buffer), region.offset, region.row_bytes])
    } else {
        json!([name(region.buffer), region.offset, region.row_bytes, region.rows, region.stride])
    }
}

fn name(buffer: BufferId) -> String {
    format!("b{}", buffer.0)
}

impl Workload for Program {
    fn name(&self) -> String {
        "random".into()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        let mut buffers = Symbols::default();
        for op in &self.ops {
            let bound = match op {
                Op::Buffer { buffer, .. } => vec![*buffer],
                Op::Submit(submit) => submit.allocates.iter().map(|new| new.buffer).collect(),
                Op::ScopeBegin | Op::ScopeEnd => Vec::new(),
            };
            for buffer in bound {
                assert_eq!(buffers.intern(&name(buffer)).0, buffer.0, "buffers are numbered by first appearance");
            }
        }
        Ok(Box::new(Reader { ops: self.ops.clone(), next: 0, symbols: Symbols::default(), buffers }))
    }
}

struct Reader {
    ops: Vec<Op>,
    next: usize,
    symbols: Symbols,
    buffers: Symbols,
}

impl Source for Reader {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        let Some(op) = self.ops.get(self.next) else { return Ok(None) };
        self.next += 1;
        Ok(Some(match op {
            Op::Buffer { buffer, bytes } => Operation::Buffer { buffer: *buffer, bytes: *bytes },
            Op::Submit(submit) => {
                task.clone_from(submit);
                Operation::Submit
            }
            Op::ScopeBegin => Operation::ScopeBegin,
            Op::ScopeEnd => Operation::ScopeEnd,
        }))
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.buffers
    }
}
