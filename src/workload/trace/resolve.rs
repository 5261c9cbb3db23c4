//! Names of tasks and buffers, and what they mean at the present place of the program.

use super::json::Fault;
use crate::id::{BufferId, Symbol, TaskId};
use crate::nearest::nearest;
use crate::workload::symbols::Hashed;
use crate::workload::{NewBuffer, Region, Symbols};

/// A task that has no such name yet.
const NOBODY: u64 = u64::MAX;
/// Names are not searched for a near one when there are more.
const MANY: usize = 10_000;

/// Everything known of the names met so far.
#[derive(Default)]
pub struct Names {
    /// Kernels, tasks and parameters.
    pub symbols: Symbols,
    /// Buffers.
    pub buffers: Symbols,
    /// Size of the buffer that each buffer name is bound to now.
    sizes: Vec<Option<u64>>,
    /// The latest task of each name that was given explicitly.
    latest: Vec<u64>,
    /// One bit a task: whether its name was given explicitly. Shorter than the number of tasks, the rest is 0.
    named: Vec<u64>,
    /// Tasks submitted so far.
    tasks: u64,
}

impl Names {
    /// The id of the task now being read.
    pub fn next_task(&self) -> TaskId {
        TaskId(self.tasks)
    }

    /// The task now being read is complete.
    pub fn submitted(&mut self, name: Option<Symbol>) {
        if let Some(Symbol(name)) = name {
            let (name, word) = (name as usize, (self.tasks / 64) as usize);
            if self.latest.len() <= name {
                self.latest.resize(name + 1, NOBODY);
            }
            self.latest[name] = self.tasks;
            if self.named.len() <= word {
                self.named.resize(word + 1, 0);
            }
            self.named[word] |= 1 << (self.tasks % 64);
        }
        self.tasks += 1;
    }

    /// An earlier task by its number.
    pub fn task_by_id(&self, id: u64) -> Result<TaskId, Fault> {
        self.earlier(id).ok_or_else(|| self.not_earlier(id))
    }

    /// An earlier task by its number, if there is one.
    #[inline]
    pub fn earlier(&self, id: u64) -> Option<TaskId> {
        (id < self.tasks).then_some(TaskId(id))
    }

    /// The latest earlier task of a name; a task without a name is called `task<id>`.
    pub fn task_by_name(&self, name: &str) -> Result<TaskId, Fault> {
        let explicit = self.symbols.find(name).and_then(|symbol| self.latest.get(symbol.0 as usize).copied());
        let explicit = explicit.filter(|&id| id != NOBODY);
        let implicit = default_name(name).filter(|&id| id < self.tasks && !self.is_named(id));
        match explicit.max(implicit) {
            Some(id) => Ok(TaskId(id)),
            None => Err(self.no_such_task(name)),
        }
    }

    /// Binds a name to a new buffer.
    pub fn bind(&mut self, buffer: BufferId, bytes: u64) {
        self.sizes[buffer.0 as usize] = Some(bytes);
    }

    /// Binds the names of buffers that a task allocates.
    #[inline]
    pub fn bind_all(&mut self, allocated: &[NewBuffer]) {
        for new in allocated {
            self.bind(new.buffer, new.bytes);
        }
    }

    /// The number of a buffer name, which need not be bound yet.
    pub fn buffer_name(&mut self, name: &str) -> BufferId {
        let symbol = self.buffers.intern(name);
        self.as_buffer(symbol)
    }

    /// As [`Names::buffer_name`]; `None` when the name is not UTF-8.
    #[inline]
    pub fn buffer(&mut self, name: Hashed<'_>) -> Option<BufferId> {
        let symbol = self.buffers.intern_hashed(name)?;
        Some(self.as_buffer(symbol))
    }

    #[inline]
    fn as_buffer(&mut self, Symbol(number): Symbol) -> BufferId {
        if self.sizes.len() <= number as usize {
            self.sizes.push(None);
        }
        BufferId(number)
    }

    /// All of the buffer bound to a name, if one is.
    #[inline]
    pub fn bound(&self, name: Hashed<'_>) -> Option<Region> {
        let Symbol(number) = self.buffers.find_hashed(name)?;
        Some(Region::range(BufferId(number), 0, self.sizes[number as usize]?))
    }

    /// All of the buffer bound to a name.
    pub fn whole(&self, name: &str) -> Result<Region, Fault> {
        let bound = self.buffers.find(name).and_then(|Symbol(number)| Some((number, self.sizes[number as usize]?)));
        match bound {
            Some((number, bytes)) => Ok(Region::range(BufferId(number), 0, bytes)),
            None => Err(self.no_such_buffer(name)),
        }
    }

    /// Rows of the buffer bound to a name, checked against its size.
    pub fn rows(&self, name: &str, numbers: [u64; 4]) -> Result<Region, Fault> {
        rows(name, self.whole(name)?, numbers)
    }

