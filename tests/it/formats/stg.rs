//! Standard Task Graphs.

use super::{open, open_as, picture, refusal};
use ptosim::workload::import::{Options, Rules};

const DIAMOND: &str = "\
          4
          0          0          0
          1          9          1          0
          2          4          1          0
          3          3          2          1          2
          4          6          1          2
          5          0          2          3          4
# CP Length           : 12
";

#[test]
fn entry_and_exit_are_joints() {
    let workload = open(DIAMOND, &Options::default()).expect("recognised");
    let expected = "t0 stg NONE 0 < []\nt1 stg VECTOR 9 < [0]\nt2 stg VECTOR 4 < [0]\n\
                    t3 stg VECTOR 3 < [1, 2]\nt4 stg VECTOR 6 < [2]\nt5 stg NONE 0 < [3, 4]\n";
    assert_eq!(picture(workload.as_ref()), expected);
    assert!(workload.notes()[0].starts_with("format stg: 1 unit of the file is 1 cycles"));
}

#[test]
fn dialects_differ_in_header_first_id_and_order() {
    let processors = open("2 16\n1 10 0\n2 8 1 1\n3 0 1 2\n", &Options::default()).expect("header with processors");
    assert_eq!(picture(processors.as_ref()), "t1 stg VECTOR 10 < []\nt2 stg VECTOR 8 < [0]\nt3 stg NONE 0 < [1]\n");
    let backwards = open_as("stg", "2\n1 5 1 2\n2 7 0").expect("forward reference");
    assert_eq!(picture(backwards.as_ref()), "t2 stg VECTOR 7 < []\nt1 stg VECTOR 5 < [0]\n");
    assert_eq!(backwards.notes()[1], "2 tasks were moved so that producers come first");
    let promises = open_as("stg", "4000000000\n0 1 0\n").expect("the header is not trusted");
    assert!(promises.notes()[1].contains("promises 4000000000 tasks, but the file has 1"));
}

#[test]
fn rules_change_unit_type_and_cost() {
    let text = "cycles_per_unit = 2.5\n[[rule]]\nmatch = [\"STG\"]\nworker_type = \"cube\"\nscale = 2";
    let rules = Rules::from_toml(text, "r.toml").expect("valid");
    let workload = open("2\n0 3 0\n1 4 1 0\n", &Options { rules, ..Options::default() }).expect("valid");
    assert_eq!(picture(workload.as_ref()), "t0 stg CUBE 16 < []\nt1 stg CUBE 20 < [0]\n");
    for (text, told) in [
        ("clock_mhz = nan", "r.toml:1: `clock_mhz` = nan: must be a number above 0, such as 1850"),
        ("cycles_per_unit = 1\nclock_mhz = 0", "r.toml:2: `clock_mhz` = 0: must be a number above 0, such as 1850"),
        ("clock=1000", "r.toml:1: unknown field `clock`; did you mean `clock_mhz`?"),
        (
            "[[rule]]\nmatch = [\"x\"]\nscale = -1",
            "r.toml:3: `scale` = -1: must be a finite number that is not negative",
        ),
        (
            "[[rule]]\nmatch = [\"\"]",
            "r.toml:2: `match` = [\"\"]: needs at least one word, and no empty one; \"*\" matches every kernel",
        ),
        (
            "worker_type = \"CUBA\"",
            "r.toml:1: `worker_type` = \"CUBA\": unknown worker type \"CUBA\"; did you mean \"CUBE\"?",
        ),
    ] {
        assert_eq!(Rules::from_toml(text, "r.toml").expect_err("it is wrong").to_string(), told);
    }
}

#[test]
fn mistakes_have_a_line_and_a_remedy() {
    let cases = [
        ("1\n0 1 1 7\n", "input:2: \"t0\" names task 7, which the file does not have; add it or remove the name"),
        ("2\n0 1 0\n0 1 0\n", "input:3: task 0 occurs twice; give every task its own id"),
        ("2\n0 1 1 1\n1 1 1 0\n", "input: 2 tasks wait for each other in a circle: \"t0\" ← \"t1\" ← \"t0\"; remove"),
        ("1\n0 1 1 0\n", "input: \"t0\" waits for itself; remove that dependency"),
        ("1\n0 NaN 0\n", "input:2: \"NaN\" is not a cost; a line is `id cost number-of-producers producers…`"),
        ("1\n0 -5 0\n", "input:2: the cost of task 0 makes -5 cycles; it must be from 0 to 2^63"),
        ("1\n0 1 3 0", "input:2: the file ends where a producer should stand"),
        ("1\n0 1 99999999999999999999 0", "input:2: \"99999999999999999999\" is not the number of producers"),
        ("", "input:1: the file ends where the number of tasks should stand"),
        ("5\n# nothing\n", "input: no tasks; is the file complete, and is --from right?"),
    ];
    for (text, expected) in cases {
        let message = refusal("stg", text);
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(refusal("stg", "7".repeat(10_000_000)).len() < 300);
}
