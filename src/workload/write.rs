//! Writes any workload as a native trace: one operation a line, only what differs from the defaults.

use super::trace::{WORK_ITEMS, time};
use super::{
    Control, Cost, Operation, PolicyFields, Region, ScheduleAt, Source, Submit, Symbols, Units, Workload, WorkloadError,
};
use crate::id::{BufferId, Symbol, TaskType};
use std::io::{self, Write};

/// Bytes collected before they go to the output.
const PIECE: usize = 1 << 16;

/// Why a trace could not be written.
#[derive(thiserror::Error, Debug)]
pub enum WriteError {
    /// The workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The output takes no more.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Writes a workload as a trace and returns the number of its tasks. Timed commands stand behind the header.
///
/// # Errors
/// When the workload cannot be read or the output fails.
pub fn write_trace(workload: &dyn Workload, output: &mut dyn Write) -> Result<u64, WriteError> {
    let mut line = Line { text: Vec::with_capacity(2 * PIECE) };
    line.raw("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1");
    line.text_field("name", &workload.name());
    let controls = workload.controls()?;
    line.number_field("controls", controls.len());
    line.raw("}\n");
    controls.iter().for_each(|control| line.control(control));
    let mut source = workload.open()?;
    let (mut task, mut tasks) = (Submit::default(), 0);
    while let Some(operation) = source.next(&mut task)? {
        match operation {
            Operation::Buffer { buffer, bytes } => {
                line.raw("{\"op\":\"buffer\"");
                line.text_field("id", buffer_name(source.as_ref(), buffer));
                line.number_field("bytes", bytes);
            }
            Operation::ScopeBegin => line.raw("{\"op\":\"scope_begin\""),
            Operation::ScopeEnd => line.raw("{\"op\":\"scope_end\""),
            Operation::Submit => {
                line.submit(&task, source.as_ref());
                tasks += 1;
            }
        }
        line.raw("}\n");
        if line.text.len() >= PIECE {
            output.write_all(&line.text)?;
            line.text.clear();
        }
    }
    output.write_all(&line.text)?;
    output.flush()?;
    Ok(tasks)
}

fn buffer_name(source: &dyn Source, BufferId(number): BufferId) -> &str {
    source.buffers().name(Symbol(number))
}

/// JSON text in the making. Every `…_field` begins with a comma.
struct Line {
    text: Vec<u8>,
}

impl Line {
    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, value: impl itoa::Integer) {
        self.raw(itoa::Buffer::new().format(value));
    }

    /// A number, without fraction where it has none.
    fn float(&mut self, value: f64) {
        if value.fract() == 0.0 && value.abs() < 1e15 && (value != 0.0 || value.is_sign_positive()) {
            self.number(value as i64);
        } else {
            self.raw(ryu::Buffer::new().format_finite(value));
        }
    }

    fn string(&mut self, text: &str) {
        let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
        if plain {
            self.raw("\"");
            self.raw(text);
            self.raw("\"");
        } else {
            self.raw(&serde_json::Value::from(text).to_string());
        }
    }

    fn key(&mut self, key: &str) {
        self.raw(",\"");
        self.raw(key);
        self.raw("\":");
    }

    fn text_field(&mut self, key: &str, value: &str) {
        self.key(key);
        self.string(value);
    }

    fn number_field(&mut self, key: &str, value: impl itoa::Integer) {
        self.key(key);
        self.number(value);
    }

    /// A list, left out when it is empty.
    fn list_field<T>(&mut self, key: &str, items: &[T], mut write: impl FnMut(&mut Line, &T)) {
        if items.is_empty() {
            return;
        }
        self.key(key);
        for (place, item) in items.iter().enumerate() {
            self.raw(if place == 0 { "[" } else { "," });
            write(self, item);
        }
        self.raw("]");
    }

    fn control(&mut self, control: &Control) {
        self.raw("{\"op\":\"control\"");
        self.number_field("at", control.at);
        self.text_field("cmd", &control.command);
        for (name, value) in &control.arguments {
            self.key(name);
            self.raw(&value.to_string());
        }
        self.raw("}\n");
    }

