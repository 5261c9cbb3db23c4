//! DOT graphs as daggen and `SimGrid` write them, and as this program does.
//!
//! The attribute `size` of a node is its amount of work, without a unit; `cycles`, `kernel`, `worker_type`, `blocks` and
//! `name` are ours and win. Attributes of edges carry sizes of data, which have no meaning here. What `node [...]` says holds
//! for the nodes that come into being behind it in its group, what `edge [...]` says for the edges.

mod attributes;
mod lexer;

use super::file::{Input, shown};
use super::sketch::{Places, Sketch};
use super::{Format, Options};
use crate::id::TaskType;
use crate::workload::{Cost, Program, WorkloadError};
use attributes::Attributes;
use lexer::{Lexer, Token};
use std::borrow::Cow;

/// Groups are nested at most this deep.
const MAX_DEPTH: u32 = 100;

/// The format.
pub struct Dot;

impl Format for Dot {
    fn name(&self) -> &'static str {
        "dot"
    }

    fn description(&self) -> &'static str {
        "Graphviz DOT (daggen, SimGrid)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".dot", ".gv"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        // The head may end inside a letter.
        let text = String::from_utf8_lossy(head);
        let first = Lexer::new(&text).next();
        matches!(first, Ok(Some(Token::Id(word))) if ["digraph", "strict", "graph"].iter().any(|known| word.eq_ignore_ascii_case(known)))
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let mut parser = Parser::new(input.text()?, Sketch::new(input.title()), options);
        if let Err(fault) = parser.graph() {
            return Err(input.error_at(parser.lexer.start, fault));
        }
        parser.finish().finish(input, &options.rules)
    }
}

type Id<'a> = Cow<'a, str>;

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// A word that was looked at and belongs to what comes.
    ahead: Option<Token<'a>>,
    sketch: Sketch,
    places: Places<Id<'a>>,
    /// Cycles of a unit of size.
    unit: f64,
    /// By place: what is known of a node.
    nodes: Vec<Node>,
    defaults: Defaults,
    edge_sizes: u64,
}

/// A node in the making.
struct Node {
    is_producer: bool,
    attributes: Attributes,
}

/// What holds for the nodes and edges to come in a group.
#[derive(Clone, Default)]
struct Defaults {
    node: Attributes,
    /// Whether edges have a size.
    edge_size: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, sketch: Sketch, options: &'a Options) -> Parser<'a> {
        let lexer = Lexer::new(text);
        Parser {
            lexer,
            ahead: None,
            sketch,
            places: Places::default(),
            unit: options.rules.cycles_per_unit.unwrap_or(1.0),
            nodes: Vec::new(),
            defaults: Defaults::default(),
            edge_sizes: 0,
        }
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        match self.ahead.take() {
            Some(token) => Ok(Some(token)),
            None => self.lexer.next(),
        }
    }

    /// Takes a mark if it comes next.
    fn take(&mut self, mark: char) -> Result<bool, String> {
        self.ahead = self.next()?;
        let found = self.ahead == Some(Token::Mark(mark));
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn id(&mut self, what: &str) -> Result<Id<'a>, String> {
        match self.next()? {
            Some(Token::Id(id)) => Ok(id),
            Some(_) => Err(format!("{what} is missing here; put names with other letters into quotes")),
            None => Err(format!("the file ends where {what} should stand; it is cut off")),
        }
    }

    fn graph(&mut self) -> Result<(), String> {
        let mut word = self.id("\"digraph\"")?;
        if word.eq_ignore_ascii_case("strict") {
            word = self.id("\"digraph\"")?;
        }
        if !word.eq_ignore_ascii_case("digraph") {
            return Err(format!(
                "\"{}\" instead of \"digraph\"; only directed graphs tell producers from consumers",
                shown(&word)
            ));
        }
        if !self.take('{')? {
            self.id("a name or \"{\"")?;
            if !self.take('{')? {
                return Err("\"{\" is missing behind the name of the graph".into());
            }
        }
        self.statements(0).map(drop)
    }

    /// Statements up to the closing bracket, with defaults of their own; gives the nodes they name.
    fn statements(&mut self, depth: u32) -> Result<Vec<usize>, String> {
        let outer = self.defaults.clone();
        let named = self.nodes_named(depth)?;
        self.defaults = outer;
        Ok(named)
    }

