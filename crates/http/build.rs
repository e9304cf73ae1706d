//! The console is built by `make console`; this only sees to it that a new
//! build of it is taken in.

fn main() {
    // Cargo takes a path that is missing for one that has changed, each time.
    let _ = std::fs::create_dir_all("../../ui/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../ui/dist");
}
