//! Costs of the tasks of one run, from a table.

use super::expr::Expr;
use super::table::{Combine, Model, Roofline, Rule, Table};
use crate::id::{Symbol, TaskType};
use crate::workload::{Cost, Region, Submit, Symbols};

/// The kernel of a task that has neither kernel nor name.
const NAMELESS: &str = "task";

/// Answers what tasks cost. It remembers the rule of every kernel, so one value serves one table of symbols only.
#[derive(Clone, Debug)]
pub struct Costs {
    table: Table,
    rules: Vec<Binding>,
    /// What is known of each kernel, by its symbol.
    kernels: Vec<Option<Known>>,
    /// The same for tasks without a kernel.
    nameless: Option<Known>,
    stack: Vec<i128>,
}

/// Where the names in the expressions of a rule get their values.
#[derive(Clone, Debug)]
struct Binding {
    flops: Vec<Variable>,
    bytes: Vec<Variable>,
    /// Whether the cycles follow from the allocated bytes alone.
    by_bytes_only: bool,
}

#[derive(Clone, Debug)]
enum Variable {
    /// What the task allocates, rounded up.
    Allocated,
    /// What it reads.
    Read,
    /// What it writes, allocations included.
    Written,
    /// A parameter, its symbol once it has one, and what stands in for it.
    Parameter { name: String, symbol: Option<Symbol>, default: Option<i128> },
}

/// A kernel met before.
#[derive(Clone, Copy, Debug)]
struct Known {
    rule: usize,
    /// The last answer of a rule that depends on the allocated bytes alone.
    last: Option<(u64, u64)>,
}

impl Costs {
    /// Answers by this table.
    #[must_use]
    pub fn new(table: &Table) -> Costs {
        let rules = table.rules().iter().map(Binding::new).collect();
        Costs { table: table.clone(), rules, kernels: Vec::new(), nameless: None, stack: Vec::new() }
    }

    /// What [`Costs::resolve`] would say of a task that asks for `bytes` bytes, if that is known without looking anything up.
    #[inline]
    pub fn recall(&self, task: &Submit, bytes: u64) -> Option<(TaskType, u64)> {
        let kind = task.kind?;
        match task.cost {
            Some(Cost::Cycles(cycles)) => Some((kind, cycles)),
            Some(Cost::PerKind { .. }) => None,
            None => {
                let known = self.kernels.get(task.kernel?.0 as usize)?.as_ref()?;
                let (known, cycles) = known.last?;
                (known == bytes).then_some((kind, cycles))
            }
        }
    }

    /// What `task` runs on and what a block of it costs. Its own cycles and type win over the table's.
    ///
    /// # Errors
    /// When no rule matches its kernel, or the rule's expression has no value for it; names kernel and parameter.
    pub fn resolve(&mut self, task: &Submit, symbols: &Symbols) -> Result<(TaskType, Cost), String> {
        if let (Some(kind), Some(cost)) = (task.kind, task.cost) {
            return checked(kind, cost);
        }
        let known = self.known(task.kernel, symbols);
        let worker = known.and_then(|known| self.table.rules()[known.rule].worker);
        let kind = task.kind.or(worker).unwrap_or(TaskType::Vector);
        if let Some(cost) = task.cost {
            return checked(kind, cost);
        }
        let mut known = known.ok_or_else(|| {
            let (kernel, table) = (kernel_name(task, symbols), self.table.name());
            format!(
                "kernel \"{kernel}\": no rule of kernel table \"{table}\" matches; give cycles in the trace or add a rule \
                 with match = [\"*\"]"
            )
        })?;
        let bytes = task.heap_bytes();
        let cycles = match known.last {
            Some((last, cycles)) if last == bytes => cycles,
            _ => {
                let cycles = self.cycles(known.rule, task, symbols).map_err(|message| {
                    let kernel = kernel_name(task, symbols);
                    format!("kernel \"{kernel}\" in kernel table \"{}\": {message}", self.table.name())
                })?;
                if self.rules[known.rule].by_bytes_only {
                    known.last = Some((bytes, cycles));
                    *self.place(task.kernel) = Some(known);
                }
                cycles
            }
        };
        Ok((kind, Cost::Cycles(cycles)))
    }

