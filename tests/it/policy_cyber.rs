//! The Cyber policies: one case for each rule, the example files, and what a wrong configuration says.

use crate::notation::{Ran, any, play, typed};
use ptosim::config::Machine;
use ptosim::policy::cyber::conf::{ChoreographyTask, ClassicTask, SchedGroup};
use ptosim::policy::cyber::{Activity, Class, Conf, Cyber, Mode, parse_cpuset, snapshot};
use ptosim::report::Outcome;
use serde_json::{Map, Value, json};

/// The policy of an acceptance case: groups by worker ids, tasks by name.
pub fn from_compact(compact: &Map<String, Value>, machine: &Machine) -> Cyber {
    let tasks = compact.get("tasks").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut conf = Conf { policy: compact["policy"].as_str().map(str::to_string), ..Conf::default() };
    for group in compact.get("groups").and_then(Value::as_array).into_iter().flatten() {
        let mut own = SchedGroup { name: text(&group["name"]), ..SchedGroup::default() };
        own.workers = Some(serde_json::from_value(group["workers"].clone()).expect("worker ids"));
        let of_group = tasks.iter().filter(|(_, task)| task.get("group") == Some(&group["name"]));
        let task = |(name, task): (&String, &Value)| ClassicTask {
            name: name.clone(),
            prio: prio(task),
            ..ClassicTask::default()
        };
        own.tasks = of_group.map(task).collect();
        conf.classic_conf.groups.push(own);
    }
    let number = |key: &str| compact.get(key).and_then(Value::as_u64).map(|number| number as u32);
    conf.choreography_conf.choreography_processor_num = number("choreography_processor_num");
    conf.choreography_conf.pool_processor_num = number("pool_processor_num");
    if conf.mode().0 == Mode::Choreography {
        let task = |(name, task): (&String, &Value)| ChoreographyTask {
            name: name.clone(),
            processor: task.get("processor").and_then(Value::as_i64).map(|processor| processor as i32),
            prio: prio(task),
        };
        conf.choreography_conf.tasks = tasks.iter().map(task).collect();
    }
    Cyber::new(conf, machine).unwrap_or_else(|error| panic!("{error}"))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").into()
}

fn prio(task: &Value) -> u32 {
    task.get("prio").and_then(Value::as_u64).map_or(1, |prio| prio as u32)
}

/// Runs under a configuration given as the inside of `[scheduler_conf]`.
fn under(conf: &str, machine: &Machine, program: &str) -> Ran {
    let conf =
        Conf::from_toml(&format!("[scheduler_conf]\n{conf}"), "p.toml").unwrap_or_else(|error| panic!("{error}"));
    play(program, machine, Cyber::new(conf, machine).unwrap_or_else(|error| panic!("{error}")))
}

/// Why a configuration is refused.
fn refused(conf: &str, machine: &Machine) -> String {
    let conf = Conf::from_toml(&format!("[scheduler_conf]\n{conf}"), "p.toml");
    let policy = conf.and_then(|conf| Cyber::new(conf, machine));
    policy.map(|_| ()).expect_err("the configuration is wrong").to_string()
}

const TWO_GROUPS: &str = "policy = 'classic'\nclassic_conf.groups = [ \
    { name = 'g1', processor_num = 1, tasks = [ { name = 'P', prio = 3 }, { name = 'gemm', prio = 7 } ] }, \
    { name = 'g2', processor_num = 2 } ]\n";

#[test]
fn priorities_come_first_and_then_the_order_of_creation() {
    let ran = under("", &any(1), "a:10{prio=1} b:10{prio=4} c:10{prio=4} d:10{prio=9} e:10");
    assert_eq!(ran.schedule(), "d@0[0,10) b@0[10,20) c@0[20,30) a@0[30,40) e@0[40,50)");
}

#[test]
fn creation_counts_not_readiness() {
    // `late` is created first but READY last; it still goes before `early`, created after it.
    let ran = under("", &any(1), "x:10{prio=9} late:10(x) early:10 y:10(x)");
    assert_eq!(ran.schedule(), "x@0[0,10) late@0[10,20) early@0[20,30) y@0[30,40)");
}

#[test]
fn the_configuration_wins_over_the_trace_and_the_kernel_is_its_second_name() {
    let program = "u:10{prio=5} P:10{prio=0 grp=g2} k:10{kernel=gemm} v:10{grp=g2}";
    let ran = under(TWO_GROUPS, &any(3), program);
    assert_eq!(ran.schedule(), "k@0[0,10) v@1[0,10) u@0[10,20) P@0[20,30)");
}

