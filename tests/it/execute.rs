//! Real numbers through the runtime: small heaps that recycle hundreds of times, checked against direct computations.

use ptosim::config::Machine;
use ptosim::engine::RunError;
use ptosim::engine::execute::{Numbers, verify};
use ptosim::engine::threads::{Options, run};
use ptosim::report::{Outcome, Report};
use ptosim::runtime::Runtime;
use ptosim::workload;
use std::sync::Arc;

fn execute(spec: &str, settings: &[&str]) -> (Arc<Numbers>, Report) {
    let mut machine = Machine::default();
    machine.apply(&settings.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("settings of the test");
    machine.validate().expect("settings of the test");
    let workload = workload::open(spec).expect("a generator");
    let numbers = Arc::new(Numbers::new(spec, &machine).expect("memory for the heap"));
    let options = Options { executors: Some(3), ..Options::default() };
    let report = run(&numbers.tap(workload.as_ref()), &machine, &*numbers, &options, &mut ()).expect("a run");
    assert_eq!(report.outcome, Outcome::Completed, "{spec}: {:?}", report.deadlock);
    (numbers, report)
}

/// Runs with a small heap and compares with the formula; returns how often the heap ring went round.
fn check(spec: &str, settings: &[&str]) {
    let (numbers, _) = execute(spec, settings);
    let workload = workload::open(spec).expect("a generator");
    let notes = verify(workload.as_ref(), &numbers).expect("equal numbers");
    assert_eq!(notes.len(), 2, "compared with a replay and with the formula: {notes:?}");
}

#[test]
fn bgemm_computes_the_product_in_a_heap_that_recycles_hundreds_of_times() {
    // 4 096 products of 256 bytes through a heap of 1 024 bytes: a thousand laps.
    for threads in ["scheduler.threads=0", "scheduler.threads=2"] {
        check("bgemm:batch=2,m=4,n=8,k=64,scope=step", &["limits.heap=1024", "limits.window=16", threads]);
    }
}

#[test]
fn cholesky_factors_the_matrix() {
    check("cholesky:tiles=8,tile=8", &["limits.window=32", "scheduler.threads=0"]);
}

#[test]
fn flash_attention_computes_attention_in_a_small_heap() {
    let spec = "flash_attention:batch=2,heads=2,queries=8,keys=8,tile=8,dim=16";
    check(spec, &["limits.heap=2KiB", "limits.window=16", "scheduler.threads=1"]);
    check("flash_attention:batch=1,heads=2,queries=8,keys=8,tile=8,dim=16,causal=yes", &["limits.heap=2KiB"]);
}

#[test]
fn a_wrong_number_is_noticed() {
    let spec = "bgemm:batch=1,m=2,n=2,k=4";
    let workload = workload::open(spec).expect("a generator");
    let mut numbers = Numbers::new(spec, &Machine::default()).expect("memory");
    numbers.register("tile_add", Arc::new(|_| Ok(())));
    let numbers = Arc::new(numbers);
    let options = Options::default();
    run(&numbers.tap(workload.as_ref()), &Machine::default(), &*numbers, &options, &mut ()).expect("a run");
    let error = verify(workload.as_ref(), &numbers).expect_err("nothing was added to C");
    assert!(error.to_string().contains("verification failed"), "{error}");
}

#[test]
fn an_unknown_kernel_is_named_with_its_task() {
    let machine = Machine::default();
    let workload = workload::open("lu:tiles=2,tile=4").expect("a generator");
    let numbers = Arc::new(Numbers::new("lu", &machine).expect("memory"));
    let error = run(&numbers.tap(workload.as_ref()), &machine, &*numbers, &Options::default(), &mut ());
    let error = error.expect_err("there is no function for LU").to_string();
    assert!(error.contains("task 0 ") && error.contains("known are"), "{error}");
    let workload = workload::open("chain:n=3").expect("a generator");
    let report = run(workload.as_ref(), &machine, &*numbers, &Options::default(), &mut ());
    assert!(report.is_ok(), "tasks without regions need no function");
}

#[test]
fn an_embedded_program_waits_reads_and_goes_on() {
    let runtime = Runtime::builder()
        .workers(1, 3)
        .window(4)
        .heap(1024)
        .executors(2)
        .kernel("fill", |_, outputs| outputs[0].fill(3.0))
        .kernel("add", |inputs, outputs| outputs[0].iter_mut().zip(inputs[0]).for_each(|(sum, x)| *sum += x))
        .build()
        .expect("settings that fit");
    let (middle, end) = runtime
        .run(|session| {
            let total = session.buffer(&[0.0; 16])?;
            let add = |times: usize| -> Result<Vec<f32>, RunError> {
                for _ in 0..times {
                    let _scope = session.scope()?;
                    let threes = session.temporary(16);
                    session.submit("fill", &[threes.create()])?;
                    session.submit("add", &[threes.read(), total.update()])?;
                }
                session.wait_all()?;
                Ok(session.contents(&total))
            };
            Ok((add(100)?, add(50)?))
        })
        .expect("a run");
    assert_eq!(middle, [300.0; 16]);
    assert_eq!(end, [450.0; 16]);
}

#[test]
fn errors_of_an_embedded_program_are_values() {
    let runtime = || Runtime::builder().window(4).kernel("bad", |_, _| panic!("on purpose")).kernel("ok", |_, _| ());
    let built = runtime().build().expect("settings that fit");
    let error = built.run(|session| session.submit("bad", &[]).map(|_| ())).expect_err("the kernel panics");
    assert!(error.to_string().contains("kernel `bad`") && error.to_string().contains("on purpose"), "{error}");
    let error = built.run(|session| session.submit("other", &[]).map(|_| ())).expect_err("no such kernel");
    assert!(error.to_string().contains("bad, ok"), "{error}");
    let stuck = built.run(|session| {
        let _scope = session.scope()?;
        (0..5).try_for_each(|_| session.submit("ok", &[]).map(|_| ()))
    });
    assert!(matches!(stuck, Err(RunError::Stuck(_))), "{stuck:?}");
    assert!(runtime().window(3).build().is_err(), "a window of 3 slots is no power of two");
}