    fn submit(&mut self, task: &Submit, source: &dyn Source) {
        let symbols = source.symbols();
        self.raw("{\"op\":\"submit\"");
        if let Some(name) = task.name {
            self.text_field("name", symbols.name(name));
        }
        if let Some(kernel) = task.kernel.filter(|_| task.kernel != task.name) {
            self.text_field("kernel", symbols.name(kernel));
        }
        if let Some(kind) = task.kind {
            self.text_field("worker_type", kind.name());
        }
        self.cost(task);
        self.list_field("deps", &task.deps, |line, id| line.number(id.0));
        for (key, regions) in [("in", &task.reads), ("out", &task.writes), ("inout", &task.updates)] {
            self.list_field(key, regions, |line, region| line.region(region, source));
        }
        self.list_field("new", &task.allocates, |line, new| {
            line.raw("[");
            line.string(buffer_name(source, new.buffer));
            line.raw(",");
            line.number(new.bytes);
            line.raw("]");
        });
        self.counts(task);
        self.params(&task.params, symbols);
        if let Some(policy) = &task.policy {
            self.policy(policy);
        }
    }

    fn cost(&mut self, task: &Submit) {
        match task.cost {
            None => {}
            Some(Cost::Cycles(cycles)) => self.number_field("cycles", cycles),
            Some(Cost::PerKind { cube, vector }) => self.per_kind("cycles", cube, vector),
        }
        if task.kind == Some(TaskType::Mix) && task.units != Units::default() {
            self.per_kind("units", task.units.cube.into(), task.units.vector.into());
        }
    }

    fn per_kind(&mut self, key: &str, cube: u64, vector: u64) {
        self.key(key);
        self.raw("{\"CUBE\":");
        self.number(cube);
        self.raw(",\"VECTOR\":");
        self.number(vector);
        self.raw("}");
    }

    fn region(&mut self, region: &Region, source: &dyn Source) {
        self.raw("[");
        self.string(buffer_name(source, region.buffer));
        let row = [region.offset, region.row_bytes];
        let rows = [region.rows, region.stride];
        let more = if region.rows == 1 { &[][..] } else { &rows };
        for number in row.iter().chain(more) {
            self.raw(",");
            self.number(*number);
        }
        self.raw("]");
    }

    fn counts(&mut self, task: &Submit) {
        if task.out_bytes != 0 {
            self.number_field("out_bytes", task.out_bytes);
        }
        if task.blocks != 1 {
            self.number_field("blocks", task.blocks);
        }
        if task.sync_start {
            self.raw(",\"sync_start\":true");
        }
        if task.submit_at != 0 {
            self.number_field("submit_at", task.submit_at);
        }
        if task.fault {
            self.raw(",\"fault\":true");
        }
        if let Some((parent, offset)) = task.parent {
            self.number_field("parent", parent.0);
            if offset != 0 {
                self.number_field("spawn_offset", offset);
            }
        }
    }

    fn params(&mut self, params: &[(Symbol, f64)], symbols: &Symbols) {
        for (place, &(name, value)) in params.iter().enumerate() {
            self.raw(if place == 0 { ",\"params\":{" } else { "," });
            self.string(symbols.name(name));
            self.raw(":");
            self.float(value);
        }
        if !params.is_empty() {
            self.raw("}");
        }
    }