#[test]
fn a_routine_keeps_the_priority_of_its_creation() {
    let ran = under("", &any(1), "w:10{prio=9} A1:10{rt=A prio=1} B:10{prio=3} A2:10{rt=A prio=19}");
    assert_eq!(ran.schedule(), "w@0[0,10) B@0[10,20) A1@0[20,30) A2@0[30,40)");
}

#[test]
fn activations_of_a_routine_run_in_the_order_in_which_they_become_ready() {
    let ran = under("", &any(2), "p:30 A1:10(p){rt=A} A2:10{rt=A} A3:10{rt=A}");
    assert_eq!(ran.schedule(), "p@0[0,30) A2@1[0,10) A3@1[10,20) A1@1[30,40)");
}

#[test]
fn groups_do_not_help_each_other_and_the_first_takes_what_nobody_names() {
    let ran = under(TWO_GROUPS, &any(3), "a:10 b:10 c:10{grp=g2}");
    assert_eq!(ran.schedule(), "a@0[0,10) c@1[0,10) b@0[10,20)");
    let groups = &ran.ok().policy_report["groups"];
    assert_eq!(groups[0], json!({"name": "g1", "workers": [0], "activations": 2}));
    assert_eq!(groups[1], json!({"name": "g2", "workers": [1, 2], "activations": 1}));
}

#[test]
fn priorities_above_the_highest_level_are_clamped_with_a_warning() {
    let ran = under("", &any(1), "a:10{prio=19} b:10{prio=25} c:10{prio=20}");
    assert_eq!(ran.schedule(), "a@0[0,10) b@0[10,20) c@0[20,30)");
    assert_eq!(ran.ok().policy_report["clamped"], 2);
    let warnings: Vec<_> = ran.ok().notes.iter().filter(|note| note.contains("highest level")).collect();
    assert_eq!(warnings.len(), 2);
    assert_eq!(warnings[0], "priority 25 of `b` is above the highest level: 19 is used");
}

#[test]
fn pinned_processors_have_no_levels() {
    let conf = "policy = 'choreography'\nchoreography_conf.choreography_processor_num = 1\n";
    let program = "a:10{proc=0 prio=19} b:10{proc=0 prio=25} c:10{proc=0 prio=20} p:10{prio=19} q:10{prio=99}";
    let ran = under(conf, &any(2), program);
    assert_eq!(ran.schedule(), "b@0[0,10) p@1[0,10) c@0[10,20) q@1[10,20) a@0[20,30)");
    assert_eq!(ran.ok().policy_report["clamped"], 1, "only the pool has levels");
}

#[test]
fn a_processor_that_is_not_for_pinning_means_the_pool() {
    let conf = "policy = 'choreography'\nchoreography_conf.choreography_processor_num = 1\n\
        choreography_conf.tasks = [ { name = 'A', processor = 1 }, { name = 'B' }, { name = 'C', processor = -1 } ]\n";
    let ran = under(conf, &any(2), "A:10 B:10{proc=0} C:10{proc=0} D:10{proc=0} E:10");
    assert_eq!(ran.schedule(), "B@0[0,10) A@1[0,10) D@0[10,20) C@1[10,20) E@1[20,30)");
    assert!(ran.ok().notes.contains(&"there is no choreography processor 1: the pool is used".to_string()));
}

#[test]
fn a_trace_may_pin_to_a_larger_machine_but_a_configuration_may_not() {
    let conf = "policy = 'choreography'\nchoreography_conf.choreography_processor_num = 1\n";
    let ran = under(conf, &any(2), "A:10{proc=7} B:10{proc=0} C:10{proc=-3}");
    assert_eq!(ran.schedule(), "B@0[0,10) A@1[0,10) C@1[10,20)");
    assert!(ran.ok().notes.contains(&"there is no choreography processor 7: the pool is used".to_string()));
    for processor in [2, 7, -2] {
        let told = refused(
            &format!("{conf}choreography_conf.tasks = [ {{ name = 'A', processor = {processor} }} ]\n"),
            &any(2),
        );
        assert!(told.contains(&format!("task `A`: processor = {processor} is out of range")), "{told}");
    }
}

