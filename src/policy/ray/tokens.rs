//! Sources and their tokens: a task holds one of its source's from its firing to its end; those behind wait in line.

use super::config::{ConcurrentCount, Config};
use std::collections::{HashMap, VecDeque};

/// The source of tasks that name none.
pub const DEFAULT_SOURCE: &str = "_default";

/// A number of tokens and who waits for one, first come first served.
#[derive(Clone, Debug)]
pub struct Semaphore<T> {
    available: u64,
    waiters: VecDeque<T>,
}

impl<T> Semaphore<T> {
    /// With this many tokens.
    #[must_use]
    pub fn new(tokens: u64) -> Semaphore<T> {
        Semaphore { available: tokens, waiters: VecDeque::new() }
    }

    /// Takes a token for `who`, or puts them in line; gives them back when they have one.
    pub fn acquire(&mut self, who: T) -> Option<T> {
        if self.available == 0 {
            self.waiters.push_back(who);
            return None;
        }
        self.available -= 1;
        Some(who)
    }

    /// Gives a token back; the first in line has it at once.
    pub fn release(&mut self) -> Option<T> {
        let next = self.waiters.pop_front();
        self.available += u64::from(next.is_none());
        next
    }

    /// Tokens nobody holds.
    pub fn available(&self) -> u64 {
        self.available
    }
}

/// All sources by name.
pub(super) struct Sources<T> {
    list: Vec<Source<T>>,
    index: HashMap<String, u32>,
    /// Of a source that a task names and nobody registered; `None` drops its tasks.
    unregistered: Option<u64>,
}

/// One source.
pub(super) struct Source<T> {
    pub name: String,
    /// `None` for a source whose tasks are dropped.
    pub tokens: Option<u64>,
    /// Made when its first task is fired.
    pub semaphore: Option<Semaphore<T>>,
    pub started: u64,
    pub finished: u64,
    pub failures: u64,
}

impl<T> Sources<T> {
    /// The registered sources. If nothing is said of sources, every name is one with the tokens a source has by default, so that
    /// any trace runs.
    pub fn new(config: &Config, n_workers: u32) -> Sources<T> {
        let unregistered = config.sources.is_none().then(|| ConcurrentCount::default().tokens());
        let mut sources = Sources { list: Vec::new(), index: HashMap::new(), unregistered };
        sources.intern(DEFAULT_SOURCE);
        sources.list[0].tokens = Some(u64::from(n_workers).max(1));
        for (name, source) in config.sources.iter().flatten() {
            let number = sources.intern(name);
            sources.list[number as usize].tokens = Some(source.concurrent_count.tokens());
        }
        sources
    }

    /// The number of a source; 0 is the default one.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        let number = self.list.len() as u32;
        let (name_of_source, tokens) = (name.into(), self.unregistered);
        self.list.push(Source { name: name_of_source, tokens, semaphore: None, started: 0, finished: 0, failures: 0 });
        self.index.insert(name.into(), number);
        number
    }

    pub fn source(&self, number: u32) -> &Source<T> {
        &self.list[number as usize]
    }

    pub fn source_mut(&mut self, number: u32) -> &mut Source<T> {
        &mut self.list[number as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Source<T>> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Semaphore;

    #[test]
    fn a_token_given_back_goes_to_the_first_in_line() {
        let mut semaphore = Semaphore::new(1);
        assert_eq!(semaphore.acquire("a"), Some("a"));
        assert_eq!([semaphore.acquire("b"), semaphore.acquire("c")], [None, None]);
        assert_eq!([semaphore.release(), semaphore.release()], [Some("b"), Some("c")]);
        assert_eq!((semaphore.release(), semaphore.available()), (None, 1));
    }
}
