"""`specwire decode` with payloads that the package describes: shown by key, checked on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from specwire.generated import flux
from specwire.runtime.pcap.recording import Recording
from specwire.runtime.pcap.rows import Row
from tests.runtime.cli.commands import specwire

KILL = flux.Request(topic="rexec.kill", payload=b'{"pid":7,"signum":15}\0')
EXEC = flux.Request(
    topic="rexec.exec",
    payload=b'{"cmd":{"cmdline":["ls","-l"],"env":{},"opts":{},"channels":[]},"flags":3}\0',
)
STARTED = flux.Response(topic="rexec.exec", payload=b'{"type":"started","pid":7}\0')
WRONG = flux.Request(topic="rexec.kill", payload=b'{"pid":"seven","signum":15}\0')
CUT = flux.Request(topic="rexec.kill", payload=b'{"pid":7,"sig')
SIGNED = flux.Request(topic="rexec.kill", payload=b'{"signature":"abc"}\0')
ERROR = flux.Response(topic="rexec.exec", payload=b"no such command\0", errnum=2)
OTHER = flux.Request(topic="some.thing", payload=b'{"pid":7}\0')


def capture(folder: Path, *messages: Any) -> str:
    recording = Recording(folder)
    for number, message in enumerate(messages):
        frames = tuple(map(bytes, message.encode()))
        recording.add(Row(frames=frames, ts=number, protocol="flux", listener="a:1"), flux.EDITION)
    recording.flush()
    return str(folder)


def lines(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    outcome = specwire(capfd, "decode", *arguments)
    assert outcome.status == 0, outcome.err
    return outcome.out.splitlines()[1:]


def test_keys_of_a_payload_are_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kill, run, started = lines(capfd, capture(tmp_path, KILL, EXEC, STARTED))
    assert "topic=rexec.kill pid=7 signum=15 flags=" in kill
    assert "topic=rexec.exec cmd={cmdline=[ls, -l] env={} opts={} channels=[]} payload.flags=3 flags=" in run
    assert "topic=rexec.exec type=started pid=7 flags=" in started


def test_payload_that_does_not_fit_is_shown_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong, cut = lines(capfd, capture(tmp_path, WRONG, CUT))
    assert "topic=rexec.kill pid=seven signum=15" in wrong
    assert wrong.endswith("(payload does not fit rexec.kill: Expected `int`, got `str` - at `$.pid`)")
    assert 'payload=\'{"pid":7,"sig\'' in cut
    assert cut.endswith("(payload does not fit rexec.kill: Input data was truncated)")


@pytest.mark.parametrize("message", [SIGNED, ERROR, OTHER])
def test_other_payloads_are_not_judged(
    message: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (line,) = lines(capfd, capture(tmp_path, message))
    assert "does not fit" not in line
    assert ("signature=abc" in line) == (message is SIGNED)


def test_check_makes_errors_of_payloads_that_do_not_fit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = capture(tmp_path, KILL, WRONG)
    assert specwire(capfd, "decode", "--errors", folder).out == ""
    (line,) = lines(capfd, "--errors", "--check-payloads", folder)
    assert line.endswith(
        "Request         payload does not fit rexec.kill: Expected `int`, got `str` - at `$.pid`"
    )


def test_json_has_the_payload(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", "--json", capture(tmp_path, KILL, WRONG, OTHER))
    kill, wrong, other = (json.loads(line) for line in outcome.out.splitlines())
    assert kill["payload"] == {"topic": "rexec.kill", "field": "payload", "value": {"pid": 7, "signum": 15}}
    assert wrong["payload"]["fault"].startswith("payload does not fit rexec.kill")
    assert "payload" not in other


def test_one_message_shows_its_payload(capfd: pytest.CaptureFixture[str]) -> None:
    frames = [bytes(frame).hex() for frame in WRONG.encode()]
    outcome = specwire(capfd, "decode", "flux", *frames)
    assert outcome.status == 0
    assert 'pid     "seven"' in outcome.out
    assert "payload does not fit rexec.kill" in outcome.out
    outcome = specwire(capfd, "decode", "--check-payloads", "flux", *frames)
    assert (outcome.status, outcome.out) == (2, "")


def test_check_does_not_go_with_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = capture(tmp_path / "a", KILL)
    outcome = specwire(capfd, "decode", "--check-payloads", "--out", str(tmp_path / "b"), folder)
    assert outcome.status == 2
    assert "--check-payloads is for messages that are shown" in outcome.err