    fn policy(&mut self, policy: &PolicyFields) {
        let texts = [
            ("routine", &policy.routine),
            ("group", &policy.group),
            ("caller", &policy.caller),
            ("source", &policy.source),
            ("uuid", &policy.uuid),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                self.text_field(key, text);
            }
        }
        match &policy.activation {
            None => {}
            Some(None) => self.raw(",\"activation\":null"),
            Some(Some(name)) => self.text_field("activation", name),
        }
        let numbers = [
            ("prio", policy.prio.map(i64::from)),
            ("processor", policy.processor.map(i64::from)),
            ("node", policy.node.map(i64::from)),
            ("timestamp", policy.timestamp),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                self.number_field(key, number);
            }
        }
        if policy.post_cycles != 0 {
            self.number_field("post_cycles", policy.post_cycles);
        }
        if let Some((name, _)) = WORK_ITEMS.into_iter().find(|&(_, item)| policy.work_item == Some(item)) {
            self.text_field("work_item", name);
        }
        match policy.schedule_at {
            None => {}
            Some(ScheduleAt::Cycle(cycle)) => self.number_field("schedule_at", cycle),
            Some(ScheduleAt::UtcMicros(micros)) => self.text_field("schedule_at", &time::format(micros)),
        }
        if let Some(arguments) = &policy.args {
            self.key("args");
            self.raw(&arguments.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;
    use crate::workload::binary::{BinaryTrace, write_binary};
    use crate::workload::builder::{Buffer, Builder};
    use crate::workload::{Program, Stdin, WorkItem, generate};

    fn written(workload: &dyn Workload) -> String {
        let mut text = Vec::new();
        write_trace(workload, &mut text).expect("memory takes everything");
        String::from_utf8(text).expect("traces are text")
    }

    fn read(text: &str) -> Program {
        let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        Program::load(&Stdin::from_reader("t.jsonl", input)).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn through_binary(workload: &dyn Workload) -> Program {
        let mut bytes = Vec::new();
        write_binary(workload, &mut bytes).expect("memory does not fail");
        let trace = BinaryTrace::from_memory(bytes, "t.ptob").expect("our own");
        Program::load(&trace).expect("valid")
    }

    /// Asserts that both programs do the same under the same names.
    fn assert_same(left: &Program, right: &Program) {
        assert_eq!(left.operations().len(), right.operations().len());
        let named = |program: &Program, task: &Submit| {
            let symbol = |symbol: Symbol| program.symbols().name(symbol).to_string();
            let names = (task.name.map(symbol), task.kernel.map(symbol));
            let params: Vec<_> = task.params.iter().map(|&(name, value)| (symbol(name), value)).collect();
            let buffers: Vec<_> = [&task.reads, &task.writes, &task.updates]
                .into_iter()
                .flatten()
                .map(|region| program.buffers().name(Symbol(region.buffer.0)).to_string())
                .chain(task.allocates.iter().map(|new| program.buffers().name(Symbol(new.buffer.0)).to_string()))
                .collect();
            let mut rest = task.clone();
            (rest.name, rest.kernel) = (None, None);
            rest.params.clear();
            for region in rest.reads.iter_mut().chain(&mut rest.writes).chain(&mut rest.updates) {
                region.buffer = BufferId(0);
            }
            rest.allocates.iter_mut().for_each(|new| new.buffer = BufferId(0));
            (names, params, buffers, rest)
        };
        for (own, other) in std::iter::zip(left.tasks(), right.tasks()) {
            assert_eq!(named(left, own), named(right, other));
        }
        let kind = |operation: &Operation| match *operation {
            Operation::Buffer { bytes, .. } => format!("buffer {bytes}"),
            other => format!("{other:?}"),
        };
        let kinds = |program: &Program| program.operations().iter().map(kind).collect::<Vec<_>>();
        assert_eq!(kinds(left), kinds(right));
    }

    /// Small random numbers for random programs.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        fn chance(&mut self) -> bool {
            self.below(3) == 0
        }

        fn large(&mut self) -> u64 {
            let (bits, high, low) = (self.below(64) as u32, self.below(1 << 31), self.below(1 << 31));
            (high << 33 | low) >> bits
        }
    }

    fn random_program(seed: u64) -> Program {
        let mut dice = Dice(seed);
        let mut builder = Builder::new(format!("random \"{seed}\"\n\u{1}ü"));
        let mut buffers: Vec<Buffer> = (0..3).map(|id| builder.buffer(&format!("b\\{id}"), 4096)).collect();
        for number in 0..dice.below(30) {
            match dice.below(6) {
                0 => builder.begin_scope(),
                1 => builder.scope(|_| ()),
                2 => buffers.push(builder.buffer(&format!("c{}", dice.below(3)), 4096)),
                _ => random_task(&mut builder, &mut dice, &mut buffers, number),
            }
        }
        builder.build().expect("valid")
    }

    fn random_task(builder: &mut Builder, dice: &mut Dice, buffers: &mut Vec<Buffer>, number: u64) {
        let own = builder.task("probe").submit();
        let new = builder.heap_buffer(&format!("n{}", dice.below(2)), 4096);
        let mut task = builder.task(["gemm", "k\"ü", "task3"][dice.below(3) as usize]);
        task = match dice.below(5) {
            0 => task.cube(),
            1 => task.mix(1, dice.below(3) as u8).cycles_per_kind(dice.large(), dice.large()),
            2 => task.none().cycles(dice.large()),
            3 => task.named(&format!("task{}", dice.below(5))),
            _ => task,
        };
        for _ in 0..dice.below(3) {
            let buffer = buffers[dice.below(buffers.len() as u64) as usize];
            task = task.after(TaskId(dice.below(own.0 + 1))).reads(buffer);
            task = task.writes(buffer.range(dice.below(99), dice.below(99)));
            task = task.updates(buffer.rows(dice.below(99), dice.below(20), dice.below(20), 20 + dice.below(9)));
        }
        if dice.chance() {
            task = task.allocates(new).out_bytes(dice.large()).blocks(1 + dice.below(9) as u32).sync_start();
            buffers.push(new);
        }
        if dice.chance() {
            task = task.submit_at(dice.large()).fault().parent(own, dice.below(2));
            task = task.param("m", dice.large() as f64).param("x y", -0.1 * number as f64);
        }
        if dice.chance() {
            task = task.policy(random_policy(dice));
        }
        task.submit();
    }

    fn random_policy(dice: &mut Dice) -> PolicyFields {
        let mut text = |word: &str| dice.chance().then(|| format!("{word}\\\"{}", dice.below(9)));
        PolicyFields {
            routine: text("r"),
            group: text("g"),
            caller: text("c"),
            source: text("s"),
            uuid: text("u"),
            activation: Some(text("a")),
            prio: dice.chance().then_some(7),
            processor: Some(-1),
            node: dice.chance().then_some(i32::MIN),
            timestamp: Some(i64::MIN),
            post_cycles: dice.large(),
            work_item: dice.chance().then_some(WorkItem::Closure),
            schedule_at: Some(if dice.chance() { ScheduleAt::Cycle(5) } else { ScheduleAt::UtcMicros(-123_456_789) }),
            args: dice.chance().then(|| serde_json::json!({"k": [1, null, "x"]})),
        }
    }

    #[test]
    fn what_is_written_reads_as_the_same_program() {
        for seed in 0..500 {
            let program = random_program(seed);
            let text = written(&program);
            let again = read(&text);
            assert_same(&program, &again);
            assert_same(&program, &through_binary(&program));
            assert_eq!(written(&again), text, "writing is stable");
        }
    }

    #[test]
    fn generators_survive_writing_and_reading() {
        for generator in generate::catalogue() {
            let workload = generate::generator(generator.name).expect("valid");
            let program = Program::load(workload.as_ref()).expect("valid");
            assert_same(&program, &read(&written(workload.as_ref())));
            assert_same(&program, &through_binary(workload.as_ref()));
        }
    }

    #[test]
    fn controls_and_header_are_kept() {
        let text = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"t\",\"controls\":1}\n\
                    {\"op\":\"control\",\"at\":3,\"cmd\":\"pause_node\",\"node\":2}\n\
                    {\"op\":\"submit\",\"kernel\":\"k\",\"worker_type\":\"CUBE\",\"cycles\":5}\n";
        assert_eq!(written(&read(text)), text);
    }
}
