//! Kernel table: what a kernel of a given name costs and on which type of worker it runs.
