//! Where a routine belongs and how urgent it is: the configuration by name, then the fields of the trace, then the defaults.

use super::conf::{ChoreographyTask, ClassicTask, Conf, DEFAULT_GROUP_NAME, Mode, SchedGroup};
use super::layout::{Layout, unknown_group};
use super::{Cyber, MAX_PRIO};
use crate::id::TaskType;
use crate::policy::Submission;
use std::collections::HashMap;

/// Warnings of one kind that are written out; the report counts all.
const MAX_NOTES: u64 = 10;

/// Priority and place that the configuration gives a routine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    prio: u32,
    /// The group's home; classic only.
    home: Option<u32>,
    /// The processor; choreography only.
    processor: Option<i32>,
}

/// What the configuration says, by name; the last of two entries counts.
pub(super) fn presets(conf: &Conf, mode: Mode, layout: &Layout) -> HashMap<String, Preset> {
    match mode {
        Mode::Classic => {
            let of_group = |group: &SchedGroup| {
                let home = layout.find(&group.name);
                let preset =
                    move |task: &ClassicTask| (task.name.clone(), Preset { prio: task.prio, home, processor: None });
                group.tasks.iter().map(preset).collect::<Vec<_>>()
            };
            conf.classic_conf.groups.iter().flat_map(of_group).collect()
        }
        Mode::Choreography => {
            let tasks = conf.choreography_conf.tasks.iter();
            let preset = |task: &ChoreographyTask| {
                (task.name.clone(), Preset { prio: task.prio, home: None, processor: task.processor })
            };
            tasks.map(preset).collect()
        }
    }
}

impl Cyber {
    /// Home and priority of a new routine.
    pub(super) fn place_of(&mut self, submission: &Submission<'_>, name: &str) -> Result<(u32, u32), String> {
        let fields = submission.submit.policy.as_ref();
        if fields.is_none() && self.presets.is_empty() {
            // The pool, or the first group.
            return Ok((self.layout.n_pinned, 0));
        }
        let preset = self.preset(submission, name);
        let prio = preset.map_or_else(|| fields.and_then(|fields| fields.prio).unwrap_or(0), |preset| preset.prio);
        let home = match self.mode {
            Mode::Classic => self.group_of(preset, fields.and_then(|fields| fields.group.as_deref()))?,
            Mode::Choreography => {
                let own = fields.and_then(|fields| fields.processor);
                self.processor_of(preset.and_then(|preset| preset.processor).or(own))
            }
        };
        Ok((home, self.clamp(home, prio, name)))
    }

    /// Whether a task is placed outside its home: it needs several workers at the same instant, or its home has none of its
    /// type. The latter is an error if the configuration made the home so.
    pub(super) fn is_wide(&mut self, submission: &Submission<'_>, home: u32) -> Result<bool, String> {
        let (kind, submit) = (submission.kind, submission.submit);
        if kind == TaskType::Mix || submit.sync_start && submit.blocks > 1 {
            return Ok(true);
        }
        let home = &self.layout.homes[home as usize];
        if kind == TaskType::None || home.serves(kind) {
            return Ok(false);
        }
        if self.layout.is_explicit {
            let name = &home.name;
            return Err(format!("`{name}` has no {kind} or ANY processor to run it; give it one or move the task"));
        }
        self.counts.misplaced += 1;
        Ok(true)
    }

    fn preset(&self, submission: &Submission<'_>, name: &str) -> Option<Preset> {
        if self.presets.is_empty() {
            return None;
        }
        let kernel = || submission.submit.kernel.map(|kernel| submission.source.symbols().name(kernel));
        self.presets.get(name).or_else(|| self.presets.get(kernel()?)).copied()
    }

    fn group_of(&mut self, preset: Option<Preset>, own: Option<&str>) -> Result<u32, String> {
        if let Some(home) = preset.and_then(|preset| preset.home) {
            return Ok(home);
        }
        let Some(group) = own else { return Ok(0) };
        match self.layout.find(group) {
            Some(home) => Ok(home),
            None if self.conf.classic_conf.groups.is_empty() => {
                self.counts.misplaced += 1;
                if self.counts.misplaced == 1 {
                    let note = format!("no group is configured: `{group}` and any other are `{DEFAULT_GROUP_NAME}`");
                    self.requests.notes.push(note);
                }
                Ok(0)
            }
            None => {
                let names = self.layout.homes.iter().map(|home| home.name.as_str());
                Err(unknown_group(group, names))
            }
        }
    }

    /// The pinned processor, or the pool.
    fn processor_of(&mut self, wanted: Option<i32>) -> u32 {
        let pool = self.layout.n_pinned;
        match wanted.map(u32::try_from) {
            Some(Ok(processor)) if processor < pool => processor,
            Some(Ok(processor)) => {
                self.counts.misplaced += 1;
                if self.counts.misplaced <= MAX_NOTES {
                    self.requests
                        .notes
                        .push(format!("there is no choreography processor {processor}: the pool is used"));
                }
                pool
            }
            Some(Err(_)) | None => pool,
        }
    }

    /// Levels end below [`MAX_PRIO`]; pinned processors have no levels.
    fn clamp(&mut self, home: u32, prio: u32, name: &str) -> u32 {
        if prio < MAX_PRIO || home < self.layout.n_pinned {
            return prio;
        }
        self.counts.clamped += 1;
        if self.counts.clamped <= MAX_NOTES {
            let top = MAX_PRIO - 1;
            self.requests.notes.push(format!("priority {prio} of `{name}` is above the highest level: {top} is used"));
        }
        MAX_PRIO - 1
    }
}
