//! `compare`, and the choice of a policy.

use crate::program::{in_folder, refuses};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use tempfile::TempDir;

const X_TRACE: &str = include_str!("../../workloads/x_policies.jsonl");

/// A folder with the trace of eight tasks that every policy treats differently.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("x.jsonl"), X_TRACE).expect("room on the disk");
    folder
}

const TWO: &str = "--set workers.cube=0 --set workers.vector=2";

#[test]
fn policies_stand_side_by_side_and_the_winner_is_named() {
    let folder = folder();
    let ended = in_folder(folder.path(), &format!("compare x.jsonl --policies pto,predictive {TWO}"), "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let row = |name: &str| {
        let line = ended.stdout.lines().find(|line| line.starts_with(name)).expect("a row");
        line.split_whitespace().take(4).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("pto"), ["pto", "completed", "70", "1.167"]);
    assert_eq!(row("predictive"), ["predictive", "completed", "60", "1.000"]);
    assert!(ended.stdout.contains("predictive wins with 60 cycles."), "{}", ended.stdout);
    let header = ended.stdout.lines().nth(2).expect("a header");
    assert!(header.contains("wait p50  wait p99  wait max"), "{header}");
}

#[test]
fn json_and_csv_hold_every_policy_once_and_are_the_same_every_time() {
    let folder = folder();
    let call = |arguments: &str| in_folder(folder.path(), &format!("compare x.jsonl {TWO} {arguments}"), "");
    let told = call("--policies all,pto --json - --csv rows.csv");
    assert_eq!(told.stdout, call("--policies all --json -").stdout);
    let comparison: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let rows = comparison["policies"].as_array().expect("a list");
    assert_eq!(rows.iter().filter(|row| row["policy"] == "pto").count(), 1);
    let csv = fs::read_to_string(folder.path().join("rows.csv")).expect("it is there");
    assert_eq!(csv.lines().count(), rows.len() + 1);
    assert!(csv.starts_with("policy,outcome,makespan,lower_bound,ratio,utilisation_vector,wait_p50"), "{csv}");
    assert!(csv.contains("\npto,completed,70,60,1.166667,0.821429,0,20,20,0.954874,"), "{csv}");
    // Every counter has a column of its own, empty for policies without it.
    let table: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| table[0].iter().position(|title| *title == name).expect("a column");
    let cell = |policy: &str, name: &str| table.iter().find(|row| row[0] == policy).expect("a row")[column(name)];
    assert_eq!((cell("steal", "counter_longest_queue"), cell("pto", "counter_longest_queue")), ("2", ""));
    assert_eq!((cell("static", "counter_planned_makespan"), cell("steal", "counter_stolen")), ("60", "0"));
}

#[test]
fn a_workload_that_a_named_policy_cannot_run_ends_with_2_and_one_of_all_is_told() {
    let folder = folder();
    let trace = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n\
                 {\"op\":\"submit\",\"worker_type\":\"MIX\",\"cycles\":1}\n";
    for policies in ["pto,lifo", "all"] {
        let ended = in_folder(folder.path(), &format!("compare - --policies {policies} --csv rows.csv"), trace);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains("policy pto: ") && ended.stderr.contains("clusters"), "{}", ended.stderr);
        assert!(!folder.path().join("rows.csv").exists());
    }
    // A group that Cyber does not have; the others do not look at it.
    let group = "[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 2\n";
    fs::write(folder.path().join("g.toml"), group).expect("room on the disk");
    let trace = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n\
                 {\"op\":\"submit\",\"cycles\":1,\"group\":\"nowhere\"}\n";
    let compare = |policies: &str| {
        let call = format!("compare - --policies {policies} --policy-config g.toml --csv rows.csv");
        in_folder(folder.path(), &call, trace)
    };
    for policies in ["pto,cyber_classic", "all,cyber_classic"] {
        let ended = compare(policies);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(
            ended.stderr.contains("policy cyber_classic: ") && ended.stderr.contains("nowhere"),
            "{}",
            ended.stderr
        );
        assert!(!folder.path().join("rows.csv").exists());
    }
    let ended = compare("all");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("cyber_classic (error)") && ended.stdout.contains("nowhere"), "{}", ended.stdout);
    assert!(folder.path().join("rows.csv").exists());
}

