//! What generators make.

use super::*;
use crate::id::TaskType;
use crate::workload::{Operation, Submit};
use std::collections::HashMap;

/// Everything counted while reading a workload to its end; fails on anything that a trace could not say.
#[derive(Default, Debug)]
struct Summary {
    tasks: u64,
    scopes: u64,
    edges: u64,
    kernels: HashMap<String, u64>,
}

fn summary(spec: &str) -> Summary {
    let mut found = Summary::default();
    let (mut depth, mut sizes) = (0_u64, HashMap::new());
    each(spec, |operation, task, source| match operation {
        Operation::ScopeBegin => (depth, found.scopes) = (depth + 1, found.scopes + 1),
        Operation::ScopeEnd => depth = depth.checked_sub(1).expect("no end without begin"),
        Operation::Buffer { buffer, bytes } => drop(sizes.insert(buffer, bytes)),
        Operation::Submit => {
            assert!(task.deps.iter().all(|producer| producer.0 < found.tasks), "{spec}: task {}", found.tasks);
            for region in task.reads.iter().chain(&task.writes).chain(&task.updates) {
                assert!(region.end() <= sizes[&region.buffer], "{spec}: {region:?} of task {}", found.tasks);
                assert!(region.rows == 1 || region.stride > region.row_bytes, "{spec}: {region:?}");
            }
            sizes.extend(task.allocates.iter().map(|new| (new.buffer, new.bytes)));
            let kernel = source.symbols().name(task.kernel.expect("a kernel")).to_string();
            *found.kernels.entry(kernel).or_default() += 1;
            found.edges += task.deps.len() as u64;
            found.tasks += 1;
        }
    });
    assert_eq!(depth, 0, "{spec}");
    found
}

fn each(spec: &str, mut visit: impl FnMut(Operation, &Submit, &dyn Source)) {
    let workload = generator(spec).unwrap_or_else(|error| panic!("{error}"));
    let mut source = workload.open().unwrap_or_else(|error| panic!("{error}"));
    let mut task = Submit::default();
    while let Some(operation) = source.next(&mut task).expect("generators do not fail") {
        visit(operation, &task, source.as_ref());
    }
    assert_eq!(source.next(&mut task).expect("still at the end"), None);
}

/// Dependencies of every task as text: `a b;c`.
fn graph(spec: &str) -> String {
    let mut rows = Vec::new();
    each(spec, |_, task, _| {
        rows.push(task.deps.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(" "));
    });
    rows.join(";")
}

fn refusal(spec: &str) -> String {
    generator(spec).err().expect("a refusal").to_string()
}

#[test]
fn all_generators_make_valid_programs_with_their_defaults() {
    for generator in catalogue() {
        let found = summary(generator.name);
        assert!((1000..100_000).contains(&found.tasks), "{}: {found:?}", generator.name);
    }
}

#[test]
fn n_is_the_number_of_tasks() {
    for name in ["chain", "fanout", "random", "stencil", "wavefront"] {
        for n in [3, 100, 1001] {
            assert_eq!(summary(&format!("{name}:n={n}")).tasks, n, "{name}");
        }
    }
    assert_eq!(summary("chain:n=0").tasks, 0);
    assert_eq!(summary("random:n=1k,fanin=0").edges, 0);
}

#[test]
fn small_graphs_are_as_described() {
    assert_eq!(graph("chain:n=4"), ";0;1;2");
    assert_eq!(graph("fanout:n=5"), ";0;0;0;1 2 3");
    assert_eq!(graph("stencil:n=7,width=3"), ";;;0 1;0 1 2;1 2;3 4");
    assert_eq!(graph("stencil:n=8,width=4,dims=2"), ";;;;0 1 2;0 1 3;0 2 3;1 2 3");
    assert_eq!(graph("wavefront:n=6,width=3"), ";0;1;0;1 3;2 4");
    assert_eq!(graph("wavefront:n=5"), ";0;1;0;1 3");
    assert_eq!(graph("tree:leaves=5,arity=2"), ";;;;;0 1;2 3;4;5 6;7;8 9");
    assert_eq!(graph("fft:width=4"), ";;;;0 1;0 1;2 3;2 3;4 6;5 7;4 6;5 7");
}

