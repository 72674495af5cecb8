"""What takes its time says so on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.house.repository import ROOT

CHECK = [sys.executable, "-m", "specwire", "check", "zre", "--grammars", str(ROOT / "grammars")]


def test_nothing_is_said_to_a_pipe(tmp_path: Path) -> None:
    """Not a word, and no code of a terminal."""
    ran = subprocess.run(CHECK, capture_output=True, text=True, cwd=tmp_path, check=True, timeout=60)
    assert "checking" not in ran.stderr and "\x1b" not in ran.stdout + ran.stderr


def test_a_terminal_is_told(tmp_path: Path) -> None:
    """And the words go when it is done: the cursor comes back, the line is wiped."""
    near, far = pty.openpty()
    variables = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(CHECK, stdout=subprocess.DEVNULL, stderr=far, cwd=tmp_path, env=variables)
    os.close(far)
    said = b""
    try:
        while part := os.read(near, 4096):
            said += part
    except OSError:  # the other end is closed: Linux's way to say that it is over
        pass
    finally:
        os.close(near)
    assert process.wait(60) == 0
    before, found, after = said.partition(b"checking grammars")
    assert found and b"\x1b[?25l" in before and b"\x1b[?25h" in after
    assert b"1 protocol" in after
