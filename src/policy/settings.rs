//! Settings of policies as text: a tree with line numbers, checked against a list of known fields.
//!
//! TOML files and Apollo's text-proto files give the same [`Node`]s. [`check`] names every mistake with file, line, value
//! and remedy, and hands on plain JSON, from which the configuration types are filled.

use crate::config::{ConfigError, MOST_WORKERS, line_of, unknown_field};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

/// A value and the line it begins in.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Line, from 1.
    pub line: usize,
    /// What stands there.
    pub tree: Tree,
}

/// A value of a settings file.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    /// A text, or the name of an enum value.
    Text(String),
    /// A whole number.
    Number(i64),
    /// True or false.
    Flag(bool),
    /// Several values.
    List(Vec<Node>),
    /// Fields by name, in file order; a repeated field stands there several times.
    Table(Vec<(String, Node)>),
}

/// A field that a table may have.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// A number from 0.
    Count,
    /// How many workers: a number from 0 to the most that a machine may have.
    Workers,
    /// A number that may be negative.
    Integer,
    /// True or false.
    Flag,
    /// Cycles as a number, or a text with a unit such as `100ms`.
    Span,
    /// Several texts.
    Texts,
    /// Several numbers from 0.
    Counts,
    /// Fields of its own.
    Table(&'static [Field]),
    /// Several tables.
    Tables(&'static [Field]),
    /// Anything; somebody else reads it.
    Ignored,
}

/// Reads the text of a TOML file into a tree; `origin` is its name, for messages.
///
/// # Errors
/// When the text is not TOML.
pub fn from_toml(text: &str, origin: &str) -> Result<Node, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        ConfigError::Setting(format!("{origin}:{line}: {}", error.message().trim_end()))
    })?;
    Ok(Node { line: 1, tree: table(text, document.get_ref(), origin)? })
}

fn table(text: &str, table: &DeTable<'_>, origin: &str) -> Result<Tree, ConfigError> {
    let mut fields = Vec::new();
    for (key, value) in table {
        let line = line_of(text, key.span().start);
        fields.push((key.get_ref().to_string(), Node { line, tree: tree(text, value.get_ref(), origin, line)? }));
    }
    fields.sort_by_key(|(_, node)| node.line);
    Ok(Tree::Table(fields))
}

fn tree(text: &str, value: &DeValue<'_>, origin: &str, line: usize) -> Result<Tree, ConfigError> {
    match value {
        DeValue::String(value) => Ok(Tree::Text(value.to_string())),
        DeValue::Boolean(value) => Ok(Tree::Flag(*value)),
        // No setting is a fraction: whoever reads it says what is wrong with the text.
        DeValue::Float(value) => Ok(Tree::Text(value.as_str().to_string())),
        DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix())
            .map(Tree::Number)
            .map_err(|_| ConfigError::Setting(format!("{origin}:{line}: {value}: must be below 2^63"))),
        DeValue::Array(values) => values
            .iter()
            .map(|value| {
                let line = line_of(text, value.span().start);
                Ok(Node { line, tree: tree(text, value.get_ref(), origin, line)? })
            })
            .collect::<Result<_, _>>()
            .map(Tree::List),
        DeValue::Table(value) => table(text, value, origin),
        DeValue::Datetime(_) => {
            let kind = value.type_str();
            Err(ConfigError::Setting(format!("{origin}:{line}: {kind} value: write a whole number or a text")))
        }
    }
}

impl Node {
    /// The field of a table, if this is one and has it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Node> {
        match &self.tree {
            Tree::Table(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            _ => None,
        }
    }
}

/// Turns a table into JSON if it has known fields of the right kind only.
///
/// # Errors
/// The first mistake, with the nearest known field if it is an unknown one.
pub fn check(node: &Node, fields: &[Field], origin: &str) -> Result<Value, ConfigError> {
    table_value(node, fields).map_err(|(line, message)| ConfigError::Setting(format!("{origin}:{line}: {message}")))
}

/// A line and what is wrong with it.
type Mistake = (usize, String);