#[test]
fn every_policy_runs_on_the_workers_it_would_have_alone() {
    let folder = folder();
    let config = "[scheduler_conf]\npolicy = \"classic\"\n\
                  [[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 3\n\
                  [bmf]\nscheduler_count = 1\n[bmf.nodes.0]\nscheduler = 0\n";
    fs::write(folder.path().join("p.toml"), config).expect("room on the disk");
    let call = |arguments: &str| in_folder(folder.path(), arguments, "");
    let compare = "compare x.jsonl --policies pto,cyber_classic,bmf --policy-config p.toml";
    let ended = call(&format!("{compare} --json - --csv rows.csv"));
    assert_eq!(ended.code, 0, "{ended:?}");
    let comparison: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    for row in comparison["policies"].as_array().expect("a list") {
        let name = row["policy"].as_str().expect("a name");
        let alone = call(&format!("run x.jsonl --policy {name} --policy-config p.toml --json -"));
        let alone: Value = serde_json::from_str(&alone.stdout).expect("JSON");
        assert_eq!(row["result"]["makespan"], alone["makespan"], "{name}");
    }
    let told = "Workers differ where settings count them: cyber_classic on 3 ANY and bmf on 1 ANY; the rest on 24 CUBE and 48 VECTOR.";
    assert!(comparison["verdict"].as_str().expect("a text").ends_with(told), "{comparison}");
    let csv = fs::read_to_string(folder.path().join("rows.csv")).expect("it is there");
    assert!(csv.lines().any(|line| line.starts_with("bmf,") && line.contains(",1 ANY,")), "{csv}");
    let same = call(&format!("{compare} --set workers.cube=0 --set workers.vector=0 --set workers.any=3"));
    assert!(same.code == 0 && !same.stdout.contains("Workers differ"), "{same:?}");
}

#[test]
fn a_table_of_cyber_chooses_its_scheduler_in_toml_as_in_a_conf() {
    let folder = folder();
    for (policy, name) in [("choreography", "cyber_choreography"), ("foo", "cyber_classic")] {
        let forms = [
            ("p.toml", format!("[scheduler_conf]\npolicy = \"{policy}\"\n")),
            ("p.conf", format!("scheduler_conf {{ policy: \"{policy}\" }}\n")),
        ];
        for (file, text) in forms {
            fs::write(folder.path().join(file), text).expect("room on the disk");
            let told = in_folder(folder.path(), &format!("run x.jsonl {TWO} --policy-config {file}"), "").stdout;
            assert!(told.contains(&format!("policy {name}")), "{file}: {told}");
            assert_eq!(told.contains("invalid scheduler policy `foo`"), policy == "foo", "{file}: {told}");
        }
    }
}

#[test]
fn a_policy_under_which_nothing_moves_any_more_is_a_row_without_a_ratio() {
    let folder = folder();
    // Node 0 may not run ahead of node 1 by more than one packet, but that waits for the last task of node 0.
    let mut trace = String::from("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n");
    for time in 1..=4 {
        let _ = writeln!(trace, "{{\"op\":\"submit\",\"cycles\":10,\"node\":0,\"timestamp\":{time}}}");
    }
    for time in 1..=4 {
        let producer = time - 1;
        let _ = writeln!(
            trace,
            "{{\"op\":\"submit\",\"cycles\":10,\"deps\":[{producer},3],\"node\":1,\"timestamp\":{time}}}"
        );
    }
    fs::write(
        folder.path().join("p.toml"),
        "[bmf.nodes.0]\nqueue_length_limit = 1\n[bmf.nodes.1]\nqueue_length_limit = 1\n",
    )
    .expect("room on the disk");
    let call = format!("compare - --policies pto,bmf --policy-config p.toml {TWO}");
    let ended = in_folder(folder.path(), &call, &trace);
    assert_eq!(ended.code, 1, "{ended:?}");
    let row = ended.stdout.lines().find(|line| line.starts_with("bmf")).expect("a row");
    assert_eq!(row.split_whitespace().take(4).collect::<Vec<_>>(), ["bmf", "deadlock", "10", "–"]);
    assert!(ended.stdout.contains("completed under bmf (deadlock)."), "{}", ended.stdout);
}