    /// The table behind the answers.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What is known of a kernel; `None` when no rule matches it.
    fn known(&mut self, kernel: Option<Symbol>, symbols: &Symbols) -> Option<Known> {
        if let Some(known) = *self.place(kernel) {
            return Some(known);
        }
        let rule = self.table.find(kernel.map_or(NAMELESS, |kernel| symbols.name(kernel)))?;
        *self.place(kernel) = Some(Known { rule, last: None });
        *self.place(kernel)
    }

    fn place(&mut self, kernel: Option<Symbol>) -> &mut Option<Known> {
        let Some(Symbol(number)) = kernel else { return &mut self.nameless };
        let number = number as usize;
        if self.kernels.len() <= number {
            self.kernels.resize(number + 1, None);
        }
        &mut self.kernels[number]
    }

    fn cycles(&mut self, rule: usize, task: &Submit, symbols: &Symbols) -> Result<u64, String> {
        let binding = &mut self.rules[rule];
        let mut value = |expr: &Expr, variables: &mut [Variable]| {
            let value = expr.value(&mut self.stack, |place| variables[place].value(task, symbols))?;
            u64::try_from(value).map_err(|_| format!("\"{expr}\" is {value}; it must be from 0 to 2^64 - 1"))
        };
        match &self.table.rules()[rule].model {
            Model::Fixed(cycles) => Ok(*cycles),
            Model::Expression(expr) => value(expr, &mut binding.flops),
            Model::Roofline(roofline) => {
                let mut time = |part: &Option<(Expr, f64)>, variables: &mut [Variable]| match part {
                    Some((expr, rate)) => value(expr, variables).map(|amount| (amount as f64 / rate).ceil() as u64),
                    None => Ok(0),
                };
                let flops = time(&roofline.flops, &mut binding.flops)?;
                let bytes = time(&roofline.bytes, &mut binding.bytes)?;
                Ok(roofline.total(flops, bytes))
            }
        }
    }
}

/// What the kernel of a task is called in rules and messages.
fn kernel_name<'a>(task: &Submit, symbols: &'a Symbols) -> &'a str {
    task.kernel.map_or(NAMELESS, |kernel| symbols.name(kernel))
}

impl Roofline {
    fn total(&self, flops: u64, bytes: u64) -> u64 {
        let both = match self.combine {
            Combine::Max => flops.max(bytes),
            Combine::Sum => flops.saturating_add(bytes),
        };
        self.c0.saturating_add(both)
    }
}

impl Binding {
    fn new(rule: &Rule) -> Binding {
        let bind = |expr: Option<&Expr>| -> Vec<Variable> {
            let names = expr.map_or(&[][..], Expr::names);
            names.iter().map(|name| Variable::new(name, rule)).collect()
        };
        let (flops, bytes) = match &rule.model {
            Model::Fixed(_) => (Vec::new(), Vec::new()),
            Model::Expression(expr) => (bind(Some(expr)), Vec::new()),
            Model::Roofline(roofline) => {
                let expr = |part: &Option<(Expr, f64)>| bind(part.as_ref().map(|(expr, _)| expr));
                (expr(&roofline.flops), expr(&roofline.bytes))
            }
        };
        let by_bytes_only = flops.iter().chain(&bytes).all(|variable| matches!(variable, Variable::Allocated));
        Binding { flops, bytes, by_bytes_only }
    }
}

impl Variable {
    fn new(name: &str, rule: &Rule) -> Variable {
        match name {
            "bytes" => Variable::Allocated,
            "read_bytes" => Variable::Read,
            "write_bytes" => Variable::Written,
            _ => Variable::Parameter { name: name.into(), symbol: None, default: rule.defaults.get(name).copied() },
        }
    }

