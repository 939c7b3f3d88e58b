//! The tests of the Python package, run over this build of the core: most of its behaviour is tested there, against
//! models and the fallback. `make mutants-core` sets the variables; `cargo test` alone runs none of them.

use std::env;
use std::process::Command;

/// NEPHILA_CHECKOUT: root of the checkout; NEPHILA_TESTS: tests below it, separated by spaces.
#[test]
fn the_tests_of_the_package_pass() {
    let (Ok(checkout), Ok(tests)) = (env::var("NEPHILA_CHECKOUT"), env::var("NEPHILA_TESTS")) else { return };
    let program = env::current_exe().expect("a program has a path");
    let built = program.with_file_name("lib_core.so");
    let status = Command::new(format!("{checkout}/.venv/bin/python"))
        .args(["-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tools.core_under_test"])
        .args(tests.split_whitespace())
        .current_dir(&checkout)
        .env("NEPHILA_CORE", &built)
        .status()
        .expect("Python starts");
    assert!(status.success());
}
