//! Standard Task Graphs: `id cost n_producers producers…` per task, in whole numbers.
//!
//! Dialects: the first line counts all tasks, or all but one or both dummies, and may name a number of processors behind
//! that; ids may begin at 1; producers may come later in the file; `#` begins a comment.

use super::file::{Input, shown};
use super::number::Real;
use super::sketch::{Places, Sketch, cycles};
use super::{Format, Options};
use crate::id::TaskType;
use crate::workload::{Cost, Program, WorkloadError};

/// The format.
pub struct Stg;

const REMEDY: &str = "a line is `id cost number-of-producers producers…`";

impl Format for Stg {
    fn name(&self) -> &'static str {
        "stg"
    }

    fn description(&self) -> &'static str {
        "Standard Task Graph"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".stg"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let lines = head.split(|&byte| byte == b'\n').map(before_comment);
        let mut lines = lines.filter(|line| !line.trim_ascii().is_empty());
        let is_number = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
        let first = lines.next().is_some_and(|line| line.iter().all(is_number) && words(line) <= 2);
        let is_task = |line: &[u8]| line.iter().all(|byte| is_number(byte) || *byte == b'.') && words(line) >= 3;
        first && lines.next().is_some_and(is_task)
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let mut tokens = Tokens::new(input);
        let header = tokens.header()?;
        let mut sketch = Sketch::new(input.title());
        let (mut places, mut producers) = (Places::default(), Vec::new());
        let unit = options.rules.cycles_per_unit.unwrap_or(1.0);
        while let Some((id, line)) = tokens.next_id()? {
            let cost = cycles(tokens.cost()? * unit, format!("the cost of task {id}"));
            let cost = cost.map_err(|fault| input.error_in(line, fault))?;
            let mut task = sketch.task(&format!("t{id}"), "stg");
            task.cost = Some(Cost::Cycles(cost));
            let place = sketch.push(task);
            sketch.at_line(line);
            places.insert(id, place).map_err(|fault| input.error_in(line, fault))?;
            for _ in 0..tokens.number("the number of producers")? {
                producers.push((tokens.number("a producer")?, place, tokens.line));
            }
        }
        let mut is_producer = vec![false; sketch.tasks().len()];
        for (id, consumer, line) in producers {
            let label = sketch.label(consumer);
            let producer = places.named(&id, label).map_err(|fault| input.error_in(line, fault))?;
            is_producer[producer] = true;
            sketch.link(producer, consumer);
        }
        settle(&mut sketch, &is_producer, header);
        sketch.notes.insert(
            0,
            format!("format stg: 1 unit of the file is {unit} cycles, tasks run on VECTOR, dummies on none"),
        );
        sketch.finish(input, &options.rules)
    }
}

/// Decides what the tasks run on, and compares their number with the header's.
fn settle(sketch: &mut Sketch, is_producer: &[bool], header: u64) {
    let n_tasks = sketch.tasks().len();
    for (place, &is_producer) in is_producer.iter().enumerate() {
        let task = sketch.at(place);
        let is_end = task.deps.is_empty() || !is_producer;
        let is_dummy = is_end && task.cost == Some(Cost::Cycles(0));
        task.kind = Some(if is_dummy { TaskType::None } else { TaskType::Vector });
    }
    if !(header..=header.saturating_add(2)).contains(&(n_tasks as u64)) {
        sketch
            .notes
            .push(format!("the first line promises {header} tasks, but the file has {n_tasks}; all of them were read"));
    }
}

fn before_comment(line: &[u8]) -> &[u8] {
    memchr::memchr(b'#', line).map_or(line, |end| &line[..end])
}

fn words(line: &[u8]) -> usize {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count()
}

/// The words of a file, comments left out.
struct Tokens<'a> {
    input: &'a Input,
    rest: &'a [u8],
    /// Line of the word last given out.
    line: u64,
}

impl<'a> Tokens<'a> {
    fn new(input: &'a Input) -> Tokens<'a> {
        Tokens { input, rest: &input.bytes, line: 1 }
    }

    /// The number in the first line; a second one, the number of processors, is passed over.
    fn header(&mut self) -> Result<u64, WorkloadError> {
        let count = self.number("the number of tasks")?;
        let line = memchr::memchr(b'\n', self.rest).map_or(self.rest, |end| &self.rest[..end]);
        for _ in 0..words(before_comment(line)).min(1) {
            self.number("the number of processors")?;
        }
        Ok(count)
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            match *self.rest.first()? {
                b'#' => self.rest = &self.rest[memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len())..],
                b'\n' => {
                    self.line += 1;
                    self.rest = &self.rest[1..];
                }
                byte if byte.is_ascii_whitespace() => self.rest = &self.rest[1..],
                _ => break,
            }
        }
        let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'#';
        let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(word)
    }

    /// The id of the next task and its line.
    fn next_id(&mut self) -> Result<Option<(u64, u64)>, WorkloadError> {
        let Some(word) = self.next() else { return Ok(None) };
        self.whole(word, "an id").map(|id| Some((id, self.line)))
    }

    fn number(&mut self, what: &str) -> Result<u64, WorkloadError> {
        let word = self.next().ok_or_else(|| self.missing(what))?;
        self.whole(word, what)
    }

    fn cost(&mut self) -> Result<f64, WorkloadError> {
        let word = self.next().ok_or_else(|| self.missing("a cost"))?;
        let value = std::str::from_utf8(word).ok().and_then(Real::parse);
        value.map(|Real(value)| value).ok_or_else(|| self.wrong(word, "a cost"))
    }

    fn whole(&self, word: &[u8], what: &str) -> Result<u64, WorkloadError> {
        let value = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        value.ok_or_else(|| self.wrong(word, what))
    }

    fn wrong(&self, word: &[u8], what: &str) -> WorkloadError {
        let word = shown(&String::from_utf8_lossy(&word[..word.len().min(1000)]));
        self.input.error_in(self.line, format!("\"{word}\" is not {what}; {REMEDY}"))
    }

    fn missing(&self, what: &str) -> WorkloadError {
        self.input.error_in(self.line, format!("the file ends where {what} should stand; {REMEDY}"))
    }
}
