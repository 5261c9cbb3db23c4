//! The protobuf form of a Chakra trace: a length and a message, again and again; first the metadata, then the nodes.

use super::Node;
use std::borrow::Cow;

/// What is wrong, and at which byte.
pub struct Fault {
    /// Offset in the file.
    pub byte: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads all nodes of a file.
pub fn nodes(bytes: &[u8]) -> Result<Vec<Node<'_>>, Fault> {
    let mut file = Wire { bytes, position: 0, end: bytes.len() };
    file.message()?.skip_all()?;
    let mut nodes = Vec::new();
    while file.position < file.end {
        nodes.push(node(file.message()?)?);
    }
    Ok(nodes)
}

/// Whether a file begins with metadata and a node.
pub fn looks_right(head: &[u8], is_whole: bool) -> bool {
    let mut file = Wire { bytes: head, position: 0, end: head.len() };
    let Ok(mut metadata) = file.message() else { return false };
    while metadata.position < metadata.end {
        let Ok((field, 2)) = metadata.key() else { return false };
        if !(1..=2).contains(&field) || metadata.bytes().is_err() {
            return false;
        }
    }
    match file.message() {
        Ok(first) => node(first).is_ok(),
        // The first node may be longer than what is seen of the file.
        Err(_) => !is_whole && file.position < file.end && metadata.end > 2,
    }
}

/// Field 1 of a node is its id, 2 the name, 3 the type, 4 and 5 control and data dependencies, 7 microseconds, 10 attributes.
fn node(mut wire: Wire<'_>) -> Result<Node<'_>, Fault> {
    let mut node = Node::default();
    while wire.position < wire.end {
        match wire.key()? {
            (1, 0) => node.id.0 = wire.varint()?,
            (2, 2) => node.name = wire.text()?.into(),
            (3, 0) => node.kind.0 = wire.varint()?,
            (4, form @ (0 | 2)) => wire.numbers(form, |id| node.ctrl_deps.push(super::Whole(id)))?,
            (5, form @ (0 | 2)) => wire.numbers(form, |id| node.data_deps.push(super::Whole(id)))?,
            (7, 0) => node.micros.0 = wire.varint()? as f64,
            (10, 2) => attribute(wire.message()?, &mut node)?,
            (_, form) => wire.skip(form)?,
        }
    }
    Ok(node)
}

/// Field 1 of an attribute is its name; among the values only booleans (27) matter here, or whole numbers in their place.
fn attribute(mut wire: Wire<'_>, node: &mut Node<'_>) -> Result<(), Fault> {
    let (mut name, mut value) = (Cow::default(), None);
    while wire.position < wire.end {
        match wire.key()? {
            (1, 2) => name = wire.text()?,
            (7 | 9 | 11 | 13 | 27, 0) => value = Some(wire.varint()? != 0),
            (_, form) => wire.skip(form)?,
        }
    }
    if name == "is_cpu_op" {
        // A field that is left out has its default value, false.
        node.is_cpu_op = Some(super::Flag(value.unwrap_or(false)));
    }
    Ok(())
}

/// A message being read.
struct Wire<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
}

impl<'a> Wire<'a> {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { byte: self.position, message: message.into() })
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            if self.position >= self.end {
                return self.fault("the file ends inside a number; it is cut off, copy it again");
            }
            let byte = self.bytes[self.position];
            self.position += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.fault("a number of more than 10 bytes; this is not a Chakra trace, or it is damaged")
    }

    /// Number and form of the next field.
    fn key(&mut self) -> Result<(u64, u64), Fault> {
        self.varint().map(|key| (key >> 3, key & 7))
    }

    /// A length and as many bytes.
    fn message(&mut self) -> Result<Wire<'a>, Fault> {
        let length = self.varint()?;
        let left = (self.end - self.position) as u64;
        if length > left {
            return self.fault(format!(
                "a message of {length} bytes where only {left} are left; the file is cut off or no Chakra trace"
            ));
        }
        let start = self.position;
        self.position += length as usize;
        Ok(Wire { bytes: self.bytes, position: start, end: self.position })
    }

    fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        self.message().map(|part| &part.bytes[part.position..part.end])
    }

    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.bytes().map(String::from_utf8_lossy)
    }

    /// One number, or a packed list of them.
    fn numbers(&mut self, form: u64, mut take: impl FnMut(u64)) -> Result<(), Fault> {
        if form == 0 {
            take(self.varint()?);
            return Ok(());
        }
        let mut list = self.message()?;
        while list.position < list.end {
            take(list.varint()?);
        }
        Ok(())
    }

    fn skip(&mut self, form: u64) -> Result<(), Fault> {
        let fixed = match form {
            0 => return self.varint().map(drop),
            1 => 8,
            2 => return self.message().map(drop),
            5 => 4,
            _ => {
                return self
                    .fault(format!("a field of form {form}, which Chakra traces do not have; the file is damaged"));
            }
        };
        if self.end - self.position < fixed {
            return self.fault("the file ends inside a field; it is cut off, copy it again");
        }
        self.position += fixed;
        Ok(())
    }

    fn skip_all(mut self) -> Result<(), Fault> {
        while self.position < self.end {
            let (_, form) = self.key()?;
            self.skip(form)?;
        }
        Ok(())
    }
}
