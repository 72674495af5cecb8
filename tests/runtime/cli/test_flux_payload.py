"""A payload from standard input: read to a bound, and no further."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from specwire.runtime.cli import flux_payload
from specwire.runtime.cli.console import CommandError


def give(monkeypatch: pytest.MonkeyPatch, octets: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(octets), isatty=lambda: False))


def test_what_is_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Octets as they are, JSON without what is around it, nothing where there is nothing."""
    give(monkeypatch, b" {}\n")
    assert flux_payload.read_content(None, raw=False, from_input=True) == "{}"
    give(monkeypatch, b" {}\n")
    assert flux_payload.read_content(None, raw=True, from_input=True) == b" {}\n"
    give(monkeypatch, b"")
    assert flux_payload.read_content(None, raw=True, from_input=True) is None


@pytest.mark.parametrize(("octets", "fits"), [(8, True), (9, False)])
def test_standard_input_is_read_up_to_a_bound(
    octets: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flux_payload, "MAX_INPUT_OCTETS", 8)
    give(monkeypatch, b"x" * octets)
    if fits:
        assert flux_payload.read_content(None, raw=True, from_input=True) == b"x" * 8
        return
    with pytest.raises(CommandError, match="standard input has more than 8 octets"):
        flux_payload.read_content(None, raw=True, from_input=True)