    fn value(&mut self, task: &Submit, symbols: &Symbols) -> Result<i128, String> {
        match self {
            Variable::Allocated => Ok(i128::from(task.heap_bytes())),
            Variable::Read => Ok(size(&task.reads) + size(&task.updates)),
            Variable::Written => Ok(size(&task.writes) + size(&task.updates) + i128::from(task.heap_bytes())),
            Variable::Parameter { name, symbol, default } => {
                *symbol = symbol.or_else(|| symbols.find(name));
                let given = task.params.iter().find(|(known, _)| Some(*known) == *symbol).map(|&(_, value)| value);
                match (given, default) {
                    (Some(value), _) => whole(name, value),
                    (None, Some(default)) => Ok(*default),
                    (None, None) => {
                        Err(format!("the task has no parameter \"{name}\"; add \"params\":{{\"{name}\":…}} or cycles"))
                    }
                }
            }
        }
    }
}

/// Bytes of all regions.
fn size(regions: &[Region]) -> i128 {
    regions.iter().map(|region| i128::from(region.row_bytes) * i128::from(region.rows)).sum()
}

/// A parameter as the whole number that expressions need.
fn whole(name: &str, value: f64) -> Result<i128, String> {
    if value.fract() == 0.0 && value.abs() < 1e30 {
        return Ok(value as i128);
    }
    Err(format!("parameter \"{name}\" is {value}; cost expressions need whole numbers"))
}

