//! The words of a trace: operations, and the fields of a submission.

use super::json::{Cursor, Fault};
use crate::nearest::suggestion;
use std::borrow::Cow;

/// Makes an enum, the lookup of its variants by name or alias, and the list of names.
macro_rules! words {
    ($(#[$meta:meta])* $type:ident { $($(#[$variant_meta:meta])* $variant:ident $name:literal $(| $alias:literal)*),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[$variant_meta])* $variant),* }

        impl $type {
            /// Every name, without aliases.
            pub const NAMES: &[&'static str] = &[$($name),*];

            /// The word with this name or alias.
            pub fn find(name: &str) -> Option<$type> {
                match name {
                    $($name $(| $alias)* => Some($type::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// What a line does.
    Op {
        Submit "submit",
        ScopeBegin "scope_begin",
        ScopeEnd "scope_end",
        Buffer "buffer",
        Control "control",
        Header "header",
        Done "done",
    }
}

words! {
    /// Fields of a `submit` line.
    Field {
        Kernel "kernel",
        WorkerType "worker_type",
        Cycles "cycles",
        Deps "deps",
        In "in" | "inputs",
        Out "out" | "outputs",
        InOut "inout" | "inouts",
        New "new",
        OutBytes "out_bytes",
        Name "name",
        Id "id",
        Op "op",
        Blocks "blocks",
        SyncStart "sync_start",
        Units "units",
        SubmitAt "submit_at",
        Fault "fault",
        Parent "parent",
        SpawnOffset "spawn_offset",
        Params "params",
        Routine "routine",
        Prio "prio",
        Group "group",
        Processor "processor",
        Activation "activation",
        WorkItem "work_item",
        Caller "caller",
        PostCycles "post_cycles",
        Node "node",
        Timestamp "timestamp",
        Source "source",
        ScheduleAt "schedule_at",
        Uuid "uuid",
        Args "args",
    }
}

/// How most lines of most traces begin; recognising it at once saves time.
const USUAL: &str = "{\"op\":\"submit\"";

/// Walks over the fields of one line, whose operation it finds out first.
pub struct Entries<'a> {
    /// Stands at the value after [`Entries::next_key`].
    pub cursor: Cursor<'a>,
    /// What the line does.
    pub op: Op,
    /// Whether the operation stands further behind, so that its key is still to be met.
    pub meets_op: bool,
    at_start: bool,
}

impl<'a> Entries<'a> {
    /// Opens the line and finds its operation, which usually stands first.
    pub fn new(line: &'a str) -> Result<Entries<'a>, Fault> {
        if let Some(cursor) = Cursor::behind(line, USUAL) {
            return Ok(Entries { cursor, op: Op::Submit, meets_op: false, at_start: false });
        }
        let mut cursor = Cursor::new(line);
        cursor.open(b'{', "an operation {\"op\":…}")?;
        if cursor.peek() == Some(b'"') && cursor.string()? == "op" {
            cursor.take(b':')?;
            let op = find_op(&mut cursor)?;
            return Ok(Entries { cursor, op, meets_op: false, at_start: false });
        }
        let mut cursor = Cursor::new(line);
        cursor.open(b'{', "an operation {\"op\":…}")?;
        Ok(Entries { cursor, op: search_op(line)?, meets_op: true, at_start: true })
    }

    /// The next key, or `None` at the end of the line.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        if !self.at_start
            && let Some(key) = self.cursor.usual_key()
        {
            return Ok(Some(Cow::Borrowed(key)));
        }
        self.rare_key()
    }

    fn rare_key(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        let more = if self.at_start { !self.cursor.close(b'}') } else { self.cursor.more(b'}')? };
        self.at_start = false;
        if !more {
            self.cursor.end()?;
            return Ok(None);
        }
        let key = self.cursor.string()?;
        self.cursor.take(b':')?;
        Ok(Some(key))
    }

    /// As [`Entries::next_key`], for lines that few traces have many of: the operation, which is known, is passed over.
    pub fn next_other_key(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        while let Some(key) = self.next_key()? {
            if key != "op" {
                return Ok(Some(key));
            }
            self.cursor.raw()?;
            if !std::mem::take(&mut self.meets_op) {
                return Err(twice(&key));
            }
        }
        Ok(None)
    }
}

/// Reads the operation when it does not stand first.
#[cold]
fn search_op(line: &str) -> Result<Op, Fault> {
    let mut found = None;
    let mut cursor = Cursor::new(line);
    cursor.object(|cursor, key| {
        if key != "op" {
            return cursor.raw().map(drop);
        }
        if found.replace(find_op(cursor)?).is_some() {
            return Err("field \"op\" stands twice in one line; keep one".into());
        }
        Ok(())
    })?;
    found.ok_or_else(|| "no field \"op\"; begin the line with {\"op\":\"submit\",…".into())
}

/// Reads the name of an operation. Escapes are not decoded, so that every control can be found by searching its name.
fn find_op(cursor: &mut Cursor<'_>) -> Result<Op, Fault> {
    let name = named("op", cursor.string())?;
    match (&name, Op::find(&name)) {
        (Cow::Borrowed(_), Some(op)) => Ok(op),
        _ => Err(format!("unknown op \"{name}\"; {}", suggestion(&name, Op::NAMES.iter().copied()))),
    }
}

/// The message of an unknown field.
#[cold]
pub fn unknown_field(key: &str, op: &str, known: &[&'static str]) -> Fault {
    format!("unknown field \"{key}\" of {op}; {}", suggestion(key, known.iter().copied()))
}

/// The value of a field, or what is wrong with it behind its name.
pub fn named<T>(key: &str, value: Result<T, Fault>) -> Result<T, Fault> {
    value.map_err(|fault| format!("field \"{key}\": {fault}"))
}

/// The message of a field that stands twice.
#[cold]
pub fn twice(key: &str) -> Fault {
    format!("field \"{key}\" stands twice in one line (aliases count); keep one")
}
