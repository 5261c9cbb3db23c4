//! Words of a DOT file.

use std::borrow::Cow;

/// One word.
#[derive(Clone, PartialEq, Debug)]
pub enum Token<'a> {
    /// A name, number, quoted text or HTML text.
    Id(Cow<'a, str>),
    /// `->` or `--`.
    Edge {
        /// Whether it is an arrow.
        directed: bool,
    },
    /// One of `{ } [ ] ; , = :` and `+`.
    Mark(char),
}

/// Cuts a text into words; comments are left out.
pub struct Lexer<'a> {
    text: &'a str,
    position: usize,
    /// First byte of the word last given out.
    pub start: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, position: 0, start: 0 }
    }

    /// The next word, `None` at the end.
    ///
    /// # Errors
    /// When a text or comment is not closed, or a letter has no meaning.
    pub fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        self.skip_blank()?;
        self.start = self.position;
        let rest = &self.text[self.position..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (token, length) = match first {
            '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' | '+' => (Token::Mark(first), 1),
            '-' if rest.starts_with("->") => (Token::Edge { directed: true }, 2),
            '-' if rest.starts_with("--") => (Token::Edge { directed: false }, 2),
            '"' => quoted(rest)?,
            '<' => html(rest)?,
            _ => {
                let is_part =
                    |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-') || !letter.is_ascii();
                let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                // A minus begins a number but also an arrow.
                let length = rest[..length].find("->").or(rest[..length].find("--")).unwrap_or(length);
                let is_arrow = rest[length..].starts_with('>') && rest[..length].ends_with('-');
                let length = if is_arrow { length - 1 } else { length };
                if length == 0 {
                    return Err(format!("\"{first}\" has no meaning here; put names with such letters into quotes"));
                }
                (Token::Id(Cow::Borrowed(&rest[..length])), length)
            }
        };
        self.position += length;
        Ok(Some(token))
    }

    fn skip_blank(&mut self) -> Result<(), String> {
        loop {
            let rest = &self.text[self.position..];
            let blank = rest.len() - rest.trim_start().len();
            let at_line_start = self.position == 0 || self.text[..self.position + blank].ends_with('\n');
            let rest = &rest[blank..];
            self.position += blank;
            let comment = if rest.starts_with("//") || (rest.starts_with('#') && at_line_start) {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                self.start = self.position;
                rest.find("*/").ok_or("a comment without end; close it with */")? + 2
            } else {
                return Ok(());
            };
            self.position += comment;
        }
    }
}

/// A text in quotes, in which a backslash protects quotes and backslashes.
fn quoted(rest: &str) -> Result<(Token<'_>, usize), String> {
    let (mut changed, mut piece) = (String::new(), 1);
    let bytes = rest.as_bytes();
    let mut position = 1;
    loop {
        match bytes.get(position) {
            None => return Err("a text without end; close it with a quote".into()),
            Some(b'"') => break,
            Some(b'\\') if matches!(bytes.get(position + 1), Some(b'"' | b'\\')) => {
                changed.push_str(&rest[piece..position]);
                piece = position + 1;
                position += 2;
            }
            Some(_) => position += 1,
        }
    }
    let last = &rest[piece..position];
    let text = if piece == 1 { Cow::Borrowed(last) } else { Cow::Owned(changed + last) };
    Ok((Token::Id(text), position + 1))
}

/// A text between angle brackets.
fn html(rest: &str) -> Result<(Token<'_>, usize), String> {
    let mut depth = 0_usize;
    for (position, letter) in rest.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((Token::Id(Cow::Borrowed(&rest[1..position])), position + 1));
        }
    }
    Err("an HTML text without end; close it with >".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_comments_and_arrows() {
        let mut lexer = Lexer::new("# c\na->b--c [x=-1.5] // d\n/* e */ \"q\\\"\\\\ü\" <b<i>t>");
        let mut words = Vec::new();
        while let Some(token) = lexer.next().expect("valid") {
            words.push(match token {
                Token::Id(id) => id.into_owned(),
                Token::Edge { directed } => (if directed { "->" } else { "--" }).into(),
                Token::Mark(mark) => mark.into(),
            });
        }
        assert_eq!(words, ["a", "->", "b", "--", "c", "[", "x", "=", "-1.5", "]", "q\"\\ü", "b<i>t"]);
        for wrong in ["\"a", "/* a", "<a", "a ~", ">", "é>"] {
            let mut lexer = Lexer::new(wrong);
            assert!(std::iter::from_fn(|| lexer.next().transpose()).any(|word| word.is_err()), "{wrong}");
        }
    }
}
