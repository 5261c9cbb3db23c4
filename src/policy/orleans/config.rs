//! The `[orleans]` table.

use crate::config::ConfigError;
use crate::policy::settings::{self, Field, Kind};
use serde::{Deserialize, Serialize};

/// Settings of the policy, with the names of Orleans' options.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A group gives its worker up when its turn has lasted this long and a task has ended; 0 or less is no limit.
    pub activation_scheduling_quantum: Span,
    /// And when this many tasks have run in the turn; 0 is no limit.
    pub max_work_items_per_turn: u64,
    /// Turns and tasks that last longer are counted.
    pub turn_warning_length_threshold: Span,
    /// Tasks that wait longer for their start are counted.
    pub delay_warning_threshold: Span,
    /// Tasks that find more than this many in their group are counted; 0 is no limit.
    pub max_pending_work_items_soft_limit: u64,
    /// A task made READY by the task of its activation that just ended runs next.
    pub inline: bool,
    /// Entries of system contexts go first.
    pub prioritize_system: bool,
    /// A context that is not in `contexts` is an error.
    pub strict_contexts: bool,
    /// Contexts that exist from the start.
    pub contexts: Vec<String>,
    /// A task without context is an error.
    pub forbid_null_context: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            activation_scheduling_quantum: Span::Text("100ms".into()),
            max_work_items_per_turn: 0,
            turn_warning_length_threshold: Span::Text("200ms".into()),
            delay_warning_threshold: Span::Text("10s".into()),
            max_pending_work_items_soft_limit: 0,
            inline: false,
            prioritize_system: false,
            strict_contexts: false,
            contexts: Vec::new(),
            forbid_null_context: false,
        }
    }
}

const FIELDS: &[Field] = &[
    Field { name: "activation_scheduling_quantum", kind: Kind::Span },
    Field { name: "max_work_items_per_turn", kind: Kind::Count },
    Field { name: "turn_warning_length_threshold", kind: Kind::Span },
    Field { name: "delay_warning_threshold", kind: Kind::Span },
    Field { name: "max_pending_work_items_soft_limit", kind: Kind::Count },
    Field { name: "inline", kind: Kind::Flag },
    Field { name: "prioritize_system", kind: Kind::Flag },
    Field { name: "strict_contexts", kind: Kind::Flag },
    Field { name: "contexts", kind: Kind::Texts },
    Field { name: "forbid_null_context", kind: Kind::Flag },
];

impl Config {
    /// The `[orleans]` table of a TOML file; the defaults if there is none.
    ///
    /// # Errors
    /// When the text is not TOML, a field is unknown or a value is wrong.
    pub fn from_toml(text: &str, origin: &str) -> Result<Config, ConfigError> {
        let document = settings::from_toml(text, origin)?;
        let Some(node) = document.field("orleans") else { return Ok(Config::default()) };
        let value = settings::check(node, FIELDS, origin)?;
        let config: Config =
            serde_json::from_value(value).map_err(|error| settings::explain(node, "orleans", &error, origin))?;
        for (name, span) in config.named_spans() {
            let line = node.field(name).map_or(node.line, |field| field.line);
            span.cycles(1)
                .map_err(|error| ConfigError::Setting(format!("{origin}:{line}: orleans: {name} = {error}")))?;
        }
        Ok(config)
    }

    /// Quantum, warning length of a turn and of a delay in cycles, for so many cycles per microsecond.
    ///
    /// # Errors
    /// When a text is not a span of time.
    pub fn spans(&self, cycles_per_us: u64) -> Result<[u64; 3], String> {
        let mut cycles = [0; 3];
        for (cycles, (name, span)) in cycles.iter_mut().zip(self.named_spans()) {
            *cycles = span.cycles(cycles_per_us).map_err(|error| format!("{name} = {error}"))?;
        }
        Ok(cycles)
    }

    fn named_spans(&self) -> [(&'static str, &Span); 3] {
        [
            ("activation_scheduling_quantum", &self.activation_scheduling_quantum),
            ("turn_warning_length_threshold", &self.turn_warning_length_threshold),
            ("delay_warning_threshold", &self.delay_warning_threshold),
        ]
    }
}

/// A span of time: cycles, or a text with a unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Span {
    /// Cycles; less than 0 counts as 0.
    Cycles(i64),
    /// A number and one of `ns`, `us`, `ms`, `s`, `min`; or `cycles`.
    Text(String),
}