#[test]
fn a_policy_is_chosen_by_name_or_configuration() {
    let folder = folder();
    fs::write(folder.path().join("p.toml"), "[policy]\nname = \"random\"\nseed = 3\n").expect("room on the disk");
    let policy = |arguments: &str| {
        let ended = in_folder(folder.path(), &format!("run x.jsonl {TWO} --json - {arguments}"), "");
        let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        (report["policy"].as_str().expect("a name").to_owned(), report["policy_report"]["seed"].as_u64())
    };
    assert_eq!(policy(""), ("pto".into(), None));
    assert_eq!(policy("--policy steal"), ("steal".into(), None));
    assert_eq!(policy("--policy-config p.toml"), ("random".into(), Some(3)));
    assert_eq!(policy("--policy-config p.toml --policy heft"), ("heft".into(), None));
    let text = in_folder(folder.path(), &format!("run x.jsonl {TWO} --policy-config p.toml"), "").stdout;
    assert!(text.contains("policy        seed 3"), "{text}");
}

#[test]
fn a_wrong_policy_or_configuration_is_told_with_the_nearest_right_one() {
    refuses("run bgemm --policy predictve", "unknown policy `predictve`; did you mean `predictive`?");
    refuses("compare bgemm --policies pto,stel", "unknown policy `stel`; did you mean `steal`?");
    refuses("run bgemm --policy-config no.toml", "no.toml: No such file");
    refuses("compare bgemm --json a --csv a", "--json and --csv both write a");
    let folder = folder();
    fs::write(folder.path().join("p.toml"), "[policy]\nnme = \"ray\"\n").expect("room on the disk");
    let ended = in_folder(folder.path(), "run x.jsonl --policy-config p.toml", "");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("p.toml:2: unknown field `nme`; did you mean `name`?"), "{}", ended.stderr);
}