#[test]
fn typed_groups_take_workers_of_their_types() {
    let conf = "policy = 'classic'\nclassic_conf.groups = [ \
        { name = 'a', processors = { CUBE = 1, VECTOR = 1 } }, { name = 'b', processors = { CUBE = 1, VECTOR = 2 } } ]\n";
    let machine = typed(2, 3);
    let ran = under(conf, &machine, "c:10{on=CUBE grp=b} v:10{grp=a} w:10{grp=b} x:10{grp=b} y:10{on=CUBE grp=b}");
    assert_eq!(ran.schedule(), "c@1[0,10) v@2[0,10) w@3[0,10) x@4[0,10) y@1[10,20)");
    let only_cubes = "policy = 'classic'\nclassic_conf.groups = [ { name = 'a', processor_num = 2 }, { name = 'b', processor_num = 3 } ]\n";
    let error = under(only_cubes, &machine, "ok:10{on=CUBE} v:10").error();
    assert_eq!(error, "case:3: task 1 `v`: `a` has no VECTOR or ANY processor to run it; give it one or move the task");
}

#[test]
fn a_worker_passes_over_routines_of_another_type() {
    let ran = under("", &typed(1, 1), "v1:10{prio=9} v2:10{prio=9} c:10{on=CUBE prio=0}");
    assert_eq!(ran.schedule(), "c@0[0,10) v1@1[0,10) v2@1[10,20)");
}

#[test]
fn blocks_of_a_task_stay_in_its_group_and_count_as_one_activation() {
    let ran = under(TWO_GROUPS, &any(3), "a:10{grp=g2 blocks=3 rt=A} b:10{grp=g2 rt=A}");
    assert_eq!(ran.schedule(), "a@1[0,10) a@2[0,10) a@1[10,20) b@2[20,30)");
}

#[test]
fn blocks_that_start_together_may_leave_their_group() {
    let ran = under(TWO_GROUPS, &any(3), "s:10{blocks=3 sync=true} t:10");
    assert_eq!(ran.schedule(), "s@0[0,10) s@1[0,10) s@2[0,10) t@0[10,20)");
    assert_eq!(ran.ok().policy_report["wide"], 1);
}

#[test]
fn without_configuration_the_machine_is_one_group() {
    let ran = under("", &typed(1, 2), "a:10 b:10 c:10{on=CUBE} d:10{grp=nowhere}");
    assert_eq!(ran.schedule(), "c@0[0,10) a@1[0,10) b@2[0,10) d@1[10,20)");
    let notes = &ran.ok().notes;
    assert!(notes.contains(&"no scheduler conf names a policy: classic is used".to_string()), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("no group is configured: `nowhere`")), "{notes:?}");
    assert_eq!(ran.ok().policy_report["groups"][0]["name"], "default_grp");
}

#[test]
fn choreography_without_numbers_leaves_every_type_in_the_pool() {
    let conf = "policy = 'choreography'\n";
    let homes = |machine: &Machine| {
        let policy = Cyber::new(Conf::from_toml(&format!("[scheduler_conf]\n{conf}"), "").expect("right"), machine);
        policy.expect("fits every machine").layout().homes.iter().map(|home| home.workers.clone()).collect::<Vec<_>>()
    };
    assert_eq!(homes(&any(1)), [vec![0]]);
    assert_eq!(homes(&any(3)), [vec![0], vec![1], vec![2]]);
    assert_eq!(homes(&any(4)), [vec![0], vec![1], vec![2, 3]]);
    assert_eq!(homes(&typed(1, 1)), [vec![0, 1]]);
    assert_eq!(homes(&typed(1, 4)), [vec![1], vec![2], vec![0, 3, 4]]);
    let ran = under(conf, &typed(1, 4), "c:10{on=CUBE proc=0} v:10{proc=0}");
    assert_eq!(ran.schedule(), "c@0[0,10) v@1[0,10)", "a CUBE task pinned to a vector runs elsewhere");
    assert_eq!(ran.ok().policy_report["misplaced"], 1);
}

