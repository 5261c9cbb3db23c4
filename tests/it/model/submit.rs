//! The orchestrator: one operation after the other, and the resources it reserves for a task.

use super::{Model, Resource, Stuck, Task, queue};
use crate::program::Op;
use ptosim::config::{Hazards, ScopeHold};
use ptosim::id::TaskType;
use ptosim::report::Blocked;
use ptosim::workload::Submit;

/// Where the orchestrator is.
#[derive(Default)]
pub struct Orchestrator {
    /// The operation at hand.
    position: usize,
    /// When the operation at hand is paid for, if it has started.
    paid_at: Option<u64>,
    /// What the operation at hand waits for, and for how many cycles it has waited for just that.
    blocked: Option<(Resource, u64)>,
    /// Scopes opened so far, and those still open, innermost last.
    n_scopes: usize,
    open: Vec<usize>,
}

/// A window, heap and dependency pool.
#[derive(Default)]
pub struct Ring {
    /// Every task that ever entered.
    pub tasks: Vec<usize>,
    /// How many of them are retired: `last_task_alive`.
    pub retired: usize,
    /// Byte counters that only grow.
    pub heap_top: u64,
    pub heap_tail: u64,
}

impl Ring {
    /// Tasks that entered and are not retired, oldest first.
    pub fn alive(&self) -> &[usize] {
        &self.tasks[self.retired..]
    }
}

/// What the operation at hand asks for.
struct Request {
    ring: usize,
    heap: u64,
    /// All it depends on, and how many of those are not CONSUMED.
    depends_on: Vec<usize>,
    deps: u64,
    tensors: u64,
}

/// Why an operation cannot start.
enum Refusal {
    /// Not now.
    Lacks(Resource),
    /// Never.
    NeverFits,
}