/// Nanoseconds of a unit.
const UNITS: [(&str, u128); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

/// Digits after the point that count.
const DECIMALS: usize = 9;

impl Span {
    /// In cycles, at so many cycles per microsecond; rounded down.
    ///
    /// # Errors
    /// When the text is not a number with a unit.
    pub fn cycles(&self, cycles_per_us: u64) -> Result<u64, String> {
        let text = match self {
            Span::Cycles(cycles) => return Ok(u64::try_from(*cycles).unwrap_or(0)),
            Span::Text(text) => text.trim(),
        };
        let wrong = || format!("\"{text}\": must be cycles, or a number with ns, us, ms, s or min, such as \"100ms\"");
        let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-')).unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let (negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
        let whole: u128 = digits(whole).ok_or_else(wrong)?;
        let part: u128 = digits(&format!("{:0<DECIMALS$}", &part[..part.len().min(DECIMALS)])).ok_or_else(wrong)?;
        let scale = 10u128.pow(DECIMALS as u32);
        let (factor, divisor) = if unit.is_empty() || unit == "cycles" {
            (1, 1)
        } else {
            let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
            (nanos * u128::from(cycles_per_us), 1_000)
        };
        let cycles = whole
            .checked_mul(scale)
            .and_then(|value| value.checked_add(part)?.checked_mul(factor))
            .map(|value| value / (scale * divisor));
        let cycles = cycles.and_then(|cycles| u64::try_from(cycles).ok()).unwrap_or(u64::MAX);
        Ok(if negative { 0 } else { cycles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cycles_or_have_a_unit() {
        let text = |text: &str| Span::Text(text.into()).cycles(1850);
        assert_eq!(Span::Cycles(50).cycles(1850), Ok(50));
        assert_eq!(Span::Cycles(-1).cycles(1850), Ok(0));
        assert_eq!(text("100ms"), Ok(185_000_000));
        assert_eq!(text("10 s"), Ok(18_500_000_000));
        assert_eq!(text("0.5us"), Ok(925));
        assert_eq!(text("1ns"), Ok(1));
        assert_eq!(text("2min"), Ok(222_000_000_000));
        assert_eq!(text("77"), Ok(77));
        assert_eq!(text("-3ms"), Ok(0));
        assert_eq!(text("99999999999999999999999999999999s"), Ok(u64::MAX));
    }

    #[test]
    fn a_wrong_span_says_what_would_be_right() {
        for text in ["100 m", "ms", "1.2.3s", "--1s", "fast"] {
            let error = Span::Text(text.into()).cycles(1).expect_err("not a span");
            assert!(
                error.ends_with("must be cycles, or a number with ns, us, ms, s or min, such as \"100ms\""),
                "{error}"
            );
        }
    }

    #[test]
    fn the_table_is_read_and_mistakes_are_named() {
        let read = |text: &str| Config::from_toml(text, "p.toml").map_err(|error| error.to_string());
        assert_eq!(read("[bmf]\nscheduler_count = 1\n"), Ok(Config::default()));
        let config = read("[orleans]\nactivation_scheduling_quantum = 50\ninline = true\n").expect("a right table");
        assert_eq!(config.spans(1000), Ok([50, 200_000_000, 10_000_000_000]));
        assert!(config.inline);
        assert_eq!(
            read("[orleans]\n\nactivation_quantum = 5\n").expect_err("an unknown field"),
            "p.toml:3: unknown field `activation_quantum`; did you mean `activation_scheduling_quantum`?"
        );
        assert_eq!(
            read("[orleans]\ninline = 1\n").expect_err("a wrong type"),
            "p.toml:2: `inline` = 1: must be true or false"
        );
        assert_eq!(
            read("[orleans]\ndelay_warning_threshold = \"soon\"\n").expect_err("no span"),
            "p.toml:2: orleans: delay_warning_threshold = \"soon\": must be cycles, or a number with ns, us, ms, s or \
             min, such as \"100ms\""
        );
        assert!(read("[orleans]\nmax_work_items_per_turn = -1\n").is_err());
    }
}