#[test]
fn a_removed_routine_finishes_what_runs_and_cancels_the_rest() {
    let program = "A1:20{rt=A} A2:20{rt=A} n:5(A2) A3:20(w){rt=A} w:50{prio=0 grp=g2} B:10";
    let program = program.replace("A3:20(w){rt=A} w:50{prio=0 grp=g2}", "w:50{grp=g2} A3:20(w){rt=A}");
    let ran = under(
        TWO_GROUPS,
        &any(3),
        &format!("{program} @10:remove_routine{{routine=A}} @11:remove_routine{{routine=Z}}"),
    );
    assert_eq!(ran.schedule(), "A1@0[0,20) w@1[0,50) B@0[20,30)");
    let report = ran.ok();
    assert_eq!(report.outcome, Outcome::Failed);
    let ended = &report.ended;
    assert_eq!((ended.completed, ended.dropped, ended.cancelled, ended.consumed), (3, 2, 1, 6));
    assert!(report.notes.contains(&"remove_routine: there is no routine `Z`".to_string()));
}

#[test]
fn a_removed_name_can_be_used_again() {
    let program = "A1:20{rt=A prio=5} A2:20{rt=A} B:30 A3:10{rt=A sub=40} @10:remove_routine{routine=A}";
    let ran = under("", &any(1), program);
    assert_eq!(ran.schedule(), "A1@0[0,20) B@0[20,50) A3@0[50,60)");
    assert_eq!(ran.ok().policy_report["routines"], 3);
}

#[test]
fn one_shot_tasks_are_removed_by_their_own_name() {
    let ran = under("", &any(1), "a:20 b:10 c:10 @5:remove_routine{routine=b}");
    assert_eq!(ran.schedule(), "a@0[0,20) c@0[20,30)");
}

#[test]
fn a_child_of_a_removed_task_never_runs() {
    let ran = under("", &any(1), "a:20 p:10 c:10{par=p sub=30} d:5(c) @5:remove_routine{routine=p}");
    assert_eq!(ran.schedule(), "a@0[0,20)");
    let ended = &ran.ok().ended;
    assert_eq!((ended.dropped, ended.cancelled, ended.consumed), (1, 2, 4));
}

#[test]
fn after_a_shutdown_nothing_new_starts() {
    let ran = under("", &any(1), "a:20 b:10(a) c:10 d:10{sub=30} @5:shutdown @6:shutdown");
    assert_eq!(ran.schedule(), "a@0[0,20)");
    let ended = &ran.ok().ended;
    assert_eq!((ended.completed, ended.dropped, ended.consumed), (1, 3, 4));
    assert_eq!(ran.ok().outcome, Outcome::Failed);
    let late = under("", &any(1), "a:20 @30:shutdown");
    assert_eq!(late.ok().outcome, Outcome::Completed, "a shutdown with nothing left harms nobody");
}

#[test]
fn notifications_are_counted_and_change_no_time() {
    let ran = under("", &any(1), "a:20 b:10 @5:notify{routine=b} @5:notify{routine=z}");
    assert_eq!(ran.schedule(), "a@0[0,20) b@0[20,30)");
    let report = &ran.ok().policy_report;
    assert_eq!((&report["notified"], &report["unknown_routines"]), (&json!(1), &json!(1)));
}

#[test]
fn a_failed_task_cancels_its_dependents_and_frees_its_routine() {
    let ran = under("", &any(1), "A1:10{rt=A fault=true} n:10(A1) A2:10{rt=A}");
    assert_eq!(ran.schedule(), "A1@0[0,10) A2@0[10,20)");
    let ended = &ran.ok().ended;
    assert_eq!((ended.completed, ended.failed, ended.cancelled), (1, 1, 1));
}

#[test]
fn repeated_names_are_routines_of_their_own_unless_forbidden() {
    let program = "k:10 k:10 k:10{sub=15}";
    let ran = under("", &any(2), program);
    assert_eq!(ran.schedule(), "k@0[0,10) k@1[0,10) k@0[15,25)");
    assert_eq!(ran.ok().policy_report["repeated_names"], 1, "the third comes when the others are gone");
    let error = under("unique_names = true\n", &any(2), program).error();
    assert_eq!(error, "case:3: task 1 `k`: a task called `k` is still alive, and unique_names asks for one at a time");
}

#[test]
fn a_task_is_an_activation_of_the_routine_that_has_its_name() {
    assert_eq!(under("", &any(2), "a:30 x:10{rt=a} y:10{rt=a}").schedule(), "a@0[0,30) x@1[30,40) y@0[40,50)");
    assert_eq!(under("", &any(2), "x:30{rt=a} a:10 b:10").schedule(), "x@0[0,30) b@1[0,10) a@1[30,40)");
}

