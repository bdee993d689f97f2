//! SECURITY.md says which test holds each threat: they are there, by these names.

use std::fs;
use std::path::Path;

use radixscope_tests::paths;

/// What is in `folder` and below it, as text.
fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "dist" && name != "fixtures" {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn whatever_the_threat_model_names_exists() {
    let root = paths::checkout();
    let policy = fs::read_to_string(root.join("SECURITY.md")).expect("there");
    let model = policy.split_once("## Threat model").expect("its chapter").1;
    let mut code = String::new();
    ["core", "server", "app", "tests", "bench"]
        .iter()
        .for_each(|folder| sources(&root.join(folder), &mut code));
    let rows = model.lines().filter(|line| line.starts_with("| ")).skip(1);
    let (mut named, mut missing) = (0, Vec::new());
    for row in rows {
        let held = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for name in held.split('`').skip(1).step_by(2) {
            named += 1;
            let exists = match name.split_once(' ') {
                Some(("fuzz", target)) => root.join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(),
                Some(("attack", group)) => {
                    let (first, rest) = group.split_at(1);
                    code.contains(&format!("Group::{}{rest} =>", first.to_uppercase()))
                }
                _ => code.contains(&format!("fn {name}(")),
            };
            if !exists {
                missing.push(name);
            }
        }
    }
    assert!(named > 40, "{named} names");
    assert_eq!(missing, [""; 0]);
}
