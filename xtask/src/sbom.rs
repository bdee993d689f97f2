//! `cargo xtask sbom`: what the one binary is made of, as a CycloneDX document: the crates of the server, those of the page inside
//! it, and the scripts that come with the page.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{
    demo, page,
    setup::{self, Purpose, WASM},
    steps::Steps,
    workspace::{Workspace, output},
};

/// The name of the files that cargo-cyclonedx leaves beside each `Cargo.toml`.
const LEFT: &str = "xtask-sbom";
/// The packages that are shipped, and the target that each is built for; `None` is the machine's own, with every feature that users get.
const SHIPPED: [(&str, Option<&str>); 3] =
    [("server", None), ("app", Some(WASM)), ("app/tokenizer", Some(WASM))];

/// The command `sbom`.
///
/// # Errors
/// When cargo-cyclonedx cannot be set up or its documents cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Sbom);
    let mut steps = Steps::new(workspace, missing.len() + 1);
    setup::meet(&mut steps, &missing)?;
    let dist = workspace.target.join("dist");
    fs::create_dir_all(&dist).context("making the folder for the result")?;
    let file = dist.join("radixscope.cdx.json");
    let count = steps.step("What the binary is made of", "", |step| {
        let mut all = None;
        for (package, target) in SHIPPED {
            let mut command = cyclonedx(workspace, target)?;
            command.arg("--manifest-path").arg(workspace.root.join(package).join("Cargo.toml"));
            step.run(command)?;
            let text = fs::read_to_string(workspace.root.join(package).join(format!("{LEFT}.json")))?;
            // Paths of this machine are removed: they would make documents of one commit differ.
            let text = text.replace(&format!("file://{}", workspace.root.display()), "file:///src");
            let document: Value = serde_json::from_str(&text).context("cargo-cyclonedx's document")?;
            all = Some(match all {
                None => document,
                Some(all) => merged(all, document),
            });
            remove_left(workspace)?;
        }
        let mut all = all.context("nothing is shipped")?;
        let scripts = scripts(&workspace.root)?;
        list(&mut all, "components").extend(scripts);
        fs::write(&file, format!("{all:#}\n")).context("writing the document")?;
        Ok(list(&mut all, "components").len())
    })?;
    println!("{count} components in {}", workspace.shown(&file));
    Ok(ExitCode::SUCCESS)
}

fn cyclonedx(workspace: &Workspace, target: Option<&str>) -> Result<Command> {
    let mut command = workspace.cargo(["cyclonedx", "--quiet", "--format=json", "--spec-version=1.5"]);
    command.args(["--override-filename", LEFT]);
    match target {
        Some(target) => command.args(["--target", target]),
        None => command.args(demo::FULL),
    };
    // Without a time given, that of the commit: the same commit gives the same document.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
        let mut git = workspace.command("git");
        let time = output(git.args(["log", "-1", "--format=%ct"])).unwrap_or_else(|_| "0".to_owned());
        command.env("SOURCE_DATE_EPOCH", time);
    }
    Ok(command)
}

/// One document for two programs: each component once, `required` where one of them needs it to run.
fn merged(mut all: Value, mut other: Value) -> Value {
    let mut by_ref: BTreeMap<String, Value> = BTreeMap::new();
    let program = other["metadata"]["component"].take();
    let components = std::mem::take(list(&mut all, "components"));
    for component in
        components.into_iter().chain([program]).chain(std::mem::take(list(&mut other, "components")))
    {
        let key = component["bom-ref"].as_str().unwrap_or_default().to_owned();
        let is_required = component["scope"] == "required";
        let retained = by_ref.entry(key).or_insert(component);
        if is_required {
            retained["scope"] = "required".into();
        }
    }
    *list(&mut all, "components") = by_ref.into_values().collect();
    let mut needs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let both = std::mem::take(list(&mut all, "dependencies"));
    for mut entry in both.into_iter().chain(std::mem::take(list(&mut other, "dependencies"))) {
        let key = entry["ref"].as_str().unwrap_or_default().to_owned();
        needs.entry(key).or_default().append(list(&mut entry, "dependsOn"));
    }
    let dependencies = needs.into_iter().map(|(of, mut on)| {
        on.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        on.dedup();
        json!({"ref": of, "dependsOn": on})
    });
    *list(&mut all, "dependencies") = dependencies.collect();
    all
}

/// The scripts of others that the page loads, by their files' names: `NAME-VERSION.min.js`.
fn scripts(root: &Path) -> Result<Vec<Value>> {
    let files = page::files(&root.join("public/vendor"), None)?;
    files.iter().map(script).collect()
}

fn script(file: &PathBuf) -> Result<Value> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((name, version)) = name.trim_end_matches(".min.js").rsplit_once('-') else {
        bail!("{} does not say its version: NAME-VERSION.min.js", file.display());
    };
    let sum = output(Command::new("sha256sum").arg(file))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let purl = format!("pkg:npm/{name}@{version}");
    Ok(json!({
        "type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "required",
        "purl": purl, "hashes": [{"alg": "SHA-256", "content": sum}],
    }))
}

/// A field that is a list; made an empty one where it is none.
fn list<'v>(of: &'v mut Value, field: &str) -> &'v mut Vec<Value> {
    let list = &mut of[field];
    if !list.is_array() {
        *list = json!([]);
    }
    #[expect(clippy::expect_used, reason = "it was made an array just now")]
    list.as_array_mut().expect("an array")
}

/// cargo-cyclonedx writes beside every package of the workspace.
fn remove_left(workspace: &Workspace) -> Result<()> {
    let metadata = output(workspace.command("cargo").args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let left = manifest.with_file_name(format!("{LEFT}.json"));
        if left.is_file() {
            fs::remove_file(&left).with_context(|| format!("removing {}", left.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_both_programs_is_there_once_and_required_if_one_requires_it() {
        let one = json!({"components": [{"bom-ref": "a", "scope": "excluded"}],
            "dependencies": [{"ref": "a", "dependsOn": ["c", "b"]}]});
        let other = json!({"metadata": {"component": {"bom-ref": "p", "scope": "required"}},
            "components": [{"bom-ref": "a", "scope": "required"}],
            "dependencies": [{"ref": "a", "dependsOn": ["b"]}, {"ref": "p", "dependsOn": ["a"]}]});
        assert_eq!(
            merged(one, other),
            json!({"components": [{"bom-ref": "a", "scope": "required"}, {"bom-ref": "p", "scope": "required"}],
                "dependencies": [{"ref": "a", "dependsOn": ["b", "c"]}, {"ref": "p", "dependsOn": ["a"]}]})
        );
    }
}
