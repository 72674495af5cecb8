"""What those who carry on are given: hooks that run here and fetch nothing, a template that asks for the right thing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml

from tests.house.repository import ROOT

HOOKS = ROOT / ".pre-commit-config.yaml"
TEMPLATE = ROOT / "ISSUE_TEMPLATE.md"


def test_hooks_are_local() -> None:
    """None is fetched from a host; each runs a program of `.venv` on files that are there."""
    (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        program, *words = shlex.split(hook["entry"])
        assert Path(program).parts[:2] == (".venv", "bin"), hook["id"]
        named = [word for word in words if "/" in word]
        assert [word for word in named if not (ROOT / word).exists()] == []


def test_template_asks_for_doctor() -> None:
    """And for a command that there is; it names no host."""
    text = TEMPLATE.read_text(encoding="utf-8")
    assert "specwire doctor --json" in text
    assert re.findall(r"https?://|@\w+\.\w+", text) == []


def test_contributing_tells_how_to_add() -> None:
    """A protocol, an emitter, a service, a golden case."""
    heads = re.findall(r"^## (.*)$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"A protocol", "An emitter", "A service", "Golden files"} <= set(heads)
