//! A run allocates while it begins and ends, and not once per task in between.
#![expect(unsafe_code, reason = "an allocator that counts")]

use ptosim::config::Machine;
use ptosim::{engine, workload};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(spec: &str, machine: &Machine) -> u64 {
    let workload = workload::open(spec).expect("a generator");
    let before = ALLOCATIONS.load(Relaxed);
    let report = engine::run(workload.as_ref(), machine, &mut ()).expect("the run completes");
    let count = ALLOCATIONS.load(Relaxed) - before;
    assert!(report.deadlock.is_none(), "{spec}");
    count
}

/// A workload by its number of tasks.
type Shape = fn(u64) -> String;

/// One test in this program, so that nobody else allocates meanwhile.
#[test]
fn a_longer_program_takes_no_more_allocations() {
    for name in ["ideal", "a2a3"] {
        let machine = Machine::load(name).expect("a built-in machine");
        let shapes: [(&str, Shape); 5] = [
            ("chain", |n| format!("chain:n={n}")),
            ("stencil", |n| format!("stencil:n={n}")),
            ("random", |n| format!("random:n={n},fanin=3")),
            ("bgemm", |n| format!("bgemm:batch=1,m=10,n=10,k={}", n / 200)),
            ("wavefront", |n| format!("wavefront:n={n}")),
        ];
        for (shape, spec) in shapes {
            let (short, long) = (allocations(&spec(100_000), &machine), allocations(&spec(300_000), &machine));
            // Queues grow by doubling, so a longer run may need a few steps more.
            assert!(long <= short + 20, "{shape} on {name}: {short} allocations, then {long}");
        }
    }
}
