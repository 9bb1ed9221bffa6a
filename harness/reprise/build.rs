//! Scenarios and profiles are compiled in; a new file among them is a reason to compile again.

fn main() {
    for dir in ["../../scenarios", "../../tests/registry"] {
        println!("cargo::rerun-if-changed={dir}");
    }
}