#[test]
fn the_page_holds_the_makespan_of_every_policy() {
    let folder = folder();
    let call = format!("compare x.jsonl --policies pto,predictive {TWO} --html page.html --json result.json");
    assert_eq!(in_folder(folder.path(), &call, "").code, 0);
    let page = fs::read_to_string(folder.path().join("page.html")).expect("it is there");
    let data = page.split("id=\"ptosim-comparison\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let shown: Value = serde_json::from_str(data.expect("the data are there")).expect("JSON");
    let result = fs::read_to_string(folder.path().join("result.json")).expect("it is there");
    assert_eq!(shown, serde_json::from_str::<Value>(&result).expect("JSON"));
    assert_eq!(shown["policies"][1]["result"]["makespan"], 60);
    refuses("compare bgemm --csv a --html a", "--csv and --html both write a");
}

/// Runs the chain on four workers of any type with this policy file; gives the error.
fn refused(policy: &str, name: &str, config: &str) -> String {
    let folder = folder();
    fs::write(folder.path().join(name), config).expect("room on the disk");
    let call = format!(
        "run chain:n=4 --set workers.cube=0 --set workers.vector=0 --set workers.any=4 --policy {policy} --policy-config {name}"
    );
    let ended = in_folder(folder.path(), &call, "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{config}: {ended:?}");
    ended.stderr
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_a_remedy() {
    let group = |line: &str| format!("[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\n{line}\n");
    let told = refused("cyber_classic", "p.toml", &group("processor_num = 0"));
    assert!(told.contains("group `g` has no processors"), "{told}");
    let told = refused("cyber_classic", "p.toml", &group("processor_num = 4\ncpuset = \"5-3\""));
    assert!(told.contains("p.toml: scheduler_conf: "), "{told}");
    assert!(told.contains("cpuset \"5-3\": `5-3` runs backwards; write 3-5"), "{told}");
    let told = refused("cyber_classic", "p.toml", &group("processor_num = 5000000000"));
    assert!(
        told.contains("p.toml:3: `processor_num` = 5000000000: must be at most 1048576; lower processor_num"),
        "{told}"
    );
    let told = refused("cyber_classic", "p.toml", &group("workers = [0, 7]"));
    assert!(told.contains('7') && told.contains("4 workers"), "{told}");
    let told = refused("cyber_classic", "p.toml", &group("workers = [2, 0, 1, 0]"));
    assert!(told.contains("p.toml: scheduler_conf: group `g`: worker 0 stands in its list twice; keep one"), "{told}");
    let pinned = |processor: i32| {
        format!(
            "[scheduler_conf]\npolicy = \"choreography\"\n[scheduler_conf.choreography_conf]\nchoreography_processor_num = 2\n\
             tasks = [{{ name = \"A\", processor = {processor} }}]\n"
        )
    };
    for processor in [4, 99, -2] {
        let told = refused("cyber_choreography", "p.toml", &pinned(processor));
        let wanted =
            format!("task `A`: processor = {processor} is out of range; machine `ideal` has processors 0 to 3");
        assert!(told.contains(&wanted), "{told}");
    }
    let told = refused("cyber_classic", "p.conf", "scheduler_conf { polcy: \"classic\" }\n");
    assert!(told.contains("p.conf:1: unknown field `polcy`; did you mean `policy`?"), "{told}");
    let told = refused("ray", "p.toml", "[ray]\nepoch = \"2025-01-01T00:00:00\"\n");
    assert!(told.contains("has no offset from UTC"), "{told}");
    let trace = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n\
                 {\"op\":\"submit\",\"cycles\":1,\"schedule_at\":\"2025-01-01T00:00:00\"}\n";
    let ended = in_folder(folder().path(), "run - --policy ray", trace);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("\"2025-01-01T00:00:00\" has no offset from UTC"), "{}", ended.stderr);
}

#[test]
fn settings_that_are_wrong_for_one_policy_end_a_comparison_before_anything_is_written() {
    let folder = folder();
    let compare = |config: &str, policies: &str| {
        fs::write(folder.path().join("p.toml"), config).expect("room on the disk");
        let call =
            format!("compare x.jsonl {TWO} --policies {policies} --policy-config p.toml --csv rows.csv --json j.json");
        in_folder(folder.path(), &call, "")
    };
    let group = "[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 7\n";
    let node = "[bmf.nodes.0]\nscheduler = 5\n";
    for (config, told) in [
        (group, "the groups have 7 processors"),
        (node, "bmf.nodes.0.scheduler = 5: queue 5 is worker 5"),
        ("[bmf]\nscheduler_count = 0\n", "bmf.scheduler_count = 0"),
        ("[ray]\nepoch = \"2025-01-01T00:00:00\"\n", "has no offset from UTC"),
        ("[orleans]\nactivation_scheduling_quantum = \"soon\"\n", "activation_scheduling_quantum = \"soon\""),
    ] {
        let ended = compare(config, "all");
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{config}: {ended:?}");
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        assert!(!folder.path().join("rows.csv").exists() && !folder.path().join("j.json").exists(), "{config}");
    }
    // Settings of policies that do not run are not looked at.
    assert_eq!(compare(group, "pto,lifo").code, 0);
}

#[test]
fn a_process_group_of_cyber_finds_its_file_or_runs_classic_with_a_note() {
    let folder = folder();
    let call = |arguments: &str| in_folder(folder.path(), &format!("run x.jsonl {TWO} {arguments}"), "");
    let told = call("--process-group compute").stdout;
    assert!(told.contains("policy cyber_classic"), "{told}");
    assert!(told.contains("neither conf/compute.conf nor cyber/conf/compute.conf is there"), "{told}");
    let conf = |policy: &str| format!("scheduler_conf {{ policy: \"{policy}\" }}\n");
    fs::create_dir_all(folder.path().join("cyber/conf")).expect("room on the disk");
    fs::write(folder.path().join("cyber/conf/compute.conf"), conf("choreography")).expect("room on the disk");
    assert!(call("--process-group compute").stdout.contains("policy cyber_choreography"));
    fs::create_dir(folder.path().join("conf")).expect("room on the disk");
    fs::write(folder.path().join("conf/compute.conf"), conf("foo")).expect("room on the disk");
    let told = call("--process-group compute").stdout;
    assert!(told.contains("policy cyber_classic"), "{told}");
    assert!(told.contains("invalid scheduler policy `foo`"), "{told}");
    for option in ["--sched-conf cyber/conf/compute.conf", "--policy-config cyber/conf/compute.conf"] {
        assert!(call(option).stdout.contains("policy cyber_choreography"), "{option}");
        let both = call(&format!("--process-group compute {option}"));
        assert!(both.code == 0 && both.stdout.contains("policy cyber_choreography"), "the file wins: {both:?}");
    }
}

#[test]
fn without_a_word_about_workers_the_processors_of_cyber_are_the_workers() {
    let folder = folder();
    let conf = "scheduler_conf { policy: \"classic\" classic_conf { groups: [ { name: \"a\" processor_num: 2 }, \
                { name: \"b\" processor_num: 1 tasks: [ { name: \"D\" prio: 3 } ] } ] } }\n";
    fs::write(folder.path().join("c.conf"), conf).expect("room on the disk");
    let call =
        |arguments: &str| in_folder(folder.path(), &format!("run x.jsonl --policy-config c.conf {arguments}"), "");
    let ended = call("");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("ANY × 3"), "{}", ended.stdout);
    let ended = call("--machine ideal");
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("the groups have 3 processors, but machine `ideal` has 72 workers"), "{ended:?}");
    assert_eq!(call("--set workers.cube=0 --set workers.vector=3").code, 0);
}

