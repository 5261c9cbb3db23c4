//! Integer expressions such as `100 + bytes/1024`: whole numbers, names, `+ - * / %`, brackets, `min`, `max`, `ceil_div`.
//!
//! Division rounds towards zero, as in most languages. Nothing overflows silently.

use std::fmt;

/// A parsed expression; shows as the text it was read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expr {
    text: String,
    /// In postfix order.
    steps: Vec<Step>,
    names: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Number(i128),
    /// Index into `names`.
    Name(usize),
    Binary(Operator),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
    CeilDivide,
}

/// Brackets and calls are nested at most this deep.
const MAX_DEPTH: usize = 64;

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// When the text is no expression; the message says where.
    pub fn parse(text: &str) -> Result<Expr, String> {
        let mut parser = Parser { text, at: 0, depth: 0, steps: Vec::new(), names: Vec::new() };
        parser.sum()?;
        match parser.peek() {
            None => Ok(Expr { text: text.trim().into(), steps: parser.steps, names: parser.names }),
            Some(_) => Err(parser.wrong("an operator")),
        }
    }

    /// The names it uses, each once, in order of appearance.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its value; `lookup` gives the value of each name by its place in [`Expr::names`]. `stack` is memory to work in.
    ///
    /// # Errors
    /// On division by zero or overflow, or what `lookup` says.
    pub fn value(
        &self,
        stack: &mut Vec<i128>,
        mut lookup: impl FnMut(usize) -> Result<i128, String>,
    ) -> Result<i128, String> {
        stack.clear();
        for step in &self.steps {
            let value = match *step {
                Step::Number(number) => number,
                Step::Name(place) => lookup(place)?,
                Step::Binary(operator) => {
                    let (right, left) = (stack.pop(), stack.pop());
                    let (Some(left), Some(right)) = (left, right) else {
                        unreachable!("an operator stands behind its two values")
                    };
                    self.apply(operator, left, right)?
                }
            };
            stack.push(value);
        }
        Ok(stack.pop().expect("an expression has a value"))
    }

    fn apply(&self, operator: Operator, left: i128, right: i128) -> Result<i128, String> {
        let divides = matches!(operator, Operator::Divide | Operator::Remainder | Operator::CeilDivide);
        if divides && right == 0 {
            return Err(format!("division by zero in \"{self}\""));
        }
        let value = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
            Operator::Min => Some(left.min(right)),
            Operator::Max => Some(left.max(right)),
            Operator::CeilDivide => {
                left.checked_div_euclid(right).zip(left.checked_rem_euclid(right)).and_then(|(quotient, rest)| {
                    if rest == 0 { Some(quotient) } else { quotient.checked_add(right.signum()) }
                })
            }
        };
        value.ok_or_else(|| format!("overflow in \"{self}\""))
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    steps: Vec<Step>,
    names: Vec<String>,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<(), String> {
        self.product()?;
        loop {
            let operator = match self.peek() {
                Some(b'+') => Operator::Add,
                Some(b'-') => Operator::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.steps.push(Step::Binary(operator));
        }
    }

    fn product(&mut self) -> Result<(), String> {
        self.factor()?;
        loop {
            let operator = match self.peek() {
                Some(b'*') => Operator::Multiply,
                Some(b'/') => Operator::Divide,
                Some(b'%') => Operator::Remainder,
                _ => return Ok(()),
            };
            self.at += 1;
            self.factor()?;
            self.steps.push(Step::Binary(operator));
        }
    }

    fn factor(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(b'(') => self.nested(|parser| {
                parser.sum()?;
                parser.take(b')')
            }),
            Some(b'0'..=b'9') => {
                let digits = self.word();
                let number = digits.parse().map_err(|_| format!("{digits} is no whole number in \"{}\"", self.text))?;
                self.steps.push(Step::Number(number));
                Ok(())
            }
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.name(),
            _ => Err(self.wrong("a number, a name or '('")),
        }
    }

    /// A name, or a call of a function.
    fn name(&mut self) -> Result<(), String> {
        let word = self.word().to_string();
        if self.peek() != Some(b'(') {
            let known = self.names.iter().position(|name| *name == word);
            let place = known.unwrap_or(self.names.len());
            if known.is_none() {
                self.names.push(word);
            }
            self.steps.push(Step::Name(place));
            return Ok(());
        }
        let operator = match word.as_str() {
            "min" => Operator::Min,
            "max" => Operator::Max,
            "ceil_div" => Operator::CeilDivide,
            _ => return Err(format!("unknown function {word} in \"{}\"; known are min, max, ceil_div", self.text)),
        };
        self.nested(|parser| {
            parser.sum()?;
            parser.take(b',')?;
            parser.sum()?;
            parser.take(b')')
        })?;
        self.steps.push(Step::Binary(operator));
        Ok(())
    }

    /// Reads what stands behind an opening bracket.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("brackets nested more than {MAX_DEPTH} deep"));
        }
        self.at += 1;
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(&format!("'{}'", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        self.at += length;
        &rest[..length]
    }

    fn wrong(&self, expected: &str) -> String {
        let found = self.text[self.at..].chars().next().map_or("the end".into(), |found| format!("'{found}'"));
        format!("expected {expected} at column {} of \"{}\", found {found}", self.at + 1, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i128, String> {
        let expr = Expr::parse(text)?;
        let names = expr.names().to_vec();
        expr.value(&mut Vec::new(), |place| match names[place].as_str() {
            "bytes" => Ok(4096),
            "m" => Ok(7),
            name => Err(format!("no {name}")),
        })
    }

    #[test]
    fn expressions_have_the_usual_precedence() {
        let cases = [
            ("100 + bytes/1024", 104),
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("10-3-2", 5),
            ("100/7/2", 7),
            ("17 % 5", 2),
            ("7/2*2", 6),
            ("min(m, 3) + max(m,3)", 10),
            ("ceil_div(m, 2)", 4),
            ("ceil_div(8, 2)", 4),
            ("0-7/2", -3),
            ("bytes_", 0),
        ];
        for (text, expected) in cases {
            if text == "bytes_" {
                assert_eq!(value(text), Err("no bytes_".into()));
            } else {
                assert_eq!(value(text), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(value("1/(m-7)"), Err("division by zero in \"1/(m-7)\"".into()));
        let square = "99999999999999999999*99999999999999999999";
        assert_eq!(value(&format!("{square}*10")), Err(format!("overflow in \"{square}*10\"")));
        assert_eq!(value("1 +"), Err("expected a number, a name or '(' at column 4 of \"1 +\", found the end".into()));
        assert_eq!(value("1 2"), Err("expected an operator at column 3 of \"1 2\", found '2'".into()));
        assert_eq!(value("(1"), Err("expected ')' at column 3 of \"(1\", found the end".into()));
        assert_eq!(value("log(1)"), Err("unknown function log in \"log(1)\"; known are min, max, ceil_div".into()));
        assert!(value("1.5").is_err());
        assert!(value("").is_err());
        assert!(value(&"(".repeat(10_000)).is_err());
        assert!(value("ü").is_err());
    }
}