    /// The nodes that statements up to the closing bracket name.
    fn nodes_named(&mut self, depth: u32) -> Result<Vec<usize>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("groups nested more than {MAX_DEPTH} deep; make the graph flatter"));
        }
        let mut named = Vec::new();
        loop {
            match self.next()? {
                None => return Err("the file ends before \"}\"; it is cut off".into()),
                Some(Token::Mark('}')) => return Ok(named),
                Some(Token::Mark(';' | ',')) => {}
                Some(Token::Mark('{')) => {
                    let group = self.statements(depth + 1)?;
                    self.edges(group, depth, &mut named)?;
                }
                Some(Token::Id(word)) => self.statement(word, depth, &mut named)?,
                Some(_) => return Err("a statement begins with a name or \"{\"".into()),
            }
        }
    }

    /// A node, a chain of edges, an attribute of the graph, defaults, or a subgraph.
    fn statement(&mut self, word: Id<'a>, depth: u32, named: &mut Vec<usize>) -> Result<(), String> {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if is("subgraph") {
            let group = self.subgraph(depth)?;
            return self.edges(group, depth, named).map(drop);
        }
        if (is("graph") || is("node") || is("edge")) && self.defaults(&word)? {
            return Ok(());
        }
        if self.take('=')? {
            return self.id("a value").map(drop);
        }
        let place = self.node(word)?;
        if !self.edges(vec![place], depth, named)? {
            let mut attributes = std::mem::take(&mut self.nodes[place].attributes);
            self.node_attributes(&mut attributes)?;
            self.nodes[place].attributes = attributes;
        }
        Ok(())
    }

    /// Defaults of nodes, of edges, or of the graph, which do not matter; false when no list of attributes follows.
    fn defaults(&mut self, of: &str) -> Result<bool, String> {
        if of.eq_ignore_ascii_case("node") {
            let mut attributes = self.defaults.node.clone();
            let found = self.node_attributes(&mut attributes)?;
            self.defaults.node = attributes;
            return Ok(found);
        }
        let mut has_size = false;
        let found = self.attributes(|(key, _), _| {
            has_size |= key == "size";
            Ok(())
        })?;
        self.defaults.edge_size |= has_size && of.eq_ignore_ascii_case("edge");
        Ok(found)
    }

    /// A subgraph behind its keyword; one without statements only has a name.
    fn subgraph(&mut self, depth: u32) -> Result<Vec<usize>, String> {
        self.ahead = self.next()?;
        if let Some(Token::Id(_)) = self.ahead {
            self.ahead = None;
        }
        if self.take('{')? { self.statements(depth + 1) } else { Ok(Vec::new()) }
    }

    /// Edges from some nodes to the next ones, and from those to the next; false when there are none.
    fn edges(&mut self, first: Vec<usize>, depth: u32, named: &mut Vec<usize>) -> Result<bool, String> {
        named.extend(&first);
        let (mut producers, mut found, mut is_edge) = (first, 0, false);
        loop {
            match self.next()? {
                Some(Token::Edge { directed: true }) => {
                    let consumers = self.group(depth)?;
                    for (&producer, &consumer) in
                        producers.iter().flat_map(|from| consumers.iter().map(move |to| (from, to)))
                    {
                        self.sketch.link(producer, consumer);
                        self.nodes[producer].is_producer = true;
                        found += 1;
                    }
                    named.extend(&consumers);
                    (producers, is_edge) = (consumers, true);
                }
                Some(Token::Edge { directed: false }) => return Err("\"--\" has no direction; use \"->\"".into()),
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        if is_edge {
            let mut has_size = self.defaults.edge_size;
            self.attributes(|(key, _), _| {
                has_size |= key == "size";
                Ok(())
            })?;
            self.edge_sizes += if has_size { found } else { 0 };
        }
        Ok(is_edge)
    }

    /// What an edge leads to: a node, or all nodes of a group.
    fn group(&mut self, depth: u32) -> Result<Vec<usize>, String> {
        if self.take('{')? {
            return self.statements(depth + 1);
        }
        let name = self.id("the name of a node")?;
        if name.eq_ignore_ascii_case("subgraph") {
            return self.subgraph(depth);
        }
        self.node(name).map(|place| vec![place])
    }

    /// The place of a node, which is made at its first use. A port behind the name is passed over.
    fn node(&mut self, name: Id<'a>) -> Result<usize, String> {
        while self.take(':')? {
            self.id("a port")?;
        }
        if let Some(place) = self.places.find(&name) {
            return Ok(place);
        }
        let task = self.sketch.task(&name, "task");
        let place = self.sketch.push(task);
        self.nodes.push(Node { is_producer: false, attributes: self.defaults.node.clone() });
        self.places.insert(name, place)?;
        Ok(place)
    }

    /// Lists of attributes of a node; false when there is none.
    fn node_attributes(&mut self, attributes: &mut Attributes) -> Result<bool, String> {
        let unit = self.unit;
        self.attributes(|attribute, sketch| attributes.set(attribute, unit, sketch))
    }

    /// Lists of attributes in brackets; false when there is none.
    fn attributes(
        &mut self,
        mut take: impl FnMut((&str, &str), &mut Sketch) -> Result<(), String>,
    ) -> Result<bool, String> {
        let mut found = false;
        while self.take('[')? {
            found = true;
            while !self.take(']')? {
                let key = self.id("an attribute or \"]\"")?;
                if self.take('=')? {
                    let mut value = self.id("a value")?;
                    while self.take('+')? {
                        value = Cow::Owned(value.into_owned() + &self.id("a value")?);
                    }
                    take((&key, &value), &mut self.sketch)?;
                } else {
                    take((&key, "true"), &mut self.sketch)?;
                }
                let _ = self.take(',')? || self.take(';')?;
            }
        }
        Ok(found)
    }

    /// Decides what is open: ends of the graph without work are joints, other nodes without work take no time.
    fn finish(mut self) -> Sketch {
        let mut without_cost = 0_u64;
        for (place, Node { is_producer, attributes }) in self.nodes.iter().enumerate() {
            let task = self.sketch.at(place);
            attributes.apply(task);
            without_cost += u64::from(task.cost.is_none());
            let cost = *task.cost.get_or_insert(Cost::Cycles(0));
            let is_end = task.deps.is_empty() || !is_producer;
            let is_joint = is_end && cost == Cost::Cycles(0);
            task.kind.get_or_insert(if is_joint { TaskType::None } else { TaskType::Vector });
        }
        let unit = self.unit;
        let mut notes = vec![format!(
            "format dot: 1 unit of size is {unit} cycles, tasks run on VECTOR, ends without work on none"
        )];
        if without_cost > 0 {
            notes.push(format!("{without_cost} nodes have no size and take 0 cycles"));
        }
        if self.edge_sizes > 0 {
            notes.push(format!("{} edges have sizes, which were left out: transfers take no time", self.edge_sizes));
        }
        self.sketch.notes.append(&mut notes);
        self.sketch
    }
}
