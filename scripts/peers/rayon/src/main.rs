//! rayon has no task graphs: consumer lists and fanin counters by hand, tasks as jobs of a scope on two threads.

mod graphs;

use graphs::Shape;
use rayon::prelude::*;
use rayon::{Scope, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

struct Graph {
    roots: Vec<u32>,
    /// The consumers of task `i` are `consumers[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    consumers: Vec<u32>,
    /// Producers that have not ended.
    waits_for: Vec<AtomicU8>,
    ran: Vec<AtomicU8>,
    spin: Duration,
}

impl Graph {
    fn new(shape: Shape, tasks: u32, spin: Duration) -> Graph {
        let (mut roots, mut waits_for, mut edges, mut found) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut first = vec![0; tasks as usize + 1];
        for id in 0..tasks {
            found.clear();
            shape.producers(u64::from(id), &mut found);
            for &producer in &found {
                first[producer as usize + 1] += 1;
                edges.push((producer as u32, id));
            }
            waits_for.push(AtomicU8::new(found.len() as u8));
            if found.is_empty() {
                roots.push(id);
            }
        }
        for id in 0..tasks as usize {
            first[id + 1] += first[id];
        }
        let mut next = first.clone();
        let mut consumers = vec![0; edges.len()];
        for (producer, consumer) in edges {
            let place = &mut next[producer as usize];
            consumers[*place as usize] = consumer;
            *place += 1;
        }
        let ran = (0..tasks).map(|_| AtomicU8::new(0)).collect();
        Graph { roots, first, consumers, waits_for, ran, spin }
    }

    fn run<'s>(&'s self, scope: &Scope<'s>) {
        self.roots.par_iter().for_each(|&root| self.task(scope, root));
    }

    /// Runs a task, goes on with the first consumer that it makes ready, and spawns the others.
    fn task<'s>(&'s self, scope: &Scope<'s>, mut id: u32) {
        loop {
            self.body(id);
            let range = self.first[id as usize] as usize..self.first[id as usize + 1] as usize;
            let mut ready = self.consumers[range]
                .iter()
                .filter(|&&consumer| self.waits_for[consumer as usize].fetch_sub(1, Ordering::AcqRel) == 1);
            let Some(&next) = ready.next() else { return };
            ready.for_each(|&other| scope.spawn(move |scope| self.task(scope, other)));
            id = next;
        }
    }

    fn body(&self, id: u32) {
        self.ran[id as usize].fetch_add(1, Ordering::Relaxed);
        if !self.spin.is_zero() {
            let start = Instant::now();
            while start.elapsed() < self.spin {}
        }
    }
}

fn arguments() -> Option<(Shape, u32, Duration)> {
    let words: Vec<String> = std::env::args().collect();
    let spin = words.get(3).map_or(Ok(0), |word| word.parse()).ok()?;
    Some((Shape::named(words.get(1)?)?, words.get(2)?.parse().ok()?, Duration::from_nanos(spin)))
}

/// The version of rayon that is locked.
fn version() -> &'static str {
    let (_, entry) =
        include_str!("../Cargo.lock").split_once("name = \"rayon\"\nversion = \"").expect("rayon is locked");
    entry.split('"').next().expect("a version")
}

fn main() {
    let Some((shape, tasks, spin)) = arguments() else {
        eprintln!("usage: peer-rayon chain|stencil|bgemm|random TASKS [SPIN_NS]");
        std::process::exit(2);
    };
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let start = Instant::now();
    let graph = Graph::new(shape, tasks, spin);
    pool.scope(|scope| graph.run(scope));
    let ns = start.elapsed().as_nanos();
    assert!(graph.ran.iter().all(|times| times.load(Ordering::Relaxed) == 1), "every task runs once");
    let edges = graph.consumers.len();
    println!("{{\"tasks\": {tasks}, \"edges\": {edges}, \"ns\": {ns}, \"version\": \"{}\"}}", version());
}
