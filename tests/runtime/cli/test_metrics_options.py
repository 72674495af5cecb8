"""What `--metrics` may say, and what is told where it cannot be."""

from __future__ import annotations

import socket

import pytest

from specwire.runtime.cli import metrics_options
from specwire.runtime.cli.console import CommandError
from specwire.runtime.cli.metrics_options import read_metrics
from specwire.runtime.observe.place import Place
from specwire.runtime.transport.errors import TransportError


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert read_metrics(None, anywhere=True) is None
    assert read_metrics("0", anywhere=False) == Place("127.0.0.1", 0)


def test_a_port_that_is_taken_is_told_before_anything_begins() -> None:
    """Also that of the second server where there are several."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"cannot listen on tcp://127.0.0.1:{port}"):
            read_metrics(str(port), anywhere=False)
        with pytest.raises(TransportError, match=f"cannot listen on tcp://127.0.0.1:({port - 1}|{port}): "):
            read_metrics(str(port - 1), anywhere=False, servers=2)


def test_there_have_to_be_ports_for_all() -> None:
    with pytest.raises(ValueError, match="9 servers need as many ports, and 65535 is the last"):
        read_metrics("65530", anywhere=False, servers=9)


@pytest.mark.parametrize("library", metrics_options.LIBRARIES)
def test_a_library_that_is_missing_is_told_with_what_to_do(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_options, "find_spec", lambda name: None if name == library else object())
    with pytest.raises(CommandError, match=rf"needs {library}: pip install 'specwire\[metrics\]'") as told:
        read_metrics("9464", anywhere=False)
    assert told.value.status == 1
