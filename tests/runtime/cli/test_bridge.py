"""`specwire bridge`, as it is typed wrongly; tests/integration/test_bridge.py has it at work."""

from __future__ import annotations

import pytest

from tests.runtime.cli.commands import specwire


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("flux", "filemq"), "there is no bridge between flux and filemq; there are bridges between "),
        (("flux", "flux"), "both sides speak flux: they need no bridge"),
        (("flux", "cmb1", "--listen", "tcp://*:5"), "tcp://*:5 would be open to anybody"),
        (("flux", "cmb1", "--listen", "udp://x"), "--listen: udp://x is no endpoint"),
    ],
)
def test_what_cannot_be_done(
    arguments: tuple[str, ...], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One sentence."""
    done = specwire(capfd, "bridge", *arguments, "--to", "tcp://127.0.0.1:1")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"specwire: {sentence}"), done.err
