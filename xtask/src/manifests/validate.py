"""Validates rendered manifests against the schemas of Kubernetes and of the Prometheus operator, without a network.

validate.py VERSION[,VERSION…] FILE…  prints one JSON array of {"file", "object"} and exits with 1 if one is not valid.
"""

import json
import pathlib
import sys

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator


def lost(before, after, path=""):
    """Where `after` lacks what `before` has: fields that a schema does not know are dropped by it."""
    if isinstance(before, dict):
        after = after if isinstance(after, dict) else {}
        return [p for key, value in before.items() for p in (
            lost(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])]
    if isinstance(before, list):
        after = after if isinstance(after, list) else []
        return [p for i, value in enumerate(before) for p in (
            lost(value, after[i], f"{path}[{i}]") if i < len(after) else [f"{path}[{i}]"])]
    return []


def faults(manifest, versions):
    """What is wrong with an object, in words."""
    if manifest.get("apiVersion") == "monitoring.coreos.com/v1":
        try:
            read = getattr(prometheus_operator, manifest["kind"]).model_validate(manifest)
        except Exception as error:
            return [str(error)]
        known = read.model_dump(by_alias=True, exclude_unset=True, mode="json")
        return [f"{path} is not part of the schema" for path in lost(manifest, known)]
    found = []
    for version in versions:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}")
        except Exception as error:  # no schema of that kind in that version
            found.append(f"Kubernetes {version}: {error}")
    return found


def main(versions, files):
    objects, is_valid = [], True
    for file in files:
        for manifest in yaml.safe_load_all(pathlib.Path(file).read_text()):
            if manifest is None:
                continue
            objects.append({"file": pathlib.Path(file).stem, "object": manifest})
            for fault in faults(manifest, versions.split(",")):
                is_valid = False
                name = manifest.get("metadata", {}).get("name")
                print(f"{file}: {manifest.get('kind')} {name}: {fault}", file=sys.stderr)
    print(json.dumps(objects))
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
