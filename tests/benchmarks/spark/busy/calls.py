"""A Flux broker and its children."""

from __future__ import annotations

import numpy as np

from specwire.generated import flux
from tests.benchmarks.spark.busy.forms import FIRST
from tests.benchmarks.spark.busy.scene import Scene

SLOW = (
    ("kvs.lookup", 30, 180), ("kvs.commit", 9, 4200), ("kvs-watch.lookup", 8, 260), ("content.load", 12, 95),
    ("content.store", 5, 700), ("broker.ping", 4, 60), ("job-manager.submit", 3, 9000), ("job-info.lookup", 6, 800),
    ("job-list.list", 2, 45_000), ("sched.alloc", 2, 120_000), ("job-exec.start", 1, 650_000),
    ("job-archive.query-by-user-and-time-range", 0.3, 3_400_000), ("resource.acquire", 0.5, 30_000),
    ("barrier.enter", 1, 400_000), ("attr.get", 5, 40), ("log.append", 8, 70), ("overlay.topology", 0.3, 2500),
    ("heaptrace.dump", 0.02, 8_000_000), ("config.get", 2, 55), ("groups.update", 2, 130), ("state-machine.wait", 0.2, 20_000_000),
    ("rexec.exec", 1, 1_500_000), ("job-ingest.getinfo", 0.5, 300), ("job-ingest.submit", 1.5, 2200), ("cron.list", 0.1, 500),
    ("module.list", 0.1, 420), ("service.add", 0.1, 210), ("disconnect.watch", 0.05, 60_000_000),
)  # fmt: skip
"""Topics of Flux: how often, relatively, and the median of microseconds until the answer."""


def play_broker(number: int, messages: int, span_us: int) -> Scene:
    """A broker and its children: calls, the pulse, signs of life; one child asks three tenths of everything."""
    peers = [f"0f38f44e-8d4a-4a3d-8d0{number}-{child:012x}" for child in range(120)]
    talks = [(f"5a6b7c8{number}-{peer}", peer) for peer in peers]
    scene = Scene(talks, "CS", np.random.default_rng(number), span_us)
    chance, make = scene.chance, scene.forms.number
    pulses = min(messages // 4, len(talks) * (span_us // 2_000_000))
    calls = (messages - pulses) // 2
    at, talk = scene.moments(calls), scene.chosen(calls, [51, *([1.0] * (len(talks) - 1))])
    topic = scene.chosen(calls, [weight for _, weight, _ in SLOW])
    fate = scene.chosen(calls, [0.985, 0.012, 0.003])  # answered, failed, never answered
    took = np.array([median for *_, median in SLOW])[topic] * np.exp(chance.normal(0, 0.55, calls))
    payloads = [chance.bytes(size) for size in (24, 40, 120, 300)]
    size = scene.chosen(calls, [4, 3, 2, 1])
    asked = [[make(_request(name, payload)) for payload in payloads] for name, *_ in SLOW]
    answered = [[make(_response(name, payloads[2], errnum)) for errnum in (0, 22)] for name, *_ in SLOW]
    tags = np.arange(1, calls + 1)
    scene.say(at, talk, "C", np.array(asked)[topic, size], tags)
    back = fate < 2
    scene.say(
        (at + took)[back], talk[back], "S", np.array(answered)[topic, np.minimum(fate, 1)][back], tags[back]
    )
    _pulse(scene, pulses)
    greeting = make(_request("overlay.hello", payloads[0]))
    new = np.flatnonzero(np.arange(len(talks)) % 9)  # the ninths were there before the tap
    scene.say(new * 10, new, "C", greeting, 2**31 + new)
    _break_rules(scene, calls)
    _fall_silent(scene, number)
    return scene


def _request(topic: str, payload: bytes) -> flux.Request:
    return flux.Request((), topic, payload, 0, 1000, 5, 0, FIRST)


def _response(topic: str, payload: bytes, errnum: int) -> flux.Response:
    return flux.Response((), topic, payload, 0, 1000, 5, errnum, FIRST)


def _pulse(scene: Scene, count: int) -> None:
    """Every two seconds an event for each child; one in ten thousand is lost."""
    rounds = count // len(scene.talks)
    event = flux.Event(None, "heartbeat.pulse", None, 0, 0, 1, FIRST)
    form = scene.forms.number(event)
    ticks, child = (part.ravel() for part in np.indices((rounds, len(scene.talks))))
    kept = scene.chance.random(len(ticks)) > 0.0001
    period = scene.span_us // max(1, rounds)
    scene.say((ticks * period + child * 11)[kept], child[kept], "S", form, ticks[kept] + 1)


def _break_rules(scene: Scene, calls: int) -> None:
    """Answers that nobody asked for, and messages that do not decode."""
    count = max(3, calls // 40_000)
    make, talks = scene.forms.number, len(scene.talks)
    nobody = make(_response("kvs.lookup", b"{}", 0))
    whole = _request("kvs.lookup", b'{"key":"a"}').encode()
    faults = (
        [*whole[:-1], whole[-1][:19]],
        [*whole[:-1], b"\x8f" + whole[-1][1:]],
        [*whole[:-1], whole[-1][:2] + b"\x03" + whole[-1][3:]],
    )
    tags = 2**30 + np.arange(count)
    scene.say(scene.moments(count), scene.chosen(count, [1.0] * talks), "S", nobody, tags)
    for number, frames in enumerate(faults):
        form = make(frames)
        few = max(1, count >> number)
        scene.say(scene.moments(few), scene.chosen(few, [1.0] * talks), "C", form)


def _fall_silent(scene: Scene, number: int) -> None:
    """Some children stop, for a while or for good."""
    span = scene.span_us
    for child in range(3, len(scene.talks), 7):
        begin = int(span * scene.chance.random())
        end = span if child % 2 else begin + int(span * 0.15 * scene.chance.random())
        scene.silence(child, begin, end)
