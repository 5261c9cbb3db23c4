//! The text form of protocol buffers, as Apollo's `.conf` files have it.
//!
//! Fields are `name: value` or `name { … }`; lists stand in brackets, behind a colon unless they hold messages; `#` starts a comment; `,` and `;` separate; a field that
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
        let next = self.peek();
        if !colon && !matches!(next, Some('{' | '<' | '[')) {
            return Err(format!("`:` or `{{` is missing after `{name}`"));
        }
        let tree = self.value(name)?.tree;
        if !colon && next == Some('[') && !holds_messages(&tree) {
            self.line = line;
            return Err(format!("`:` is missing after `{name}`; only messages and lists of messages go without it"));
        }
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
        let mut bytes = Vec::new();
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            self.take();
            loop {
                let next = self.rest.chars().next().filter(|&next| next != '\n');
                let Some(next) = next else {
                    let text = String::from_utf8_lossy(&bytes);
                    return Err(format!("the text \"{text}\" is not closed; end it with {quote} on the same line"));
                };
                self.rest = &self.rest[next.len_utf8()..];
                match next {
                    _ if next == quote => break,
                    '\\' => self.escaped(&mut bytes)?,
                    _ => push(&mut bytes, next),
                }
            }
        }
        String::from_utf8(bytes).map_err(|error| {
            let text = String::from_utf8_lossy(error.as_bytes());
            format!("the text \"{text}\" is not UTF-8; its escapes must give whole characters")
        })
    }

    /// What stands behind a backslash: a character by its letter or number, or one byte by its number.
    fn escaped(&mut self, bytes: &mut Vec<u8>) -> Result<(), String> {
        let next = self.rest.chars().next().unwrap_or('\n');
        if next.is_digit(8) {
            let number = self.digits(8, 3);
            let byte = number.and_then(|number| u8::try_from(number).ok());
            bytes.push(byte.ok_or("an octal escape is a byte, from \\0 to \\377")?);
            return Ok(());
        }
        self.rest = &self.rest[next.len_utf8().min(self.rest.len())..];
        match next {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            '\\' | '"' | '\'' | '?' => push(bytes, next),
            'x' | 'X' => match self.digits(16, 2) {
                Some(byte) => bytes.push(byte as u8),
                None => return Err(format!("`\\{next}` needs one or two hexadecimal digits, such as \\x67")),
            },
            'u' => push(bytes, self.character(next, 4)?),
            'U' => push(bytes, self.character(next, 8)?),
            other => {
                return Err(format!(
                    "`\\{other}`: unknown escape; the known ones are \\a \\b \\f \\n \\r \\t \\v \\? \\\\ \\\" \\', and numbers \
                     such as \\147, \\x67 and \\u0067"
                ));
            }
        }
        Ok(())
    }

    /// The character with a number of so many hexadecimal digits.
    fn character(&mut self, escape: char, n_digits: usize) -> Result<char, String> {
        let before = self.rest.len();
        let number = self.digits(16, n_digits).filter(|_| before - self.rest.len() == n_digits);
        number.and_then(char::from_u32).ok_or_else(|| {
            format!("`\\{escape}` needs {n_digits} hexadecimal digits that are the number of a character")
        })
    }

    /// The number that the next digits are, at most so many of them.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let end = self.rest.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        u32::from_str_radix(digits, radix).ok()
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
            None if digits.starts_with('0') && digits.len() > 1 => i64::from_str_radix(digits, 8),
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

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
}

/// Whether a list has nothing but messages, so that the colon before it may be left out.
fn holds_messages(tree: &Tree) -> bool {
    matches!(tree, Tree::List(items) if items.iter().all(|item| matches!(item.tree, Tree::Table(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> String {
        parse(text, "a.conf").expect_err("the text is wrong").to_string()
    }

    #[test]
    fn messages_lists_numbers_names_and_comments_are_read() {
        let node = parse("a { b: -3 c: 'x' \"y\" # note\n d: SCHED_FIFO; e: 0x10 f: true h: 010 } g: [1, 2]", "a.conf");
        let node = node.expect("the text is right");
        let a = node.field("a").expect("a field");
        let of = |name| a.field(name).map(|node| (node.line, node.tree.clone()));
        assert_eq!(of("b"), Some((1, Tree::Number(-3))));
        assert_eq!(of("c"), Some((1, Tree::Text("xy".into()))));
        assert_eq!(of("d"), Some((2, Tree::Text("SCHED_FIFO".into()))));
        assert_eq!(of("e"), Some((2, Tree::Number(16))));
        assert_eq!(of("f"), Some((2, Tree::Flag(true))));
        assert_eq!(of("h"), Some((2, Tree::Number(8))), "as the format has it");
        assert!(fails("a: 09").contains("must be a whole number"));
        assert!(matches!(&node.field("g").expect("a field").tree, Tree::List(list) if list.len() == 2));
    }

    #[test]
    fn a_list_of_messages_needs_no_colon() {
        for text in
            ["g [ { n: 1 }, < n: 2 > ]", "g: [ { n: 1 }, { n: 2 } ]", "g { n: 1 } g { n: 2 }", "g [{n:1}]\ng [{n:2}]"]
        {
            let node = parse(text, "a.conf").unwrap_or_else(|error| panic!("{text}: {error}"));
            let Tree::Table(fields) = &node.tree else { panic!("a file is a table") };
            let messages: Vec<&Node> = fields
                .iter()
                .flat_map(|(_, node)| match &node.tree {
                    Tree::List(items) => items.iter().collect(),
                    _ => vec![node],
                })
                .collect();
            let numbers: Vec<_> = messages.iter().map(|node| node.field("n").map(|node| &node.tree)).collect();
            assert_eq!(numbers, [Some(&Tree::Number(1)), Some(&Tree::Number(2))], "{text}");
        }
        assert!(parse("g []", "a.conf").is_ok());
        assert_eq!(
            fails("\ng [\n1]"),
            "a.conf:2: `:` is missing after `g`; only messages and lists of messages go without it"
        );
    }

    #[test]
    fn escapes_are_bytes_and_characters() {
        let text = r#"a: "\x67\147r\x70\7\0608 \303\xa4 \u00e4\U0001F600 \a\b\f\n\r\t\v\?\\\'\"" '\X41'"#;
        let node = parse(text, "a.conf").expect("the text is right");
        let wanted = "ggrp\u{7}08 \u{e4} \u{e4}\u{1F600} \u{7}\u{8}\u{c}\n\r\t\u{b}?\\'\"A";
        assert_eq!(node.field("a").map(|node| &node.tree), Some(&Tree::Text(wanted.into())));
        assert_eq!(fails(r#"a: "\400""#), "a.conf:1: an octal escape is a byte, from \\0 to \\377");
        assert_eq!(fails(r#"a: "\xg""#), "a.conf:1: `\\x` needs one or two hexadecimal digits, such as \\x67");
        let told = "needs 4 hexadecimal digits that are the number of a character";
        assert_eq!(fails(r#"a: "\u12""#), format!("a.conf:1: `\\u` {told}"));
        assert_eq!(fails(r#"a: "\ud800""#), format!("a.conf:1: `\\u` {told}"));
        assert!(fails(r#"a: "\xff""#).contains("is not UTF-8"));
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
            "a.conf:1: `\\q`: unknown escape; the known ones are \\a \\b \\f \\n \\r \\t \\v \\? \\\\ \\\" \\', and numbers such \
             as \\147, \\x67 and \\u0067"
        );
        assert!(fails(&"a{".repeat(100)).contains("more than 64 messages inside each other"));
    }
}