    fn is_named(&self, id: u64) -> bool {
        self.named.get((id / 64) as usize).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    #[cold]
    fn not_earlier(&self, id: u64) -> Fault {
        let own = self.tasks;
        let remedy = match own {
            0 => "the first task can depend on nothing".into(),
            1 => "the only earlier task is 0".into(),
            _ => format!("earlier tasks are 0 to {}", own - 1),
        };
        if id == own {
            format!("task {own} cannot wait for itself; {remedy}")
        } else {
            format!("task {own} cannot wait for task {id}, which comes later; {remedy}")
        }
    }

    #[cold]
    fn no_such_task(&self, name: &str) -> Fault {
        if default_name(name) == Some(self.tasks) {
            return self.not_earlier(self.tasks);
        }
        let is_task = |symbol: Symbol| self.latest.get(symbol.0 as usize).is_some_and(|&id| id != NOBODY);
        let names = self.symbols.iter().take(MANY).filter(|&(symbol, _)| is_task(symbol)).map(|(_, name)| name);
        let remedy = match nearest(name, names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "name an earlier task or use its number".into(),
        };
        format!("no earlier task is called \"{name}\"; {remedy}")
    }

    #[cold]
    fn no_such_buffer(&self, name: &str) -> Fault {
        let is_bound = |symbol: Symbol| self.sizes[symbol.0 as usize].is_some();
        let names = self.buffers.iter().take(MANY).filter(|&(symbol, _)| is_bound(symbol)).map(|(_, name)| name);
        let near = nearest(name, names).map_or(String::new(), |near| format!("did you mean \"{near}\"? otherwise "));
        format!(
            "unknown buffer \"{name}\"; {near}declare it before with {{\"op\":\"buffer\",\"id\":\"{name}\",\"bytes\":…}} \
             or in \"new\" of an earlier task"
        )
    }
}

/// Most rows of a region that lie apart. The tensor map remembers each of them by itself.
const MOST_ROWS: u64 = 1 << 20;

/// Rows (`offset, row_bytes, rows, stride`) of a buffer, given as a whole; rows that touch become one.
pub fn rows(name: &str, whole: Region, [offset, row_bytes, rows, stride]: [u64; 4]) -> Result<Region, Fault> {
    if rows > 1 && stride < row_bytes {
        return Err(format!(
            "rows of \"{name}\" overlap: stride {stride} is less than row_bytes {row_bytes}; use a stride of at least \
             {row_bytes}"
        ));
    }
    let end = region_end(offset, row_bytes, rows, stride);
    if end.is_none_or(|end| end > whole.row_bytes) {
        let end = end.map_or("beyond 2^64".into(), |end| format!("at byte {end}"));
        return Err(format!(
            "region of \"{name}\" ends {end}, but the buffer has {} bytes; make the buffer larger or the region smaller",
            whole.row_bytes
        ));
    }
    let buffer = whole.buffer;
    Ok(match (row_bytes, rows) {
        (0, _) | (_, 0) => Region::range(buffer, offset, 0),
        (_, 1) => Region::range(buffer, offset, row_bytes),
        _ if stride == row_bytes => Region::range(buffer, offset, row_bytes * rows),
        _ if rows > MOST_ROWS => {
            return Err(format!(
                "region of \"{name}\" has {rows} rows that lie apart, at most {MOST_ROWS} can be told from each other; use \
                 fewer, or one range around them"
            ));
        }
        _ => Region { buffer, offset, row_bytes, rows, stride },
    })
}

/// The byte behind a region; `None` beyond 2^64.
fn region_end(offset: u64, row_bytes: u64, rows: u64, stride: u64) -> Option<u64> {
    if row_bytes == 0 || rows == 0 {
        return Some(offset);
    }
    (rows - 1).checked_mul(stride)?.checked_add(row_bytes)?.checked_add(offset)
}

/// The id in `task<id>`, as it is written for a task without a name.
fn default_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("task")?;
    let canonical = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_lie_apart_are_counted_and_those_that_touch_are_one() {
        let whole = Region::range(crate::id::BufferId(0), 0, 1 << 30);
        let of = |count, stride| rows("A", whole, [0, 1, count, stride]);
        assert_eq!(of(MOST_ROWS, 2).map(|region| region.rows), Ok(MOST_ROWS));
        assert_eq!(of(MOST_ROWS + 1, 1).map(|region| (region.rows, region.row_bytes)), Ok((1, MOST_ROWS + 1)));
        let refused = of(MOST_ROWS + 1, 2).expect_err("too many");
        assert!(refused.starts_with("region of \"A\" has 1048577 rows that lie apart, at most 1048576"), "{refused}");
    }
}
