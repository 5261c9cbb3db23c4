//! Lines of a text, read in large pieces; gzip is recognised by its first bytes.

use flate2::bufread::GzDecoder;
use std::io::{self, BufReader, Chain, Cursor, Read};

/// Bytes asked of the input at a time.
const PIECE: usize = 1 << 18;
/// How gzip data begin.
pub const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What some editors put in front of a text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Bytes of the longest line; a task with ten million producers needs less.
pub const LONGEST: usize = 1 << 28;

/// Reads a text line by line without allocating per line.
pub struct Lines {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// First byte not yet given out.
    start: usize,
    /// First byte behind what was read.
    end: usize,
    /// Bytes from `start` on that are known to contain no line end.
    searched: usize,
    number: u64,
    finished: bool,
}

impl Lines {
    /// Starts at the first line of `input`, unpacking it if it is gzip.
    pub fn new(input: Box<dyn Read + Send>) -> io::Result<Lines> {
        Ok(Lines {
            input: unpacked(input)?,
            buffer: vec![0; PIECE],
            start: 0,
            end: 0,
            searched: 0,
            number: 0,
            finished: false,
        })
    }

    /// The next line without its end, or `None` behind the last one.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let unseen = self.start + self.searched;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[unseen..self.end]) {
                let line = self.start..unseen + length;
                self.start = line.end + 1;
                self.searched = 0;
                self.number += 1;
                return Ok(Some(&self.buffer[line]));
            }
            self.searched = self.end - self.start;
            if self.finished {
                return Ok(self.last_line());
            }
            self.fill()?;
        }
    }

    /// What was read and not yet given out: lines, and often the beginning of another one.
    #[inline]
    pub fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes the next line as given out; it has so many bytes with its end.
    #[inline]
    pub fn pass(&mut self, bytes: usize) {
        self.start += bytes;
        self.searched = 0;
        self.number += 1;
    }

    /// Number of the line last given out, from 1; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What stands behind the last line end.
    fn last_line(&mut self) -> Option<&[u8]> {
        let line = self.start..self.end;
        self.start = self.end;
        self.searched = 0;
        if line.is_empty() {
            return None;
        }
        self.number += 1;
        Some(&self.buffer[line])
    }

    /// Moves the unfinished line to the front, makes room and reads once. A line that does not end is an error, before it
    /// takes all memory.
    fn fill(&mut self) -> io::Result<()> {
        if self.end - self.start > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < PIECE / 2 {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.finished = count == 0;
        self.end += count;
        Ok(())
    }
}

/// `input` itself, or what it contains if it begins like gzip.
///
/// # Errors
/// When its first bytes cannot be read.
pub fn unpacked(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let (is_packed, head) = is_gzip(&mut input)?;
    if !is_packed {
        return Ok(Box::new(head.chain(input)));
    }
    let packed = head.chain(BufReader::with_capacity(PIECE, input));
    Ok(Box::new(Members { current: Some(GzDecoder::new(packed)) }))
}

/// What gzip data contain that consist of one or several members, one behind the other.
struct Members {
    /// The member being unpacked; `None` behind the last.
    current: Option<GzDecoder<Packed>>,
}

/// The two bytes by which a member was recognised, and what follows.
type Packed = Chain<Cursor<Vec<u8>>, BufReader<Box<dyn Read + Send>>>;

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.current {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(member) = self.current.take() else { break };
            let (_, mut input) = member.into_inner().into_inner();
            let (is_packed, head) = is_gzip(&mut input)?;
            if is_packed {
                self.current = Some(GzDecoder::new(head.chain(input)));
            } else if !head.get_ref().is_empty() {
                return Err(io::Error::other(Trailing));
            }
        }
        Ok(0)
    }
}

/// Behind gzip data stands something that is not gzip.
#[derive(thiserror::Error, Debug)]
#[error("there are bytes behind the end of the gzip data that are not gzip; cut them off")]
struct Trailing;

/// What is wrong with gzip data that cannot be unpacked, and what to do.
pub fn gzip_fault(error: &io::Error) -> String {
    if let Some(inner) = error.get_ref()
        && inner.is::<Trailing>()
    {
        return error.to_string();
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the gzip data end too early; the file is cut off, copy it again".into(),
        _ => format!("the gzip data are damaged ({error}); copy the file again"),
    }
}

/// Whether an input begins like gzip, and the bytes by which that was seen.
pub fn is_gzip(input: &mut dyn Read) -> io::Result<(bool, Cursor<Vec<u8>>)> {
    let mut head = Vec::with_capacity(2);
    input.take(2).read_to_end(&mut head)?;
    Ok((head == GZIP, Cursor::new(head)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn lines(input: impl Read + Send + 'static) -> io::Result<Vec<String>> {
        let mut lines = Lines::new(Box::new(input))?;
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(String::from_utf8(line.to_vec()).expect("text"));
        }
        assert_eq!(lines.number(), found.len() as u64);
        Ok(found)
    }

    /// Gives one byte at a time.
    struct Drip(Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn lines_longer_than_the_buffer_arrive_whole() {
        let long = "x".repeat(3 * PIECE + 7);
        let text = format!("a\n\n{long}\nlast");
        let expected = ["a", "", &long, "last"];
        assert_eq!(lines(Cursor::new(text.clone().into_bytes())).expect("read"), expected);
        let drip = format!("a\n\n{}\n", "y".repeat(999));
        assert_eq!(lines(Drip(Cursor::new(drip.into_bytes()))).expect("read"), ["a", "", &"y".repeat(999)]);
        assert!(lines(Cursor::new(Vec::new())).expect("read").is_empty());
    }

    #[test]
    fn a_line_that_does_not_end_is_refused_before_it_takes_all_memory() {
        let error = lines(io::repeat(b'x')).expect_err("endless");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn gzip_in_several_members_is_unpacked_and_a_cut_one_is_an_error() {
        let mut packed = Vec::new();
        for part in ["a\nb", "c\n"] {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part.as_bytes()).expect("write");
            packed.extend(encoder.finish().expect("finish"));
        }
        assert_eq!(lines(Cursor::new(packed.clone())).expect("read"), ["a", "bc"]);
        assert_eq!(lines(Drip(Cursor::new(packed.clone()))).expect("read"), ["a", "bc"]);
        for behind in [&b"x"[..], b"\x1f", b"\0\0\0\0", b"not gzip, but longer than a header"] {
            let error = lines(Cursor::new([&packed, behind].concat())).expect_err("more than gzip");
            assert!(gzip_fault(&error).starts_with("there are bytes behind the end of the gzip data"), "{error}");
        }
        packed.truncate(packed.len() - 6);
        let error = lines(Cursor::new(packed)).expect_err("cut");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
