//! The lock-free parts of ptosim under loom: their own files, and nothing else of the crate, so that they compile in seconds.
//!
//! `scripts/loom.sh` runs the models, which stand beside the code they are about.
#![cfg(test)]

#[path = "../../../src/id.rs"]
pub mod id;
#[path = "../../../src/sync.rs"]
pub mod sync;

#[path = "../../../src/config"]
pub mod config {
    mod bytes;
    mod machine;
    mod places;
    pub use machine::{FanoutOrder, Limits};
}

#[path = "../../../src/workload"]
pub mod workload {
    mod task;
    pub use task::{Cost, Submit, Units};
}

#[path = "../../../src/window/mod.rs"]
pub mod window;

#[path = "../../../src/engine/threads"]
pub mod threads {
    mod ring;
    mod sleep;
}
