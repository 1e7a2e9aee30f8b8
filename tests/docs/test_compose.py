"""The compose file and the image, held against the code: nothing else can try them everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
OURS = ("web", "worker-commit", "worker-default", "sweeper", "prepare")


class Strict(yaml.SafeLoader):
    """YAML in which a key stands once, as Compose reads it."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [str(key.value) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(keys) == len(set(keys)), f"a key twice at {node.start_mark}: {keys}"
        return super().construct_mapping(node, deep)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=Strict)["services"]
    return loaded


def test_every_service_of_ours_has_what_the_settings_demand(services: dict[str, Any]) -> None:
    demanded = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "COUNTERSIGN_KEYS", "AUDIT_SIGNING_KEYS"}
    for name in OURS:
        assert demanded <= services[name]["environment"].keys(), name


def test_roles_and_queues_are_the_demos(services: dict[str, Any]) -> None:
    roles = {name: services[name]["environment"].get("COUNTERSIGN_ROLE") for name in OURS}
    assert roles == {
        "web": "web",
        "worker-commit": "worker",
        "worker-default": "worker",
        "sweeper": "sweeper",
        "prepare": None,
    }
    for queue in ("commit", "default"):
        command = services[f"worker-{queue}"]["command"]
        threads = int(re.findall(r"-c (\d+)", command)[0])
        assert f"-P threads -c {threads} -Q {queue}" in command
        assert services[f"worker-{queue}"]["environment"]["DATABASE_POOL_MAX"] >= threads + 4


def test_every_setting_is_one_that_operators_can_look_up(services: dict[str, Any]) -> None:
    documented = set(re.findall(r"`([A-Z][A-Z_]+)`", (ROOT / "docs/operations.md").read_text()))
    for name in OURS:
        assert services[name]["environment"].keys() <= documented, name


def test_a_configuration_gets_in_as_its_head_says(services: dict[str, Any]) -> None:
    head = (ROOT / "docker-compose.yml").read_text("utf-8").partition("\nx-app:")[0]
    readme = (ROOT / "README.md").read_text("utf-8")
    command = r'docker compose run --rm -v "\$PWD/my:(/my):ro" (?:-e [A-Z_]+ )+web \\\n[# ]+python'
    for text in (head, readme):
        (mounted,) = re.findall(command, text)
        assert f"python manage.py apply_config {mounted}/" in text
    # By standard input it goes through the one place that can be written.
    assert (services["web"]["read_only"], services["web"]["tmpfs"]) == (True, ["/tmp"])
    assert "sh -c 'cat > /tmp/your.toml && python manage.py apply_config /tmp/your.toml'" in head


def test_the_image_holds_every_package_that_the_product_imports() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert {"config", "audit", "plans", "approvals", "templates", "static"} <= copied
