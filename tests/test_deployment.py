"""The deployment page: valid files for Docker Compose and Kubernetes, and existing commands.

The compose file is read by ``compose-spec``, which follows the Compose Specification and refuses what it does
not know; manifests are held to the schemas of Kubernetes that ``kubernetes-validate`` carries.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from duolog.cli import main
from later import imported_later

compose_spec = imported_later("compose_spec")
kubernetes_validate = imported_later("kubernetes_validate")
yaml = pytest.importorskip("yaml")

DEPLOY = Path(__file__).parents[1] / "docs" / "deploy"


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))


def containers() -> Iterator[Mapping[str, Any]]:
    for manifest in manifests():
        if manifest["kind"] == "Deployment":
            yield from manifest["spec"]["template"]["spec"]["containers"]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def test_the_compose_file_is_one() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    read = compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(text)))
    assert set(read.service_names()) == {"postgres", "serve", "scoring", "workbench", "tables"}
    with pytest.raises(ValueError, match="comand"):
        compose_spec.PyCompose.from_yaml("services: {a: {image: b, comand: [c]}}")


@pytest.mark.parametrize(
    "manifest", manifests(), ids=lambda one: f"{one['kind']} {one['metadata']['name']}"
)
def test_a_manifest_is_as_kubernetes_has_it(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_what_manifests_refer_to_is_there() -> None:
    kinds = {(one["kind"], one["metadata"]["name"]): one for one in manifests()}
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    created = set(re.findall(r"--from-literal=([\w-]+)=", text))
    for (kind, _), one in kinds.items():
        if kind in ("Service", "PodDisruptionBudget"):
            selector = one["spec"]["selector"]
            labels = selector.get("matchLabels", selector)
            deployment = kinds["Deployment", labels["app"]]
            assert deployment["spec"]["template"]["metadata"]["labels"] == labels
    for container in containers():
        for variable in container["env"]:
            source = variable["valueFrom"]
            if "secretKeyRef" in source:
                assert source["secretKeyRef"]["key"] in created
            else:
                assert source["configMapKeyRef"]["key"] in kinds["ConfigMap", "duolog"]["data"]


def commands() -> list[list[str]]:
    services = [one["command"] for one in compose()["services"].values() if "command" in one]
    every = [*services, *(container["args"] for container in containers())]
    return [list(map(str, one)) for one in every if one[0] != "postgres"]


@pytest.mark.parametrize("command", commands(), ids=shlex.join)
def test_a_command_has_these_options(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], "--help"]) == 0
    told = capsys.readouterr().out
    for option in [word for word in command if word.startswith("--")]:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", told)


def test_the_image_installs_what_the_commands_need() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"'/src\[analytics,postgres,web\]'", text)
    assert "USER 10001" in text
    assert len(text.splitlines()) <= 10
    ignored = (DEPLOY.parents[1] / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {".git", ".venv", "build"} <= {*ignored}  # of which a checkout may hold gigabytes