fn checked(kind: TaskType, cost: Cost) -> Result<(TaskType, Cost), String> {
    if kind != TaskType::Mix && matches!(cost, Cost::PerKind { .. }) {
        return Err(format!("cycles per kind on a {kind} task; they are for MIX tasks only"));
    }
    Ok((kind, cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(symbols: &mut Symbols, kernel: &str, out_bytes: u64, params: &[(&str, f64)]) -> Submit {
        let kernel = Some(symbols.intern(kernel));
        let params = params.iter().map(|&(name, value)| (symbols.intern(name), value)).collect();
        Submit { kernel, out_bytes, params, ..Submit::default() }
    }

    fn table(rules: &str) -> Table {
        Table::from_toml(&format!("name = \"t\"\n{rules}"), "t.toml").expect("valid")
    }

    fn cycles(costs: &mut Costs, task: &Submit, symbols: &Symbols) -> Result<u64, String> {
        match costs.resolve(task, symbols)? {
            (_, Cost::Cycles(cycles)) => Ok(cycles),
            (_, other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_reference_table_costs_what_it_says() {
        let mut symbols = Symbols::default();
        let mut costs = Costs::new(&Table::builtin("reference").expect("built in"));
        let cases = [
            ("gemm_tile", 0, 100),
            ("gemm_tile", 1023, 101),
            ("gemm_tile", 960, 100),
            ("gemm_tile", 0, 100),
            ("dma_in", 1000, 82),
            ("tile_add", 4096, 52),
            ("reduce_sum", 2048, 102),
            ("softmax", 0, 100),
            ("other", 2048, 51),
        ];
        for (kernel, bytes, expected) in cases {
            let task = task(&mut symbols, kernel, bytes, &[]);
            assert_eq!(cycles(&mut costs, &task, &symbols), Ok(expected), "{kernel} {bytes}");
        }
        assert_eq!(costs.resolve(&Submit::default(), &symbols), Ok((TaskType::Vector, Cost::Cycles(50))));
    }

    #[test]
    fn cycles_and_type_of_the_trace_win() {
        let mut symbols = Symbols::default();
        let mut costs = Costs::new(&table("[[kernel]]\nmatch = [\"*\"]\nworker = \"cube\"\ncycles = 7"));
        let mut task = task(&mut symbols, "x", 0, &[]);
        assert_eq!(costs.resolve(&task, &symbols), Ok((TaskType::Cube, Cost::Cycles(7))));
        task.cost = Some(Cost::Cycles(9));
        assert_eq!(costs.resolve(&task, &symbols), Ok((TaskType::Cube, Cost::Cycles(9))));
        task.kind = Some(TaskType::Vector);
        assert_eq!(costs.resolve(&task, &symbols), Ok((TaskType::Vector, Cost::Cycles(9))));
        task.cost = Some(Cost::PerKind { cube: 1, vector: 2 });
        assert!(costs.resolve(&task, &symbols).expect_err("not MIX").contains("MIX tasks only"));
    }

    #[test]
    fn rooflines_take_the_longer_time_or_the_sum() {
        let rules = |combine: &str| {
            format!(
                "[[kernel]]\nmatch = [\"mm\"]\nc0 = 10\nflops = \"2*m*m*m\"\nflops_per_cycle = 100\nbytes = \"bytes\"\nbytes_per_cycle = 0.5\ncombine = \"{combine}\""
            )
        };
        let mut symbols = Symbols::default();
        let small = task(&mut symbols, "mm", 64, &[("m", 2.0)]);
        let large = task(&mut symbols, "mm", 0, &[("n", 3.0), ("m", 20.0)]);
        let mut costs = Costs::new(&table(&rules("max")));
        assert_eq!(cycles(&mut costs, &small, &symbols), Ok(10 + 128));
        assert_eq!(cycles(&mut costs, &large, &symbols), Ok(10 + 160));
        let mut costs = Costs::new(&table(&rules("sum")));
        assert_eq!(cycles(&mut costs, &small, &symbols), Ok(10 + 1 + 128));
    }

    #[test]
    fn mistakes_name_kernel_and_parameter() {
        let mut symbols = Symbols::default();
        let mut message = |rule: &str, params: &[(&str, f64)]| {
            let mut costs = Costs::new(&table(&format!("[[kernel]]\nmatch = [\"mm\"]\n{rule}")));
            let task = task(&mut symbols, "mm", 0, params);
            costs.resolve(&task, &symbols).expect_err("a mistake")
        };
        let missing = message("cost = \"m*2\"", &[("n", 1.0)]);
        assert!(
            missing.starts_with("kernel \"mm\" in kernel table \"t\": the task has no parameter \"m\""),
            "{missing}"
        );
        assert!(message("cost = \"1/m\"", &[("m", 0.0)]).contains("division by zero in \"1/m\""));
        assert!(message("cost = \"0-m\"", &[("m", 5.0)]).contains("\"0-m\" is -5"));
        assert!(message("cost = \"m\"", &[("m", 0.5)]).contains("parameter \"m\" is 0.5"));
        let square = message("cost = \"m*m*m*m*m\"", &[("m", 1e9)]);
        assert!(square.contains("overflow"), "{square}");
        let mut symbols = Symbols::default();
        let stranger = task(&mut symbols, "other", 0, &[]);
        let mut costs = Costs::new(&table("[[kernel]]\nmatch = [\"mm\"]\ncycles = 1"));
        assert!(
            costs.resolve(&stranger, &symbols).expect_err("no rule").contains("no rule of kernel table \"t\" matches")
        );
    }

    #[test]
    fn defaults_stand_in_for_parameters() {
        let mut symbols = Symbols::default();
        let mut costs = Costs::new(&table("[[kernel]]\nmatch = [\"mm\"]\ncost = \"m*10\"\ndefaults = { m = 4 }"));
        let without = task(&mut symbols, "mm", 0, &[]);
        let with = task(&mut symbols, "mm", 0, &[("m", 5.0)]);
        let found = [&without, &with, &without].map(|task| cycles(&mut costs, task, &symbols));
        assert_eq!(found, [Ok(40), Ok(50), Ok(40)]);
    }
}