#[test]
fn a_line_that_is_no_operation_comes_before_a_task_that_the_policy_refuses() {
    let folder = folder();
    let conf = "scheduler_conf { policy: \"classic\" classic_conf { groups: [ { name: \"a\" processor_num: 2 } ] } }\n";
    let refused = "{\"op\":\"submit\",\"cycles\":1,\"worker_type\":\"VECTOR\",\"group\":\"b\"}\n";
    let twice = format!("{refused}{}", refused.replace("\"b\"", "\"c\""));
    let header = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"t\"}\n";
    fs::write(folder.path().join("c.conf"), conf).expect("room on the disk");
    for (trace, told) in [
        (format!("{twice}{{\"op\":\n"), "t.jsonl:4: "),
        (twice, "t.jsonl:2: task 0 `task0`: no processor serves group `b`"),
        ("{\"op\":\"submit\",\"worker_type\":\"CUBE\",\"cycles\":1}\n{\"op\":\n".into(), "t.jsonl:3: "),
    ] {
        fs::write(folder.path().join("t.jsonl"), format!("{header}{trace}")).expect("room on the disk");
        let machine = "t.jsonl --policy-config c.conf --set workers.cube=0 --set workers.vector=2";
        for command in ["run --engine threads --mode deterministic", "run", "size", "compare --policies cyber_classic"]
        {
            let ended = in_folder(folder.path(), &format!("{command} {machine}"), "");
            assert!(ended.code == 2 && ended.stderr.contains(told), "{command}: {ended:?}");
        }
    }
    for command in ["run", "run --engine threads", "run --policy heft", "compare --policies pto"] {
        let ended = in_folder(folder.path(), &format!("{command} t.jsonl --set workers.cube=0"), "");
        assert!(ended.code == 2 && ended.stderr.contains("t.jsonl:3: "), "{command}: {ended:?}");
    }
}

