//! The text form of protocol buffers, as Apollo's `.conf` files have it.
//!
//! Fields are `name: value` or `name { … }`; lists stand in brackets; `#` starts a comment; `,` and `;` separate; a field that
//! may repeat is written several times or once with a list. What a field means is decided later, by [`settings`].
//!
//! [`settings`]: crate::policy::settings

use crate::config::ConfigError;
use crate::policy::settings::{Node, Tree};

/// Messages inside messages beyond this depth are refused.
const MAX_DEPTH: usize = 64;

/// Reads a whole file as the fields of one message; `origin` is its name, for messages.
///
/// # Errors
/// When the text is not of this form; the message names line and remedy.
pub fn parse(text: &str, origin: &str) -> Result<Node, ConfigError> {
    let mut reader = Reader { rest: text, line: 1, depth: 0 };
    reader
        .fields(None)
        .map(|tree| Node { line: 1, tree })
        .map_err(|message| ConfigError::Setting(format!("{origin}:{}: {message}", reader.line)))
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Fields up to the closing character, or to the end of the text.
    fn fields(&mut self, close: Option<char>) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} messages inside each other; close some with `}}`"));
        }
        let opened = self.line;
        let mut fields = Vec::new();
        loop {
            match (self.peek(), close) {
                (None, None) => break,
                (None, Some(close)) => return Err(format!("`{close}` is missing for what line {opened} opens")),
                (Some(found), Some(close)) if found == close => {
                    self.take();
                    break;
                }
                (Some(',' | ';'), _) => self.take(),
                (Some(_), _) => fields.push(self.field()?),
            }
        }
        self.depth -= 1;
        Ok(Tree::Table(fields))
    }

    fn field(&mut self) -> Result<(String, Node), String> {
        let line = self.line;
        let name = self.word();
        if name.is_empty() {
            let found = self.rest.chars().next().unwrap_or(' ');
            return Err(format!("`{found}`: expected the name of a field"));
        }
        let colon = self.peek() == Some(':');
        if colon {
            self.take();
        }
        if !colon && !matches!(self.peek(), Some('{' | '<')) {
            return Err(format!("`:` or `{{` is missing after `{name}`"));
        }
        let tree = self.value(name)?.tree;
        Ok((name.to_string(), Node { line, tree }))
    }

    fn value(&mut self, field: &str) -> Result<Node, String> {
        let first = self.peek();
        let line = self.line;
        let tree = match first {
            None => return Err(format!("the value of `{field}` is missing")),
            Some('{') => self.message('}')?,
            Some('<') => self.message('>')?,
            Some('[') => self.list(field)?,
            Some('"' | '\'') => Tree::Text(self.text()?),
            Some(_) => self.scalar(field)?,
        };
        Ok(Node { line, tree })
    }

    fn message(&mut self, close: char) -> Result<Tree, String> {
        self.take();
        self.fields(Some(close))
    }

    fn list(&mut self, field: &str) -> Result<Tree, String> {
        self.take();
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None => return Err(format!("`]` is missing after the list of `{field}`")),
                Some(']') => break self.take(),
                Some(',') => self.take(),
                Some(_) => items.push(self.value(field)?),
            }
        }
        Ok(Tree::List(items))
    }

    /// Texts that follow each other are one.
    fn text(&mut self) -> Result<String, String> {
        let mut text = String::new();
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            self.take();
            loop {
                let next = self.rest.chars().next().filter(|&next| next != '\n');
                let Some(next) = next else {
                    return Err(format!("the text \"{text}\" is not closed; end it with {quote} on the same line"));
                };
                self.rest = &self.rest[next.len_utf8()..];
                match next {
                    _ if next == quote => break,
                    '\\' => text.push(self.escaped()?),
                    _ => text.push(next),
                }
            }
        }
        Ok(text)
    }

    fn escaped(&mut self) -> Result<char, String> {
        let next = self.rest.chars().next().unwrap_or('\n');
        self.rest = &self.rest[next.len_utf8().min(self.rest.len())..];
        match next {
            'n' => Ok('\n'),
            't' => Ok('\t'),
            'r' => Ok('\r'),
            '\\' | '"' | '\'' => Ok(next),
            other => Err(format!("`\\{other}`: unknown escape; the known ones are \\n \\t \\r \\\\ \\\" \\'")),
        }
    }

    /// A number, true or false, or the name of an enum value.
    fn scalar(&mut self, field: &str) -> Result<Tree, String> {
        let word = self.word();
        if word.is_empty() {
            let found = self.rest.chars().next().unwrap_or(' ');
            return Err(format!("`{found}`: not a value for `{field}`; write a number, a text in quotes or a name"));
        }
        if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(match word {
                "true" => Tree::Flag(true),
                "false" => Tree::Flag(false),
                name => Tree::Text(name.into()),
            });
        }
        let digits = word.trim_start_matches('-');
        let number = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let number = number.map_err(|_| format!("`{field}` = {word}: must be a whole number"))?;
        Ok(Tree::Number(if word.starts_with('-') { -number } else { number }))
    }

    /// Letters, digits, `_`, `-`, `.` and `+`.
    fn word(&mut self) -> &'a str {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// The next character that is neither space nor comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            let next = self.rest.chars().next()?;
            match next {
                '#' => self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..],
                _ if next.is_whitespace() => self.take(),
                _ => return Some(next),
            }
        }
    }

    fn take(&mut self) {
        let Some(next) = self.rest.chars().next() else { return };
        self.line += usize::from(next == '\n');
        self.rest = &self.rest[next.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> String {
        parse(text, "a.conf").expect_err("the text is wrong").to_string()
    }

    #[test]
    fn messages_lists_numbers_names_and_comments_are_read() {
        let node = parse("a { b: -3 c: 'x' \"y\" # note\n d: SCHED_FIFO; e: 0x10 f: true } g: [1, 2]", "a.conf");
        let node = node.expect("the text is right");
        let a = node.field("a").expect("a field");
        let of = |name| a.field(name).map(|node| (node.line, node.tree.clone()));
        assert_eq!(of("b"), Some((1, Tree::Number(-3))));
        assert_eq!(of("c"), Some((1, Tree::Text("xy".into()))));
        assert_eq!(of("d"), Some((2, Tree::Text("SCHED_FIFO".into()))));
        assert_eq!(of("e"), Some((2, Tree::Number(16))));
        assert_eq!(of("f"), Some((2, Tree::Flag(true))));
        assert!(matches!(&node.field("g").expect("a field").tree, Tree::List(list) if list.len() == 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(fails("a {\n b: 1\n"), "a.conf:3: `}` is missing for what line 1 opens");
        assert_eq!(fails("\na 1"), "a.conf:2: `:` or `{` is missing after `a`");
        assert_eq!(fails("a: 1.5"), "a.conf:1: `a` = 1.5: must be a whole number");
        assert_eq!(fails("a: \"x\nb: 1"), "a.conf:1: the text \"x\" is not closed; end it with \" on the same line");
        assert_eq!(fails("a: [1"), "a.conf:1: `]` is missing after the list of `a`");
        assert_eq!(fails("}"), "a.conf:1: `}`: expected the name of a field");
        assert_eq!(fails("a: "), "a.conf:1: the value of `a` is missing");
        assert_eq!(fails("a: %"), "a.conf:1: `%`: not a value for `a`; write a number, a text in quotes or a name");
        assert_eq!(
            fails("a: \"\\q\""),
            "a.conf:1: `\\q`: unknown escape; the known ones are \\n \\t \\r \\\\ \\\" \\'"
        );
        assert!(fails(&"a{".repeat(100)).contains("more than 64 messages inside each other"));
    }
}