#[test]
fn task_bench_patterns_are_as_described() {
    let pattern = |name: &str, more: &str| graph(&format!("{name}:width=4,steps=2{more}"));
    assert_eq!(pattern("trivial", ""), ";;;;;;;");
    assert_eq!(pattern("no_comm", ""), ";;;;0;1;2;3");
    assert_eq!(pattern("stencil_1d", ""), ";;;;0 1;0 1 2;1 2 3;2 3");
    assert_eq!(pattern("stencil_1d_periodic", ""), ";;;;0 1 3;0 1 2;1 2 3;0 2 3");
    assert_eq!(pattern("dom", ""), ";;;;0;0 1;1 2;2 3");
    assert_eq!(pattern("tb_tree", ""), ";;;;0;0;1;1");
    assert_eq!(graph("tb_fft:width=4,steps=3"), ";;;;0 1;0 1 2;1 2 3;2 3;4 6;5 7;4 6;5 7");
    assert_eq!(pattern("all_to_all", ""), ";;;;0 1 2 3;0 1 2 3;0 1 2 3;0 1 2 3");
    assert_eq!(pattern("nearest", ",radix=2"), ";;;;0;0 1;1 2;2 3");
    assert_eq!(pattern("spread", ",radix=2"), ";;;;0 2;1 3;2 0;3 1");
    assert_eq!(pattern("random_nearest", ",radix=3,fraction=100"), pattern("stencil_1d", ""));
    assert_eq!(pattern("random_nearest", ",radix=3,fraction=0"), pattern("no_comm", ""));
    assert_eq!(graph("taskbench:pattern=dom,width=4,steps=2"), pattern("dom", ""));
    assert_eq!(graph("stencil_1d_periodic:width=2,steps=2"), ";;0 1;0 1");
    assert_eq!(graph("stencil_1d:width=1,steps=3,radix=1"), ";0;1");
}

#[test]
fn random_graphs_depend_on_the_seed_only() {
    assert_eq!(graph("random:n=500"), graph("random:n=500"));
    assert_ne!(graph("random:n=500"), graph("random:n=500,seed=2"));
    each("random:n=2000,fanin=5,reach=16", |_, task, _| {
        let mut deps = task.deps.clone();
        deps.sort_unstable();
        deps.dedup();
        assert_eq!(deps.len(), task.deps.len());
        assert!(deps.len() <= 5);
    });
    let found = summary("random:n=10k,fanin=3");
    assert!((29_000..30_000).contains(&found.edges), "{found:?}");
}

