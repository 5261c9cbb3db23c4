//! Which tasks the same workers can run, as far as the book of cycles is concerned.

use crate::id::{TaskType, WorkerType};
use crate::workload::Units;

/// Tasks that the same worker types can run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Class(u8);

/// Number of classes: one a task type, and MIX by the kinds it takes if these are not both.
pub(super) const N_CLASSES: usize = 8;
/// A bit for each of them.
pub(super) const ALL_CLASSES: u8 = u8::MAX;
const MIX_CUBE: u8 = 6;
const MIX_VECTOR: u8 = 7;
/// Those of MIX tasks.
pub(super) const MIX_CLASSES: [usize; 3] = [TaskType::Mix as usize, MIX_CUBE as usize, MIX_VECTOR as usize];

impl Class {
    /// The class of a task.
    #[inline]
    pub fn of(kind: TaskType, units: Units) -> Class {
        Class(match kind {
            TaskType::Mix if units.vector == 0 => MIX_CUBE,
            TaskType::Mix if units.cube == 0 => MIX_VECTOR,
            _ => kind as u8,
        })
    }

    /// The class of tasks of a type, MIX aside.
    #[inline]
    pub fn of_type(kind: TaskType) -> Class {
        Class(kind as u8)
    }

    /// Whether its tasks take several workers.
    #[inline]
    pub(super) fn is_mix(self) -> bool {
        self.0 == TaskType::Mix as u8 || self.0 >= MIX_CUBE
    }

    /// The class with this number.
    #[inline]
    pub fn from_bits(bits: u32) -> Class {
        Class(bits as u8 & 7)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its number, below 8.
    #[inline]
    pub fn bits(self) -> u32 {
        u32::from(self.0)
    }
}

/// The classes that a worker can run, a bit each.
pub(super) fn classes_of(kind: WorkerType) -> u8 {
    let of = |kind: TaskType| 1 << kind as u8;
    match kind {
        WorkerType::Cube => of(TaskType::Cube) | of(TaskType::Mix) | 1 << MIX_CUBE,
        WorkerType::Vector => of(TaskType::Vector) | of(TaskType::Mix) | 1 << MIX_VECTOR,
        WorkerType::AiCpu => of(TaskType::AiCpu),
        WorkerType::Accelerator => of(TaskType::Accelerator),
        WorkerType::Any => of(TaskType::Cube) | of(TaskType::Vector) | of(TaskType::AiCpu) | of(TaskType::Accelerator),
    }
}
