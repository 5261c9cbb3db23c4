//! Has the modules take loom's atomics, without a flag that would compile the dependencies differently.

fn main() {
    println!("cargo:rustc-cfg=loom");
}