#[test]
fn an_unknown_group_is_an_error_with_the_nearest_one() {
    let error = under(TWO_GROUPS, &any(3), "a:10{grp=g11}").error();
    assert_eq!(error, "case:2: task 0 `a`: no processor serves group `g11`; did you mean `g1`?");
    let conf =
        "classic_conf.groups = [ { name = 'g', processor_num = 1, tasks = [ { name = 'A', group_name = 'x' } ] } ]\n";
    assert_eq!(refused(conf, &any(1)), "scheduler_conf: task `A`: no processor serves group `x`; the groups are g");
}

#[test]
fn numbers_of_processors_and_workers_must_agree() {
    assert_eq!(
        refused(TWO_GROUPS, &any(4)),
        "scheduler_conf: the groups have 3 processors, but machine `ideal` has 4 workers; make the two numbers equal"
    );
    assert!(refused(TWO_GROUPS, &any(2)).contains("3 processors, but machine `ideal` has 2 workers"));
    let pinned =
        "policy = 'choreography'\nchoreography_conf = { choreography_processor_num = 3, pool_processor_num = 2 }\n";
    assert_eq!(
        refused(pinned, &any(4)),
        "scheduler_conf: 3 choreography and 2 pool processors, but machine `ideal` has 4 workers; make the two numbers equal"
    );
    let default = "policy = 'choreography'\ndefault_proc_num = 3\n";
    assert!(refused(default, &any(4)).contains("3 choreography and as many pool processors, 6 in all"));
    let ran = under(default, &any(6), "a:10{proc=2} b:10");
    assert_eq!(ran.schedule(), "a@2[0,10) b@3[0,10)");
    assert_eq!(ran.ok().policy_report["task_pool_size"], 3);
}

#[test]
fn a_group_without_processors_is_an_error() {
    let conf = "classic_conf.groups = [ { name = 'g1', processor_num = 1 }, { name = 'g2' } ]\n";
    let message = "scheduler_conf: group `g2` has no processors, so that its tasks would never run; set processor_num";
    assert_eq!(refused(conf, &any(1)), message);
    assert_eq!(refused(&conf.replace("'g2'", "'g2', processor_num = 0"), &any(1)), message);
    let twice = "classic_conf.groups = [ { name = 'g', processor_num = 1 }, { name = 'g', processor_num = 1 } ]\n";
    assert_eq!(refused(twice, &any(2)), "scheduler_conf: two groups are called `g`; give each its own name");
    let typed_twice = "classic_conf.groups = [ { name = 'g', processor_num = 3, processors = { ANY = 2 } } ]\n";
    assert!(refused(typed_twice, &any(2)).contains("processor_num = 3, but its processors by type are 2"));
    let no_cube = "classic_conf.groups = [ { name = 'g', processors = { CUBE = 2 } } ]\n";
    assert!(refused(no_cube, &any(2)).contains("wants 2 CUBE processors, but only 0 of machine `ideal` are left"));
    let far = "classic_conf.groups = [ { name = 'g', workers = [ 5 ] } ]\n";
    assert!(refused(far, &any(2)).contains("there is no worker 5; machine `ideal` has 2 workers"));
}

#[test]
fn no_groups_at_all_are_an_error_and_no_types_are_none() {
    for text in ["[scheduler_conf.classic_conf]\ngroups = []\n", "[scheduler_conf.classic_conf]\n"] {
        let error = Conf::from_toml(text, "c.toml").expect_err("no task would ever run").to_string();
        assert!(error.starts_with("c.toml:1: classic_conf has no groups; add a group"), "{error}");
    }
    let proto = "scheduler_conf { policy: \"classic\" classic_conf { } }";
    let error = Conf::from_proto(proto, "c.conf").expect_err("no task would ever run").to_string();
    assert!(error.contains("classic_conf has no groups"), "{error}");
    let untyped =
        "classic_conf.groups = [ { name = 'g', processor_num = 2, processors = { CUBE = 0, VECTOR = 0 } } ]\n";
    assert_eq!(under(untyped, &any(2), "a:10 b:10").schedule(), "a@0[0,10) b@1[0,10)");
}

#[test]
fn one_group_without_a_number_takes_the_machine() {
    let ran = under(
        "classic_conf.groups = [ { name = 'g', tasks = [ { name = 'b', prio = 2 } ] } ]\n",
        &any(2),
        "a:10 b:10 c:10",
    );
    assert_eq!(ran.schedule(), "b@0[0,10) a@1[0,10) c@0[10,20)");
}