#[test]
fn size_and_sweep_have_the_workers_that_a_policy_counts_too() {
    let folder = folder();
    let conf = "scheduler_conf { policy: \"classic\" classic_conf { groups: [ { name: \"a\" processor_num: 2 } ] } }\n";
    let graph = "{\"nodes\":[{\"id\":0,\"scheduler\":0},{\"id\":1,\"scheduler\":1}],\"option\":{\"time_out\":1e-8}}";
    let call = |arguments: &str| in_folder(folder.path(), arguments, "");
    for (policy, file, text) in [("cyber_classic", "c.conf", conf), ("bmf", "g.json", graph)] {
        fs::write(folder.path().join(file), text).expect("room on the disk");
        let start = format!("workload = \"x.jsonl\"\npolicy = \"{policy}\"\npolicy_config = \"{file}\"\n");
        let rest = "[[list]]\nclock_mhz = 1000000\n[[list]]\nmachine = \"ideal\"\n[[list]]\n\"workers.vector\" = 3\n";
        fs::write(folder.path().join("s.toml"), start + rest).expect("room on the disk");
        let ended = call(&format!("size x.jsonl --policy-config {file} --set clock_mhz=1000000"));
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(call(&format!("size x.jsonl --policy-config {file} --machine ideal")).code, 2, "{policy}");
        assert_eq!(call(&format!("sweep s.toml --out {policy}")).code, 0);
        let rows = fs::read_to_string(folder.path().join(policy).join("results.jsonl")).expect("it was written");
        let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        let told: Vec<_> = rows.iter().map(|row| (row["outcome"].as_str(), row["workers"].as_u64())).collect();
        assert_eq!(told[0], (Some("completed"), Some(2)), "the workers are those of {file}");
        assert_eq!(told[1], (Some("error"), Some(72)), "the machine was named");
        assert_eq!(told[2].1, Some(27), "workers were set");
    }
}

#[test]
fn seconds_of_a_graph_are_cycles_of_the_clock_of_each_run() {
    let folder = folder();
    let graph = "{\"nodes\":[{\"id\":0},{\"id\":1,\"scheduler\":1}],\"option\":{\"time_out\":1e-8}}";
    let spec =
        "workload = \"x.jsonl\"\npolicy = \"bmf\"\npolicy_config = \"g.json\"\n[set]\nclock_mhz = [1000, 1000000]\n";
    fs::write(folder.path().join("g.json"), graph).expect("room on the disk");
    fs::write(folder.path().join("s.toml"), spec).expect("room on the disk");
    assert_eq!(in_folder(folder.path(), "sweep s.toml --out r", "").code, 0);
    let rows = fs::read_to_string(folder.path().join("r/results.csv")).expect("it was written");
    assert!(rows.contains("bmf,1000,timeout,") && rows.contains("bmf,1000000,completed,"), "{rows}");
}

