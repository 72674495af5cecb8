"""The `specwire flux` commands against what flux-core's own command line was recorded to ask, and to be told.

The script plays the broker's side of a recording and wants the client's side of it, octet for octet but for matchtags
and, in a ping, the time. What the commands have to print is how flux-core 0.88 prints these answers.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.generated.vectors import entries, frames_of
from tests.runtime.cli.commands import Outcome, specwire
from tests.runtime.flux.scripted import Conversation, Frames, broker, framed, tagged, untagged

RECORDING = "flux-cli-0.88.json"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be where the recordings were made."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def recorded(first: int, last: int) -> list[dict[str, Any]]:
    """Return a part of the recording."""
    return [*entries(RECORDING)[first : last + 1]]


def timeless(frames: Frames) -> Frames:
    """Return the frames of a request without its matchtag and, in a ping, the time."""
    topic, payload = frames[1], frames[2] if len(frames) == 4 else b""
    if topic.endswith(b".ping"):
        payload = re.sub(rb'("time.tv_n?sec":)\d+', rb"\1", payload)
    return (frames[0], topic, payload, untagged(frames)[-1])


def play(c: Conversation, script: list[dict[str, Any]]) -> None:
    """Be the broker of a recording; the client's last words may be unanswered."""
    tags: dict[bytes, bytes] = {}
    for entry in script:
        frames = frames_of(entry)
        if entry["direction"] == "client->broker":
            heard = c.hear()
            assert timeless(heard) == timeless(frames)
            tags[heard[1]] = heard[-1][-4:]
        else:
            is_response = entry["fields"]["type"] == 2
            with suppress(BrokenPipeError):
                c.say(framed(tagged(frames, tags[frames[1]]) if is_response else frames))


def tell(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    script: Callable[[Conversation], None],
    *arguments: str,
) -> Outcome:
    """Return what a command prints that talks to this broker, which FLUX_URI names."""
    with broker(script) as uri:
        monkeypatch.setenv("FLUX_URI", uri)
        return specwire(capfd, "flux", *arguments)


CASES = [
    (
        ["ping", "--count", "2", "--interval", "0", "0"],
        (0, 5),
        (
            "flux-ping 0!broker\n"
            "0!broker.ping pad=0 seq=0 time=# ms (06430528!c6871592!c7386def)\n"
            "0!broker.ping pad=0 seq=1 time=# ms (06430528!c6871592!c7386def)\n"
        ),
    ),
    (
        ["ping", "--count", "1", "--userid", "2"],
        (6, 9),
        (
            "flux-ping 2!broker\n"
            "2!broker.ping pad=0 userid=0 rolemask=0x1 seq=0 time=# ms"
            " (c95b7aad!c6871592!c7386def!45f532b0!80e82a71)\n"
        ),
    ),
    (["getattr", "rank"], (10, 11), "0\n"),
    (["getattr", "size"], (12, 13), "3\n"),
    (["event", "pub", "my.topic", '{"a":1}'], (14, 14), ""),
    (["overlay", "status"], (21, 30), "0 vm: full\n└─ 1 vm: full\n   └─ 2 vm: full\n"),
    (
        ["overlay", "status", "--verbose"],
        (21, 30),
        "0 vm: full for 12.166s\n└─ 1 vm: full for 12.1678s\n   └─ 2 vm: full for 12.1678s\n",
    ),
]


@pytest.mark.parametrize(("arguments", "part", "printed"), CASES, ids=lambda value: str(value)[:40])
def test_command_asks_and_prints_as_that_of_flux_core(
    arguments: list[str],
    part: tuple[int, int],
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    outcome = tell(monkeypatch, capfd, lambda c: play(c, recorded(*part)), *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    assert re.sub(r"time=\d+\.\d{3} ms", "time=# ms", outcome.out) == printed


def test_events_are_printed_with_a_tab_until_there_were_enough(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Entry 17 is another client's."""
    script = [*recorded(15, 16), *recorded(18, 20)]
    outcome = tell(monkeypatch, capfd, lambda c: play(c, script), "event", "sub", "--count", "1", "my.")
    assert outcome == Outcome(0, 'my.x\t{"b":2}\n', "")


LOG = (
    "2026-11-20T18:12:16.078850Z broker.debug[0]: insmod config\n"
    "2026-11-20T18:12:16.079012Z broker.debug[0]: insmod connector-local\n"
    "2026-11-20T18:12:16.079141Z broker.debug[0]: insmod groups\n"
    "2026-11-20T18:12:16.079263Z broker.debug[0]: insmod rexec\n"
    "2026-11-20T18:12:16.079389Z broker.debug[0]: insmod overlay\n"
    "2026-11-20T18:12:16.081537Z connector-local.debug[0]: allow-guest-user=true\n"
    "2026-11-20T18:12:16.081550Z connector-local.debug[0]: allow-root-owner=false\n"
)


def log_to_the_end(c: Conversation) -> None:
    """Tell the lines that were recorded, and then the end, as a stream of responses is to have one."""
    request = c.hear()
    assert untagged(request) == untagged(frames_of(recorded(31, 31)[0]))
    for entry in recorded(32, 38):
        c.say(framed(tagged(frames_of(entry), request[-1][-4:])))
    c.reply(request, errnum=61, flags=0x40)


def test_log_is_printed_as_that_of_flux_core_does(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tell(monkeypatch, capfd, log_to_the_end, "dmesg") == Outcome(0, LOG, "")


def test_log_has_the_time_of_this_place(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", "XYZ-05:30")
    time.tzset()
    first = tell(monkeypatch, capfd, log_to_the_end, "dmesg").out.splitlines()[0]
    assert first == "2026-11-20T23:42:16.078850+05:30 broker.debug[0]: insmod config"


def test_log_for_people(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The first line of a minute has the minute, the others the seconds since then, or since the line before."""
    times = [line[:14] for line in tell(monkeypatch, capfd, log_to_the_end, "dmesg", "-H").out.splitlines()]
    assert times[:3] == ["[Nov20 18:12] ", "[  +0.000162] ", "[  +0.000291] "]
    times = [line[:14] for line in tell(monkeypatch, capfd, log_to_the_end, "dmesg", "-Hd").out.splitlines()]
    assert times[:3] == ["[Nov20 18:12] ", "[  +0.000162] ", "[  +0.000129] "]


def test_log_in_colour_has_the_same_words(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = tell(monkeypatch, capfd, log_to_the_end, "dmesg", "--color", "always").out
    assert printed.startswith("\x1b[32m2026-11-20T18:12:16.078850Z\x1b[0m \x1b[33mbroker.debug[0]\x1b[0m: ")
    assert re.sub("\x1b\\[\\d+m", "", printed) == LOG


def test_log_for_programs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    first = tell(monkeypatch, capfd, log_to_the_end, "dmesg", "--json").out.splitlines()[0]
    assert json.loads(first) == {
        "time": "2026-11-20T18:12:16.078850Z",
        "severity": "debug",
        "rank": "0",
        "app": "broker",
        "process": "11042",
        "text": "insmod config",
    }


def test_tree_for_programs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    told = json.loads(
        tell(monkeypatch, capfd, lambda c: play(c, recorded(21, 30)), "overlay", "status", "--json").out
    )
    below = told["children"][0]
    assert (told["rank"], told["status"], told["duration"]) == (0, "full", 12.165979009000001)
    assert (below["rank"], below["host"], below["duration"]) == (1, "vm", 12.167843666000001)
    assert (below["children"][0]["rank"], below["children"][0]["asked_ms"]) == (2, None)
