"""Sockets and limits: what is taken, missing or small, and what to do."""

from __future__ import annotations

import resource
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from specwire.runtime.doctor import resources, sockets
from specwire.runtime.doctor.finding import Finding, State
from specwire.runtime.transport import abilities


def by_name(findings: Iterator[Finding]) -> dict[str, Finding]:
    """Return findings by their names."""
    return {finding.name: finding for finding in findings}


def test_taken_port_is_named_with_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that would not start is the one to give another port to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(sockets, "PORTS", {"filemq serve": port})
        finding = by_name(sockets.examine_sockets())["ports"]
    assert finding.state is State.ABSENT
    assert f"{port} (filemq serve)" in finding.found and "--endpoint" in finding.advice


def test_without_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers work on one machine."""
    monkeypatch.setattr(sockets, "can_encrypt", lambda: False)
    finding = by_name(sockets.examine_sockets())["curve"]
    assert finding.state is State.ABSENT and "pyzmq" in finding.advice


def test_this_libzmq_makes_keys() -> None:
    """The one that the tests of CURVE run with."""
    assert abilities.can_encrypt()
    assert "127.0.0.1" in abilities.usable_loopbacks()
    assert abilities.library_versions().startswith("libzmq 4.")


def test_loopback_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a network namespace that nobody has set up."""
    monkeypatch.setattr(sockets, "usable_loopbacks", lambda: ["::1"])
    assert by_name(sockets.examine_sockets())["loopback"].state is State.WRONG


def test_status_folder_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers would not answer there."""
    (tmp_path / "specwire").mkdir(mode=0o777)
    (tmp_path / "specwire").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    finding = by_name(sockets.examine_sockets())["status"]
    assert finding.state is State.WRONG and "chmod 700" in finding.found


def test_status_folder_with_a_long_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's path has an end."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    finding = by_name(sockets.examine_sockets())["status"]
    assert finding.state is State.WRONG and "XDG_RUNTIME_DIR" in finding.advice


@pytest.mark.parametrize(
    ("limits", "state", "advice"),
    [
        ((1024, 1_048_576), State.OK, ""),  # every server raises its own
        ((256, 256), State.ABSENT, "LimitNOFILE"),
        ((65_536, 65_536), State.OK, ""),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), State.OK, ""),
    ],
)
def test_descriptors(
    limits: tuple[int, int], state: State, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What only the administrator can raise."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    finding = by_name(resources.examine_resources(tmp_path))["descriptors"]
    assert finding.state is state and advice in finding.advice


def test_little_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A capture fills what is left in no time."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100 << 20))
    finding = by_name(resources.examine_resources(tmp_path))["disk"]
    assert finding.state is State.ABSENT and finding.found.startswith("0.1 GiB free here")


def test_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing that writes files works there."""
    monkeypatch.setattr("os.access", lambda *_: False)
    assert by_name(resources.examine_resources(tmp_path))["disk"].state is State.WRONG


def test_name_without_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java says little of it when Spark does not start."""

    def unknown(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(resources, "NAME_S", 0.05)
    finding = by_name(resources.examine_resources(tmp_path))["hostname"]
    assert finding.state is State.ABSENT and "SPARK_LOCAL_IP" in finding.advice