#[test]
fn settings_that_count_more_workers_than_a_machine_may_have_are_refused() {
    let folder = folder();
    fs::write(folder.path().join("s.toml"), "workload = \"x.jsonl\"\npolicy_config = \"p.toml\"\n")
        .expect("room on the disk");
    let group = |line: &str| format!("[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\n{line}\n");
    let refuses = |config: &str, calls: &[&str], told: &str| {
        fs::write(folder.path().join("p.toml"), config).expect("room on the disk");
        for call in calls {
            let ended = in_folder(folder.path(), call, "");
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{call}: {config}: {ended:?}");
            assert!(ended.stderr.starts_with(&format!("error: {told}")), "{call}: {config}: {}", ended.stderr);
        }
    };
    let commands = [
        "run x.jsonl --policy-config p.toml",
        "run x.jsonl --policy-config p.toml --policy cyber_classic --machine ideal",
        "compare x.jsonl --policy-config p.toml",
        "size x.jsonl --policy-config p.toml",
        "sweep s.toml",
    ];
    for (setting, name, value) in [
        ("processor_num = 4294967295", "processor_num", "4294967295"),
        ("processor_num = 200000000", "processor_num", "200000000"),
        ("processors = { ANY = 4294967295 }", "ANY", "4294967295"),
        ("processors = { CUBE = 1, ANY = 4294967295 }", "ANY", "4294967295"),
    ] {
        let told = format!("p.toml:3: `{name}` = {value}: must be at most 1048576; lower {name}\n");
        refuses(&group(setting), &commands, &told);
    }
    let told = "p.toml:2: `default_proc_num` = 4294967295: must be at most 1048576; lower default_proc_num\n";
    for policy in ["classic", "choreography"] {
        let config = format!("[scheduler_conf]\ndefault_proc_num = 4294967295\npolicy = \"{policy}\"\n");
        refuses(&config, &commands, told);
    }
    for name in ["choreography_processor_num", "pool_processor_num"] {
        let config = format!("[scheduler_conf.choreography_conf]\n{name} = 1048577\n");
        refuses(&config, &commands, &format!("p.toml:2: `{name}` = 1048577: must be at most 1048576; lower {name}\n"));
    }
    let conf = "scheduler_conf { classic_conf {\n groups { name: \"g\" processor_num: 4294967295 } } }\n";
    fs::write(folder.path().join("p.conf"), conf).expect("room on the disk");
    let told = "p.conf:2: `processor_num` = 4294967295: must be at most 1048576; lower processor_num\n";
    refuses("", &["run x.jsonl --policy-config p.conf", "compare x.jsonl --policy-config p.conf"], told);
    // Each is possible, but not all of them together.
    let bare = ["run x.jsonl --policy-config p.toml --policy cyber_classic", "compare x.jsonl --policy-config p.toml"];
    let several = group("processor_num = 600000") + &group("processors = { CUBE = 600000 }").replace("\"g\"", "\"h\"");
    let told = "p.toml: scheduler_conf: the groups have 1200000 processors: must be at most 1048576; lower the number of group `h`";
    refuses(&several, &bare, told);
    let bare = bare.map(|call| call.replace("classic", "choreography"));
    let bare: Vec<&str> = bare.iter().map(String::as_str).collect();
    for (settings, numbers, culprit) in [
        ("default_proc_num = 600000", "600000 choreography and 600000 pool", "default_proc_num"),
        (
            "choreography_conf = { choreography_processor_num = 1048576, pool_processor_num = 7 }",
            "1048576 choreography and 7 pool",
            "choreography_processor_num",
        ),
    ] {
        let told = format!("p.toml: scheduler_conf: {numbers} processors: must be at most 1048576; lower {culprit}\n");
        refuses(&format!("[scheduler_conf]\n{settings}\n"), &bare, &told);
    }
}