fn table_value(node: &Node, fields: &[Field]) -> Result<Value, Mistake> {
    let Tree::Table(entries) = &node.tree else {
        return Err((node.line, format!("{}: must be a table of fields", shown(node))));
    };
    let mut object = Map::new();
    for (key, value) in entries {
        let Some(field) = fields.iter().find(|field| field.name == key) else {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            return Err((value.line, unknown_field(key, &known)));
        };
        let found = field_value(field, value)?;
        match (object.get_mut(key), found) {
            (Some(Value::Array(old)), Value::Array(more)) => old.extend(more),
            (Some(_), _) => return Err((value.line, format!("`{key}` is given twice; keep one"))),
            (None, found) => _ = object.insert(key.clone(), found),
        }
    }
    Ok(Value::Object(object))
}

fn field_value(field: &Field, node: &Node) -> Result<Value, Mistake> {
    let wrong = |wanted: &str| Err((node.line, format!("`{}` = {}: must be {wanted}", field.name, shown(node))));
    match (field.kind, &node.tree) {
        (Kind::Text | Kind::Span, Tree::Text(text)) => Ok(json!(text)),
        (Kind::Count | Kind::Workers, Tree::Number(..0)) => wrong("a whole number from 0"),
        (Kind::Workers, Tree::Number(number)) if number.unsigned_abs() > MOST_WORKERS => {
            wrong(&format!("at most {MOST_WORKERS}; lower {}", field.name))
        }
        (Kind::Count | Kind::Workers | Kind::Span | Kind::Integer, Tree::Number(number)) => Ok(json!(number)),
        (Kind::Flag, Tree::Flag(flag)) => Ok(json!(flag)),
        (Kind::Texts, Tree::List(list)) => {
            list_value(list, |item| field_value(&Field { kind: Kind::Text, ..*field }, item))
        }
        (Kind::Counts, Tree::List(list)) => {
            list_value(list, |item| field_value(&Field { kind: Kind::Count, ..*field }, item))
        }
        (Kind::Tables(fields), Tree::List(list)) => list_value(list, |item| table_value(item, fields)),
        (Kind::Tables(fields), Tree::Table(_)) => Ok(json!([table_value(node, fields)?])),
        (Kind::Table(fields), _) => table_value(node, fields),
        (Kind::Ignored, _) => Ok(Value::Null),
        (Kind::Text, _) => wrong("a text in quotes"),
        (Kind::Count | Kind::Workers, _) => wrong("a whole number from 0"),
        (Kind::Integer, _) => wrong("a whole number"),
        (Kind::Flag, _) => wrong("true or false"),
        (Kind::Span, _) => wrong("cycles as a whole number, or a text such as \"100ms\""),
        (Kind::Texts, _) => wrong("a list of texts"),
        (Kind::Counts, _) => wrong("a list of whole numbers"),
        (Kind::Tables(_), _) => wrong("a list of tables"),
    }
}

/// What is wrong with a table that was filled from JSON: mostly a number beyond its range, whose field and line are looked for.
pub fn explain(node: &Node, name: &str, error: &serde_json::Error, origin: &str) -> ConfigError {
    let message = error.to_string();
    let number = message.split('`').nth(1).and_then(|text| text.parse::<i64>().ok());
    ConfigError::Setting(match number.and_then(|number| field_of(node, number)) {
        Some((line, field)) => format!("{origin}:{line}: {name}: `{field}`: {message}"),
        None => format!("{origin}:{}: {name}: {message}", node.line),
    })
}

/// The first field with this number, and its line.
fn field_of(node: &Node, number: i64) -> Option<(usize, &str)> {
    match &node.tree {
        Tree::Table(fields) => fields.iter().find_map(|(name, value)| match value.tree {
            Tree::Number(found) if found == number => Some((value.line, name.as_str())),
            _ => field_of(value, number),
        }),
        Tree::List(values) => values.iter().find_map(|value| field_of(value, number)),
        Tree::Text(_) | Tree::Number(_) | Tree::Flag(_) => None,
    }
}

fn list_value(list: &[Node], value: impl Fn(&Node) -> Result<Value, Mistake>) -> Result<Value, Mistake> {
    list.iter().map(value).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn shown(node: &Node) -> String {
    match &node.tree {
        Tree::Text(text) => format!("\"{text}\""),
        Tree::Number(number) => number.to_string(),
        Tree::Flag(flag) => flag.to_string(),
        Tree::List(_) => "a list".into(),
        Tree::Table(_) => "a table".into(),
    }
}
