//! Pegasus DAX: workflows in XML, versions 2 and 3.

use super::file::{Input, shown};
use super::number::{Real, Whole};
use super::sketch::{Places, Sketch, Use, cycles};
use super::{Edges, Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, WorkloadError};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// The format.
pub struct Dax;

impl Format for Dax {
    fn name(&self) -> &'static str {
        "dax"
    }

    fn description(&self) -> &'static str {
        "Pegasus DAX (XML)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".dax", ".dax.xml", ".xml"]
    }

    fn edges(&self) -> &'static [Edges] {
        &[Edges::Recorded, Edges::Files]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.trim_ascii_start().starts_with(b"<") && contains(head, "<adag")
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let mut xml = Reader::from_str(input.text()?);
        let mut reading = Reading { sketch: Sketch::new(input.title()), options, ..Reading::new(options) };
        loop {
            let position = xml.buffer_position() as usize;
            let wrong = |fault: String| input.error_at(position, fault);
            match xml.read_event() {
                Ok(Event::Eof) => break,
                Ok(event) => reading.event(&event).map_err(wrong)?,
                Err(error) => {
                    let position = xml.error_position() as usize;
                    let what = shown(&error.to_string());
                    return Err(input.error_at(position, format!("not valid XML ({what}); save the file again")));
                }
            }
        }
        if let Some(name) = reading.open.first() {
            let message = format!("the file ends inside <{}>; it is cut off, copy it again", shown(name));
            return Err(input.error_at(input.bytes.len(), message));
        }
        reading.finish().map_err(|fault| input.error(fault))?.finish(input, &options.rules)
    }
}

/// A file on its way into a sketch.
struct Reading<'a> {
    options: &'a Options,
    sketch: Sketch,
    places: Places<String>,
    /// Elements not closed yet, outermost first.
    open: Vec<String>,
    /// Child and parent.
    edges: Vec<(String, String)>,
    child: String,
    uses: Vec<(usize, String, bool, u64)>,
    /// Whether the text to come is a runtime.
    in_runtime: bool,
    without_runtime: u64,
}

impl<'a> Reading<'a> {
    fn new(options: &'a Options) -> Reading<'a> {
        Reading {
            options,
            sketch: Sketch::default(),
            places: Places::default(),
            open: Vec::new(),
            edges: Vec::new(),
            child: String::new(),
            uses: Vec::new(),
            in_runtime: false,
            without_runtime: 0,
        }
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(element) => {
                self.element(element)?;
                self.open.push(element.local_name().as_ref().to_owned());
            }
            Event::Empty(element) => self.element(element)?,
            Event::End(_) => {
                self.open.pop();
                self.in_runtime = false;
            }
            Event::Text(text) if self.in_runtime => self.runtime(text)?,
            Event::CData(text) if self.in_runtime => self.runtime(text)?,
            _ => {}
        }
        Ok(())
    }

    fn element(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        match element.local_name().as_ref() {
            "job" | "dag" | "dax" => self.job(element),
            "uses" => self.file(element),
            "child" => {
                self.child = required(element, "ref")?;
                Ok(())
            }
            "parent" => {
                if self.child.is_empty() {
                    return Err("<parent> outside of <child ref=…>; put it inside".into());
                }
                self.edges.push((self.child.clone(), required(element, "ref")?));
                Ok(())
            }
            "profile" => {
                self.in_runtime = attribute(element, "key")?.is_some_and(|key| key.eq_ignore_ascii_case("runtime"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn job(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let id = required(element, "id")?;
        let kernel = attribute(element, "name")?.unwrap_or_else(|| "job".into());
        let mut task = self.sketch.task(&id, &kernel);
        task.kind = Some(TaskType::Vector);
        let seconds = attribute(element, "runtime")?;
        task.cost = seconds.map(|seconds| self.cost(&seconds)).transpose()?;
        let place = self.sketch.push(task);
        self.places.insert(id, place)
    }

    fn cost(&self, seconds: &str) -> Result<Cost, String> {
        let Some(Real(value)) = Real::parse(seconds) else {
            return Err(format!("runtime \"{}\" is not a number; give seconds", shown(seconds)));
        };
        cycles(value * 1e6 * self.options.cycles_per_us(), format!("runtime {value}")).map(Cost::Cycles)
    }

    /// The runtime as DAX 3 gives it: in a profile of the job.
    fn runtime(&mut self, text: &str) -> Result<(), String> {
        let is_in_job = self.open.iter().rev().nth(1).is_some_and(|name| name == "job");
        if let (true, Some(last)) = (is_in_job, self.sketch.tasks().len().checked_sub(1)) {
            self.sketch.at(last).cost = Some(self.cost(text)?);
        }
        Ok(())
    }

    fn file(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let Some(place) = self.sketch.tasks().len().checked_sub(1) else { return Ok(()) };
        let name = match attribute(element, "file")? {
            Some(name) => name,
            None => required(element, "name")?,
        };
        let link = attribute(element, "link")?.unwrap_or_default();
        let size = attribute(element, "size")?.and_then(|size| Whole::parse(&size)).unwrap_or_default();
        let (reads, writes) = match link.to_ascii_lowercase().as_str() {
            "input" => (true, false),
            "output" => (false, true),
            "inout" => (true, true),
            _ => return Ok(()),
        };
        let sides = [(reads, false), (writes, true)].into_iter().filter(|&(used, _)| used);
        self.uses.extend(sides.map(|(_, is_output)| (place, name.clone(), is_output, size.0)));
        Ok(())
    }

    fn finish(mut self) -> Result<Sketch, String> {
        for (child, parent) in &self.edges {
            let consumer = self.places.named(child, "an element <child>")?;
            let producer = self.places.named(parent, format!("<child ref=\"{}\">", shown(child)))?;
            self.sketch.link(producer, consumer);
        }
        for place in 0..self.sketch.tasks().len() {
            let task = self.sketch.at(place);
            self.without_runtime += u64::from(task.cost.is_none());
            task.cost.get_or_insert(Cost::Cycles(0));
        }
        let by_files = self.options.edges == Some(Edges::Files);
        if by_files {
            let uses: Vec<Use<'_>> = self.uses.iter().map(used).collect();
            self.sketch.use_files(&uses);
        }
        let edges = if by_files { "files as buffers" } else { "<child> and <parent>" };
        let clock = self.options.clock_note();
        self.sketch.notes.push(format!("format dax: {clock}, tasks run on VECTOR, dependencies from {edges}"));
        if self.without_runtime > 0 {
            self.sketch.notes.push(format!("{} jobs have no runtime and take 0 cycles", self.without_runtime));
        }
        Ok(self.sketch)
    }
}

fn used((place, file, is_output, bytes): &(usize, String, bool, u64)) -> Use<'_> {
    Use { place: *place, file, is_output: *is_output, bytes: *bytes }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let wrong = |what: String| format!("attribute \"{name}\": {}; save the file again", shown(&what));
    let found = element.try_get_attribute(name).map_err(|error| wrong(error.to_string()))?;
    let value = found.map(|found| found.normalized_value(XmlVersion::Implicit1_0).map(std::borrow::Cow::into_owned));
    value.transpose().map_err(|error| wrong(error.to_string()))
}

fn required(element: &BytesStart<'_>, name: &str) -> Result<String, String> {
    let tag = shown(element.local_name().as_ref());
    attribute(element, name)?.ok_or_else(|| format!("<{tag}> without \"{name}\"; give it one"))
}