#[test]
fn wrong_cpusets_are_errors_wherever_they_stand() {
    let group = "classic_conf.groups = [ { name = 'g', processor_num = 1, affinity = 'range', cpuset = '5-3' } ]\n";
    assert_eq!(refused(group, &any(1)), "scheduler_conf: g: cpuset \"5-3\": `5-3` runs backwards; write 3-5");
    assert!(refused("process_level_cpuset = 'x'\n", &any(1)).contains("`x` is not a cpu"));
    assert!(
        refused("threads = [ { name = 'shm', cpuset = '9-' } ]\n", &any(1)).contains("thread `shm`: cpuset \"9-\"")
    );
    let pool = "policy = 'choreography'\nchoreography_conf = { choreography_processor_num = 1, pool_cpuset = '3-1' }\n";
    assert!(refused(pool, &any(2)).contains("`3-1` runs backwards"));
}

#[test]
fn unknown_fields_and_wrong_types_are_named_with_their_line() {
    let fails = |text: &str| Conf::from_toml(text, "p.toml").expect_err("the text is wrong").to_string();
    assert_eq!(
        fails("[scheduler_conf]\npolicy = 'classic'\nrutine_num = 3\n"),
        "p.toml:3: unknown field `rutine_num`; did you mean `routine_num`?"
    );
    assert_eq!(
        fails("[[scheduler_conf.classic_conf.groups]]\nname = 'g'\nprocessor_num = -1\n"),
        "p.toml:3: `processor_num` = -1: must be a whole number from 0"
    );
    assert!(fails("[scheduler_conf\n").starts_with("p.toml:1: "));
    let proto = Conf::from_proto("scheduler_conf {\n classic_conf {\n  groups {\n   nam: \"g\"\n}}}", "c.conf");
    assert_eq!(
        proto.expect_err("the text is wrong").to_string(),
        "c.conf:4: unknown field `nam`; did you mean `name`?"
    );
    let twice = Conf::from_proto("scheduler_conf { policy: \"classic\"\n policy: \"classic\" }", "c.conf");
    assert_eq!(twice.expect_err("the text is wrong").to_string(), "c.conf:2: `policy` is given twice; keep one");
}

#[test]
fn an_unknown_policy_is_classic_with_a_warning() {
    let mode = |policy: Option<&str>| Conf { policy: policy.map(str::to_string), ..Conf::default() }.mode();
    assert_eq!(mode(Some("classic")), (Mode::Classic, None));
    assert_eq!(mode(Some("choreography")), (Mode::Choreography, None));
    let (classic, warning) = mode(Some("foo"));
    assert_eq!(classic, Mode::Classic);
    assert_eq!(warning.as_deref(), Some("invalid scheduler policy `foo`: classic or choreography; classic is used"));
    assert!(mode(None).1.is_some());
    assert_eq!(
        Conf::default().workers(Mode::Classic).ok(),
        Some(any(2).workers),
        "without a machine there are two processors"
    );
}

/// The classic example in Apollo's own form.
const EXAMPLE: &str = r#"
scheduler_conf {
    policy: "classic"
    process_level_cpuset: "0-7,16-23" # all threads in the process are on the cpuset
    threads: [
        { name: "async_log" cpuset: "1" policy: "SCHED_OTHER" prio: 0 },
        { name: "shm" cpuset: "2" policy: "SCHED_FIFO" prio: 10 }
    ]
    classic_conf {
        groups: [
            {
                name: "group1"
                processor_num: 16
                affinity: "range"
                cpuset: "0-7,16-23"
                processor_policy: "SCHED_OTHER"  # SCHED_OTHER, SCHED_RR, SCHED_FIFO
                processor_prio: 0
                tasks: [ { name: "E" prio: 0 } ]
            },{
                name: "group2"
                processor_num: 16
                affinity: "1to1"
                cpuset: "8-15,24-31"
                processor_policy: "SCHED_OTHER"
                processor_prio: 0
                tasks: [ { name: "A" prio: 0 },{ name: "B" prio: 1 },{ name: "C" prio: 2 },{ name: "D" prio: 3 } ]
            }
        ]
    }
}
"#;

