//! `cargo xtask manifests`: renders what `deploy/` has for Kubernetes with kubectl and Helm, and holds the result against the
//! schemas of Kubernetes and against rules of our own. Needs no cluster.

mod rules;

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    setup::{self, Purpose, schemas},
    steps::Steps,
    workspace::{Workspace, output},
};

/// The oldest release that we want to run on, one between, and the newest that the schemas know.
const KUBERNETES: &str = "1.27,1.32,1.37";
/// Overlays, each with the components that it leaves to the reader.
const OVERLAYS: [&str; 4] = ["plain", "token", "oauth2-proxy", "fleet"];
/// Values that the chart is rendered with beside its own.
const CHARTS: [(&str, &str); 5] = [
    ("helm-none", "access.mode=none"),
    (
        "helm-token",
        "access.mode=token,serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,replicas=1",
    ),
    (
        "helm-proxy",
        "access.mode=proxy,serviceMonitor.enabled=true,ingress.enabled=true,ingress.tlsSecret=radixscope-tls",
    ),
    ("helm-discovery", "kubernetesDiscovery.enabled=true,kubernetesDiscovery.namespace=dynamo"),
    (
        "helm-bare",
        "networkPolicy.enabled=false,podDisruptionBudget.enabled=false,service.sessionAffinity=None",
    ),
];
/// Values that the chart must refuse.
const REFUSED: [&str; 5] = [
    "access.mode=open",
    "replicas=0",
    "dashboard.enabled=yes",
    "kubernetesDiscovery.namespace=Upper",
    "options.NATS=nats://nats:4222",
];

/// The command `manifests`.
///
/// # Errors
/// When something cannot be rendered, is not valid, or breaks a rule.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Manifests);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    let folder = workspace.target.join("manifests");
    fs::create_dir_all(&folder).context("making the folder for what is rendered")?;
    let mut files = Vec::new();
    steps.step("Overlays, rendered by kubectl", "", |_| {
        for overlay in OVERLAYS {
            let (alone, full) = kustomize(workspace, overlay, &folder)?;
            files.push(write(&folder, &format!("{overlay}-alone"), &alone)?);
            files.push(write(&folder, overlay, &full)?);
        }
        Ok(())
    })?;
    steps.step("The chart, by Helm", "", |_| {
        output(helm(workspace, "lint").arg("--strict")).context("helm lint")?;
        for (name, values) in CHARTS {
            let rendered = output(helm(workspace, "template").args(["--set", values]))?;
            files.push(write(&folder, name, &rendered)?);
        }
        for values in REFUSED {
            if output(helm(workspace, "template").args(["--set", values])).is_ok() {
                bail!("the chart's schema of values lets {values} pass");
            }
        }
        Ok(())
    })?;
    let count = steps.step("Schemas and rules", "", |_| {
        let objects = validated(workspace, &files)?;
        let faults = rules::broken(&objects, &workspace.root)?;
        if !faults.is_empty() {
            bail!("{}", faults.join("\n"));
        }
        Ok(objects.len())
    })?;
    println!("{count} objects valid for Kubernetes {KUBERNETES}, in {}", workspace.shown(&folder));
    Ok(ExitCode::SUCCESS)
}

/// An object, and the name of what it was rendered from.
struct Rendered {
    from: String,
    object: Value,
}

/// What kubectl makes of an overlay as it stands, and with every component that it offers switched on.
fn kustomize(workspace: &Workspace, overlay: &str, folder: &std::path::Path) -> Result<(String, String)> {
    let kubernetes = workspace.root.join("deploy/kubernetes");
    let copy = folder.join("kubernetes");
    if copy.exists() {
        fs::remove_dir_all(&copy).context("removing an earlier copy")?;
    }
    output(workspace.command("cp").arg("-r").arg(kubernetes).arg(&copy))?;
    let file = copy.join("overlays").join(overlay).join("kustomization.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("reading the overlay {overlay}"))?;
    let rendered = || output(kubectl(workspace).arg(copy.join("overlays").join(overlay)));
    let alone = rendered()?;
    fs::write(&file, text.replace("  # - ../../components", "  - ../../components"))?;
    let full = rendered().with_context(|| format!("rendering the overlay {overlay}"))?;
    Ok((alone, full))
}

fn kubectl(workspace: &Workspace) -> std::process::Command {
    let mut command = workspace.command(workspace.tools_bin().join("kubectl"));
    command.arg("kustomize");
    command
}

fn helm(workspace: &Workspace, verb: &str) -> std::process::Command {
    let mut command = workspace.command(workspace.tools_bin().join("helm"));
    let home = workspace.target.join("helm");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, &home);
    }
    command.arg(verb);
    if verb == "template" {
        command.arg("radixscope");
    }
    command.arg("deploy/helm/radixscope");
    command
}

fn write(folder: &std::path::Path, name: &str, rendered: &str) -> Result<PathBuf> {
    let file = folder.join(format!("{name}.yaml"));
    fs::write(&file, rendered).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// Every object of the files, once all of them are valid.
fn validated(workspace: &Workspace, files: &[PathBuf]) -> Result<Vec<Rendered>> {
    let mut python = workspace.command("python3");
    python.env("PYTHONPATH", schemas(workspace));
    python.arg(workspace.root.join("xtask/src/manifests/validate.py")).arg(KUBERNETES).args(files);
    let objects: Vec<Value> = serde_json::from_str(&output(&mut python)?).context("the validated objects")?;
    let rendered = objects.into_iter().map(|mut entry| Rendered {
        from: entry["file"].as_str().unwrap_or_default().to_owned(),
        object: entry["object"].take(),
    });
    Ok(rendered.collect())
}