#[test]
fn bgemm_multiplies_tiles_and_adds_them_in_place() {
    let mut text = Vec::new();
    each("bgemm:batch=1,m=1,n=2,k=2", |operation, task, source| match operation {
        Operation::Buffer { buffer, bytes } => text.push(format!("buffer {} {bytes}", buffer.0)),
        Operation::ScopeBegin => text.push("begin".into()),
        Operation::ScopeEnd => text.push("end".into()),
        Operation::Submit => {
            let places = |regions: &[crate::workload::Region]| {
                regions
                    .iter()
                    .map(|region| format!("{}@{}", region.buffer.0, region.offset / 256))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let kernel = source.symbols().name(task.kernel.expect("kernel"));
            let on = task.kind.expect("type");
            text.push(format!("{kernel} {on} {}|{}|{}", places(&task.reads), places(&task.updates), task.heap_bytes()));
        }
    });
    let expected = [
        "buffer 0 512",
        "buffer 1 1024",
        "buffer 2 512",
        "begin",
        "gemm_tile CUBE 0@0 1@0||256",
        "tile_add VECTOR 3@0|2@0|0",
        "gemm_tile CUBE 0@1 1@2||256",
        "tile_add VECTOR 3@0|2@0|0",
        "end",
        "begin",
        "gemm_tile CUBE 0@0 1@1||256",
        "tile_add VECTOR 3@0|2@1|0",
        "gemm_tile CUBE 0@1 1@3||256",
        "tile_add VECTOR 3@0|2@1|0",
        "end",
    ];
    assert_eq!(text, expected);
}

#[test]
fn bgemm_scopes_hold_what_was_asked() {
    let scopes = |scope: &str| summary(&format!("bgemm:batch=2,m=3,n=4,k=5,scope={scope}")).scopes;
    assert_eq!([scopes("tile"), scopes("batch"), scopes("step"), scopes("none")], [24, 2, 120, 0]);
    assert_eq!(summary("bgemm").tasks, 16_384);
}

#[test]
fn factorisations_have_the_known_numbers_of_tasks() {
    let found = summary("cholesky:tiles=6");
    assert_eq!(
        [found.kernels["potrf"], found.kernels["trsm"], found.kernels["syrk"], found.kernels["gemm"]],
        [6, 15, 15, 20]
    );
    let found = summary("lu:tiles=5");
    assert_eq!([found.kernels["getrf"], found.kernels["trsm"], found.kernels["gemm"]], [5, 20, 30]);
    assert_eq!(summary("cholesky:tiles=1").tasks, 1);
}

#[test]
fn attention_has_four_tasks_a_step_and_one_at_the_end() {
    assert_eq!(summary("flash_attention:batch=1,heads=2,queries=3,keys=4").tasks, 2 * 3 * (4 * 4 + 1));
    assert_eq!(summary("flash_attention:batch=1,heads=1,queries=3,keys=3,causal=yes").tasks, 4 * 6 + 3);
    let found = summary("transformer:layers=2,batch=2,heads=3,sequence=100,block=50");
    assert_eq!(found.tasks, 2 * ((1 + 3) + 2 * 3 * (2 * 4 + 1) + (6 + 1 + 24 + 6)));
    assert_eq!(found.kernels["qkv_matmul"], 6);
    let found = summary("paged_attention:batch=3,heads=2,context=1k,page=100,unroll=1");
    assert_eq!(found.kernels["normalize_mul"], 6);
    assert!((5 * 6..=10 * 6).contains(&found.kernels["qk_matmul"]), "{found:?}");
    let found = summary("moe:tiles=10,experts=4,topk=4");
    assert_eq!((found.tasks, found.kernels["combine_add"]), (10 * (2 + 4 * 5), 40));
}

#[test]
fn kinds_are_always_given() {
    for generator in catalogue() {
        each(generator.name, |operation, task, _| {
            let plain = matches!(task.kind, Some(TaskType::Cube | TaskType::Vector));
            assert!(operation != Operation::Submit || plain, "{}", generator.name);
        });
    }
}

#[test]
fn wrong_specifications_are_refused_with_a_remedy() {
    assert_eq!(refusal("bgem"), "no such generator \"bgem\"; did you mean \"bgemm\"?");
    assert_eq!(refusal("chain:m=3"), "chain: no such parameter \"m\"; known are n");
    assert_eq!(refusal("random:seeds=3"), "random: no such parameter \"seeds\"; did you mean \"seed\"?");
    assert_eq!(refusal("chain:3"), "chain: \"3\" is no parameter; write key=value");
    assert_eq!(refusal("chain:n=1,n=2"), "chain: parameter \"n\" is given twice; keep one");
    assert_eq!(refusal("chain:n=ten"), "chain: n=ten is not a whole number; write it like 1000, 1e6, 64k, 100M or 1G");
    assert_eq!(refusal("fanout:n=2"), "fanout: n=2 is out of range; use 3 to 4294967296");
    assert_eq!(refusal("bgemm:k=0"), "bgemm: k=0 is out of range; use at least 1");
    assert_eq!(refusal("bgemm:scope=tiles"), "bgemm: scope=tiles is unknown; did you mean \"tile\"?");
    assert!(refusal("bgemm:m=1G,n=1G,k=1G").contains("beyond 2^64"));
    assert_eq!(refusal("stencil:width=10,dims=2"), "stencil: width=10 is no square number; for dims=2 try 9 or 16");
    assert_eq!(refusal("fft:width=10"), "fft: width=10 is no power of two; try 16");
    let neither = crate::workload::open("chian:n=4").err().expect("neither").to_string();
    assert_eq!(neither, "\"chian:n=4\": no such file and no such generator; nearest: \"chain\"");
}