#[test]
fn queues_of_bmf_are_at_most_as_many_as_workers() {
    let folder = folder();
    let calls = [
        "run x.jsonl --policy-config p.toml --policy bmf",
        "run x.jsonl --policy-config p.toml --policy bmf --machine ideal",
        "compare x.jsonl --policy-config p.toml",
        "size x.jsonl --policy-config p.toml --policy bmf",
    ];
    let node = "bmf.nodes.0.scheduler";
    for (config, key, value, most, line) in [
        ("[bmf.nodes.0]\nscheduler = 4294967295\n", node, "4294967295", 1_048_575, 2),
        ("[bmf.nodes.0]\nscheduler = 4294967294\n", node, "4294967294", 1_048_575, 2),
        ("[bmf.nodes.0]\nscheduler = 1048576\n", node, "1048576", 1_048_575, 2),
        (
            "[bmf.nodes.0]\nscheduler = 0\n[bmf]\nscheduler_count = 4294967295\n",
            "bmf.scheduler_count",
            "4294967295",
            1_048_576,
            4,
        ),
    ] {
        fs::write(folder.path().join("p.toml"), config).expect("room on the disk");
        for call in calls {
            let ended = in_folder(folder.path(), call, "");
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{call}: {config}: {ended:?}");
            let told = format!(
                "p.toml:{line}: {key} = {value}: must be at most {most}, because a queue is a worker; lower {key}"
            );
            assert!(ended.stderr.contains(&told), "{call}: {config}: {}", ended.stderr);
        }
    }
    for (graph, told) in [
        (
            r#"{"nodes":[{"id":0,"scheduler":5000000000}]}"#,
            "g.json: nodes[0]: scheduler 5000000000: must be at most 1048576",
        ),
        (
            r#"{"nodes":[{"id":0,"scheduler":2000000}]}"#,
            "g.json: bmf.nodes.0.scheduler = 2000000: must be at most 1048575",
        ),
        (
            r#"{"nodes":[{"id":0}],"option":{"scheduler_count":2000000}}"#,
            "g.json: bmf.scheduler_count = 2000000: must be at most 1048576",
        ),
    ] {
        fs::write(folder.path().join("g.json"), graph).expect("room on the disk");
        let ended = in_folder(folder.path(), "run x.jsonl --policy-config g.json", "");
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{graph}: {ended:?}");
        assert!(ended.stderr.contains(told), "{graph}: {}", ended.stderr);
    }
}

#[test]
fn what_a_policy_refuses_names_its_file() {
    let folder = folder();
    let header = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n";
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("room on the disk");
    write("t.jsonl", &format!("{header}{{\"op\":\"submit\",\"name\":\"a\",\"cycles\":1,\"timestamp\":-1}}\n"));
    write("g.jsonl", &format!("{header}{{\"op\":\"submit\",\"name\":\"a\",\"cycles\":1,\"group\":\"nowhere\"}}\n"));
    write("n.jsonl", &format!("{header}{{\"op\":\"submit\",\"name\":\"a\",\"cycles\":1,\"node\":0}}\n"));
    write("p.toml", "[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 2\n");
    write("n.toml", "[bmf]\ntime_out = 9\n[bmf.nodes.0]\nqueue_length_limit = 3\nscheduler = 99\n");
    write("g.json", "{\"nodes\":[{\"id\":0,\"scheduler\":99}]}");
    for (call, told) in [
        ("run t.jsonl --policy bmf", "error: t.jsonl:2: task a: timestamp -1"),
        ("compare t.jsonl --policies bmf", "error: policy bmf: t.jsonl:2: task a: timestamp -1"),
        ("run g.jsonl --policy-config p.toml --policy cyber_classic", "error: g.jsonl:2: task 0 `a`: "),
        (
            "compare g.jsonl --policy-config p.toml --policies cyber_classic",
            "error: policy cyber_classic: g.jsonl:2: task 0 `a`: ",
        ),
        (
            "run n.jsonl --policy bmf --policy-config n.toml -m ideal",
            "error: n.toml:5: bmf.nodes.0.scheduler = 99: queue 99",
        ),
        (
            "compare n.jsonl --policies bmf --policy-config n.toml -m ideal",
            "error: n.toml:5: bmf.nodes.0.scheduler = 99: ",
        ),
        (
            "run n.jsonl --policy-config g.json -m ideal",
            "error: g.json: bmf.nodes.0.scheduler = 99: queue 99 is worker 99",
        ),
    ] {
        let ended = in_folder(folder.path(), call, "");
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{call}: {ended:?}");
        assert!(ended.stderr.starts_with(told), "{call}: {}", ended.stderr);
    }
}

#[test]
fn a_result_that_does_not_exist_is_named() {
    refuses("diff . no/such.json", "no/such.json: No such file or directory");
    refuses("diff no/such.json .", "no/such.json: No such file or directory");
}