#[test]
fn the_example_of_apollo_loads_unchanged_and_places_its_threads() {
    let conf = Conf::from_proto(EXAMPLE, "example.conf").expect("the example is right");
    assert_eq!(conf.workers(Mode::Classic).ok(), Some(any(32).workers));
    let policy = Cyber::new(conf.clone(), &any(32)).expect("32 processors on 32 workers");
    let (processors, all) = (&policy.layout().processors, parse_cpuset("0-7,16-23").expect("a right set"));
    assert!(processors[..16].iter().all(|processor| processor.home == "group1" && processor.cpus == Some(all.clone())));
    let own = parse_cpuset("8-15,24-31").expect("a right set");
    for (index, processor) in processors[16..].iter().enumerate() {
        assert_eq!((processor.worker, processor.processor), (16 + index as u32, index));
        assert_eq!(processor.cpus, Some(vec![own[index]]));
        assert_eq!(processor.sched, Class::Other { nice: 0 });
    }
    let ran = play("A:10 B:10 C:10 D:10 E:10", &any(32), policy);
    assert_eq!(ran.schedule(), "E@0[0,10) D@16[0,10) C@17[0,10) B@18[0,10) A@19[0,10)");
    let placement = &ran.ok().policy_report["placement"];
    assert_eq!(placement["process"], json!(all));
    assert_eq!(placement["threads"][1], json!({"name": "shm", "cpus": [2], "sched": {"class": "fifo", "prio": 10}}));
    assert_eq!(ran.ok().policy_report["task_pool_size"], 16);
}

#[test]
fn both_forms_of_a_configuration_mean_the_same() {
    let toml = "[scheduler_conf]\npolicy = 'choreography'\n[scheduler_conf.choreography_conf]\n\
        choreography_processor_num = 2\npool_processor_num = 1\nchoreography_cpuset = '0-1'\nchoreography_affinity = '1to1'\n\
        choreography_processor_policy = 'SCHED_FIFO'\nchoreography_processor_prio = 10\n\
        tasks = [ { name = 'A', processor = 0, prio = 1 }, { name = 'B' } ]\n";
    let proto = "scheduler_conf { policy: \"choreography\" choreography_conf { choreography_processor_num: 2\n\
        pool_processor_num: 1 choreography_cpuset: \"0-1\" choreography_affinity: \"1to1\"\n\
        choreography_processor_policy: \"SCHED_FIFO\" choreography_processor_prio: 10\n\
        tasks { name: \"A\" processor: 0 prio: 1 } tasks { name: \"B\" } } }";
    let toml = Conf::from_toml(toml, "a.toml").expect("right");
    assert_eq!(toml, Conf::from_proto(proto, "a.conf").expect("right"));
    let policy = Cyber::new(toml, &any(3)).expect("3 processors");
    let cpus: Vec<_> = policy.layout().processors.iter().map(|processor| processor.cpus.clone()).collect();
    assert_eq!(cpus, [Some(vec![0]), Some(vec![1]), None]);
    assert_eq!(policy.layout().processors[1].sched, Class::Fifo { prio: 10 });
}

#[test]
fn a_snapshot_tells_what_every_processor_does() {
    let conf = "classic_conf.groups = [ { name = 'group1', processor_num = 1, tasks = [ { name = 'E', prio = 0 } ] }, \
        { name = 'group2', processor_num = 1, tasks = [ { name = 'A', prio = 0 }, { name = 'B', prio = 1 }, \
        { name = 'C', prio = 2 }, { name = 'D', prio = 3 } ] } ]\n";
    let ran = under(conf, &any(2), "A:10 B:10 C:10 D:10 E:10");
    let activity = |(name, worker, start, end): &(String, u32, u64, u64)| (name.clone(), *worker, *start, *end);
    let rows: Vec<_> = ran.starts.iter().map(activity).collect();
    let rows: Vec<_> = rows
        .iter()
        .map(|(routine, processor, start, end)| Activity { processor: *processor, routine, start: *start, end: *end })
        .collect();
    assert_eq!(snapshot(&rows, 2, 15), "0:idle, 1:C:5, timestamp: 15");
    assert_eq!(snapshot(&rows, 2, 0), "0:E:0, 1:D:0, timestamp: 0");
    assert_eq!(snapshot(&rows, 2, 40), "0:idle, 1:idle, timestamp: 40");
}

#[test]
fn many_pinned_processors_take_memory_by_their_number_and_not_by_its_square() {
    let conf = Conf { default_proc_num: Some(200_000), ..Conf::default() };
    // Sets of all workers for each of them would take more than 50 GB.
    let policy = Cyber::choreography(conf, &any(400_000)).expect("so many workers are allowed");
    assert_eq!(policy.layout().n_pinned, 200_000);
}