impl Model<'_> {
    /// Step 5: works until it must wait. The error is the task that can never be submitted.
    pub fn orchestrate(&mut self) -> Result<bool, usize> {
        let mut changed = false;
        let program = self.program;
        while let Some(op) = program.ops.get(self.orchestrator.position) {
            let moved = match self.orchestrator.paid_at {
                None => self.begin(op)?,
                Some(paid_at) if paid_at > self.now => false,
                Some(_) => {
                    self.take_effect(op);
                    true
                }
            };
            if !moved {
                break;
            }
            changed = true;
        }
        Ok(changed)
    }

    /// Starts an operation, if it can start now.
    fn begin(&mut self, op: &Op) -> Result<bool, usize> {
        let cost = match op {
            Op::Buffer { .. } => 0,
            Op::ScopeBegin | Op::ScopeEnd => self.machine.orchestrator.scope,
            Op::Submit(submit) if submit.submit_at > self.now => return Ok(false),
            Op::Submit(submit) => match self.reserve(submit) {
                Ok(cost) => cost,
                Err(Refusal::NeverFits) => return Err(self.tasks.len()),
                Err(Refusal::Lacks(resource)) => {
                    self.wait_for(Some(resource));
                    return Ok(false);
                }
            },
        };
        self.wait_for(None);
        self.orchestrator.paid_at = Some(self.now + cost);
        Ok(true)
    }

    /// Notes what is lacking now. A wait that comes to its end is booked; the last one of a deadlock never does.
    ///
    /// Choice: a task that gets past one resource and stays blocked on a later one was blocked on the first for as long
    /// as that lasted, also when the run ends in a deadlock on the later one.
    fn wait_for(&mut self, lacking: Option<Resource>) {
        match self.orchestrator.blocked {
            Some((resource, _)) if Some(resource) == lacking => {}
            before => {
                if let Some((resource, cycles)) = before {
                    *account(&mut self.told.orchestrator.blocked, resource) += cycles;
                }
                self.orchestrator.blocked = lacking.map(|resource| (resource, 0));
            }
        }
    }

    /// The operation at hand is paid for.
    fn take_effect(&mut self, op: &Op) {
        self.orchestrator.paid_at = None;
        self.orchestrator.position += 1;
        match op {
            Op::Buffer { buffer, bytes } => self.memory.bind(*buffer, *bytes),
            Op::ScopeBegin => {
                self.orchestrator.open.push(self.orchestrator.n_scopes);
                self.orchestrator.n_scopes += 1;
            }
            Op::ScopeEnd => {
                let closed = self.orchestrator.open.pop().expect("scopes match");
                for task in &mut self.tasks {
                    task.held_by.retain(|&scope| scope != closed);
                }
                self.consume();
            }
            Op::Submit(submit) => self.publish(submit),
        }
    }

    /// Links, is held, is published: one step.
    fn publish(&mut self, submit: &Submit) {
        let id = self.tasks.len() - 1;
        for producer in self.tasks[id].depends_on.clone() {
            if !self.tasks[producer].consumed {
                self.tasks[producer].consumers.push(id);
                self.tasks[id].producers.push(producer);
                self.told.edges += 1;
            }
        }
        let open = &self.orchestrator.open;
        self.tasks[id].held_by = match self.machine.rules.scope_hold {
            ScopeHold::Innermost => open.last().copied().into_iter().collect(),
            ScopeHold::Enclosing => open.clone(),
        };
        self.tasks[id].published = Some(self.now);
        self.memory.record(id, submit);
        self.told.tasks += 1;
        self.jobs.push_back(super::Job::Admit(id));
    }

    /// Looks everything up again, and takes it if all is there. Gives the cost of the operation.
    fn reserve(&mut self, submit: &Submit) -> Result<u64, Refusal> {
        let request = self.request(submit);
        let heap = self.check(&request)?;
        let id = self.tasks.len();
        let ring = &mut self.rings[request.ring];
        ring.tasks.push(id);
        if let Some((base, tail)) = heap {
            ring.heap_tail = tail;
            ring.heap_top = base + request.heap;
        }
        let kind = queue(submit, self.machine);
        self.tasks.push(Task {
            submit: submit.clone(),
            kind,
            blocks: if kind == TaskType::None { 1 } else { submit.blocks },
            heap_end: heap.map(|(base, _)| base + request.heap),
            dep_entries: request.deps,
            map_entries: request.tensors,
            depends_on: request.depends_on,
            producers: Vec::new(),
            consumers: Vec::new(),
            held_by: Vec::new(),
            published: None,
            admitted: false,
            ready: None,
            placed: 0,
            taken: 0,
            ended: 0,
            completed: false,
            consumed: false,
        });
        self.raise_high_water(request.ring);
        Ok(self.machine.orchestrator.submit + self.machine.orchestrator.per_edge * request.deps)
    }

    fn request(&self, submit: &Submit) -> Request {
        let hazards = self.machine.rules.hazards;
        let depends_on: Vec<_> = self.memory.producers(submit, hazards).into_iter().collect();
        let reads = if hazards == Hazards::Full { submit.reads.len() } else { 0 };
        let depth = self.orchestrator.open.len();
        let rounded = |bytes: u64| bytes.div_ceil(64) * 64;
        Request {
            ring: depth.max(1).min(self.rings.len()) - 1,
            heap: submit.allocates.iter().map(|new| rounded(new.bytes)).sum::<u64>() + rounded(submit.out_bytes),
            deps: depends_on.iter().filter(|&&producer| !self.tasks[producer].consumed).count() as u64,
            tensors: (reads + submit.writes.len() + submit.updates.len() + submit.allocates.len()) as u64,
            depends_on,
        }
    }

    /// Window, heap, dependency entries, tensor-map entries, in this order. Gives base and tail of the heap piece.
    ///
    /// Choice: a demand larger than a whole resource is an error when its turn in this order comes, so a task that waits
    /// for a slot is not yet refused for its heap piece. The demand for dependency entries is the one of that attempt.
    fn check(&self, request: &Request) -> Result<Option<(u64, u64)>, Refusal> {
        let limits = &self.machine.limits;
        let ring = &self.rings[request.ring];
        if ring.alive().len() as u64 + limits.spare >= limits.window {
            return Err(Refusal::Lacks(Resource::Window));
        }
        let heap = self.heap_piece(ring, request.heap)?;
        let fits = |resource, size, used, wanted| match wanted {
            _ if wanted > size => Err(Refusal::NeverFits),
            _ if used + wanted > size => Err(Refusal::Lacks(resource)),
            _ => Ok(()),
        };
        fits(Resource::Deps, limits.deps, self.deps_used(request.ring), request.deps)?;
        fits(Resource::Tensors, limits.tensors, self.tensors_used(), request.tensors)?;
        Ok(heap)
    }

    fn heap_piece(&self, ring: &Ring, size: u64) -> Result<Option<(u64, u64)>, Refusal> {
        let heap = self.machine.limits.heap;
        if size == 0 {
            return Ok(None);
        }
        if size > heap {
            return Err(Refusal::NeverFits);
        }
        let crosses = ring.heap_top % heap + size > heap;
        let base = if crosses { ring.heap_top.next_multiple_of(heap) } else { ring.heap_top };
        let is_empty = ring.alive().iter().all(|&task| self.tasks[task].heap_end.is_none());
        let tail = if is_empty { base } else { ring.heap_tail };
        if base + size - tail > heap {
            return Err(Refusal::Lacks(Resource::Heap));
        }
        Ok(Some((base, tail)))
    }

    fn deps_used(&self, ring: usize) -> u64 {
        self.rings[ring].alive().iter().map(|&task| self.tasks[task].dep_entries).sum()
    }

    fn tensors_used(&self) -> u64 {
        let alive = self.rings.iter().flat_map(Ring::alive);
        alive.map(|&task| self.tasks[task].map_entries).sum()
    }

    fn raise_high_water(&mut self, number: usize) {
        let (deps, tensors) = (self.deps_used(number), self.tensors_used());
        let ring = &self.rings[number];
        let high_water = &mut self.told.high_water;
        high_water.tensors = high_water.tensors.max(tensors);
        let high_water = &mut high_water.rings[number];
        high_water.window = high_water.window.max(ring.alive().len() as u64);
        high_water.heap = high_water.heap.max(ring.heap_top - ring.heap_tail);
        high_water.deps = high_water.deps.max(deps);
    }

    /// When the orchestrator does something by itself again.
    pub fn orchestrator_wakes(&self) -> Option<u64> {
        let submit_at = match self.program.ops.get(self.orchestrator.position)? {
            Op::Submit(submit) => Some(submit.submit_at).filter(|&at| at > self.now),
            Op::Buffer { .. } | Op::ScopeBegin | Op::ScopeEnd => None,
        };
        self.orchestrator.paid_at.or(submit_at)
    }

    /// Books cycles of the orchestrator in which nothing happens.
    pub fn spend(&mut self, cycles: u64) {
        let told = &mut self.told.orchestrator;
        if self.orchestrator.position == self.program.ops.len() {
            told.done += cycles;
        } else if self.orchestrator.paid_at.is_some() {
            told.working += cycles;
        } else if let Some((_, blocked)) = &mut self.orchestrator.blocked {
            *blocked += cycles;
        } else {
            told.waiting += cycles;
        }
    }

    /// The facts, if the orchestrator is blocked at the end of the run. The cycles of that wait are its stuck ones.
    pub fn stuck(&mut self) -> Option<Stuck> {
        let (resource, cycles) = self.orchestrator.blocked?;
        self.told.orchestrator.stuck = cycles;
        let Op::Submit(submit) = &self.program.ops[self.orchestrator.position] else { return None };
        let request = self.request(submit);
        let (limits, ring) = (&self.machine.limits, &self.rings[request.ring]);
        let (size, used, wanted) = match resource {
            Resource::Window => (limits.window, ring.alive().len() as u64, 1),
            Resource::Heap => (limits.heap, ring.heap_top - ring.heap_tail, request.heap),
            Resource::Deps => (limits.deps, self.deps_used(request.ring), request.deps),
            Resource::Tensors => (limits.tensors, self.tensors_used(), request.tensors),
        };
        let oldest = match resource {
            Resource::Tensors => self.oldest_with_entries(),
            Resource::Window | Resource::Heap | Resource::Deps => ring.alive().first().copied(),
        };
        Some(Stuck {
            resource,
            ring: request.ring as u32,
            task: self.tasks.len() as u64,
            at: self.now,
            current: ring.tasks.len() as u64,
            last_task_alive: ring.retired as u64,
            size,
            used,
            wanted,
            oldest: oldest.map(|task| task as u64),
            holders: oldest.map_or_else(Vec::new, |task| self.holders(task)),
        })
    }

    /// The oldest task alive of the rings in which a task has tensor-map entries.
    fn oldest_with_entries(&self) -> Option<usize> {
        let has_entries = |ring: &&Ring| ring.alive().iter().any(|&task| self.tasks[task].map_entries > 0);
        self.rings.iter().filter(has_entries).map(|ring| ring.alive()[0]).min()
    }

    /// How many tasks are held by each scope that holds this one.
    fn holders(&self, task: usize) -> Vec<u64> {
        let held = |scope: &usize| self.tasks.iter().filter(|task| task.held_by.contains(scope)).count() as u64;
        self.tasks[task].held_by.iter().map(held).collect()
    }
}

fn account(blocked: &mut Blocked, resource: Resource) -> &mut u64 {
    match resource {
        Resource::Window => &mut blocked.window,
        Resource::Heap => &mut blocked.heap,
        Resource::Deps => &mut blocked.deps,
        Resource::Tensors => &mut blocked.tensors,
    }
}
