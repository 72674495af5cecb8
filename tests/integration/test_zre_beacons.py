"""ZRE peers that find each other by beacons, each story in a network namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from tests.integration.zre_beacons import SET_UP, STORIES

pytestmark = pytest.mark.peers


def run_in_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a network with the addresses of the stories."""
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        f'{SET_UP} && exec "$@"',
        "sh",
        *command,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100, check=False)


@cache
def fault_in_namespaces() -> str:
    """Return why there are no network namespaces here, "" where there are."""
    try:
        tried = run_in_namespace("true")
    except OSError as error:
        return str(error)
    return tried.stderr if tried.returncode else ""


@pytest.mark.parametrize("story", STORIES)
def test_beacons(story: str) -> None:
    """Two peers of ours, the octets, the addresses, and zeromq-pyre; see `STORIES`."""
    if story == "pyre":
        pytest.importorskip("pyre", reason="needs zeromq-pyre: pip install zeromq-pyre")
    if fault := fault_in_namespaces():
        pytest.skip(f"needs network namespaces: {fault}")
    ended = run_in_namespace(sys.executable, "-m", "tests.integration.zre_beacons", story)
    assert ended.returncode == 0, ended.stderr
