"""A NORFAB broker, its clients and workers."""

from __future__ import annotations

import numpy as np

from specwire.generated import norfab
from specwire.generated.messages import Message
from tests.benchmarks.spark.busy.forms import FIRST
from tests.benchmarks.spark.busy.scene import Scene

SERVICES = ("netbox", "nornir", "agent", "workflow", "fastapi")


def play_jobs(number: int, messages: int, span_us: int) -> Scene:
    """Clients who post jobs to services of three workers each, one of whom is slow."""
    clients = [f"nfclient-{n:02}" for n in range(12)]
    workers = [f"{service}-worker-{n}" for service in SERVICES for n in range(3)]
    talks = [(f"5f000001-{role}-{name.encode().hex()}", name.encode().hex())
             for role, names in (("client", clients), ("worker", workers)) for name in names]  # fmt: skip
    scene = Scene(talks, "CBW", np.random.default_rng(number), span_us)
    make, chance = scene.forms.number, scene.chance
    for whom, name in enumerate(workers):
        scene.say(whom * 50, len(clients) + whom, "W", make(norfab.Ready(name.partition("-")[0])))
    jobs = messages // 7
    at, client, worker = (
        scene.moments(jobs),
        scene.chosen(jobs, range(1, 13)),
        scene.chosen(jobs, range(1, 16)),
    )
    wrong = chance.random(jobs) < 0.02
    took = np.where(worker % 3 == 2, 2_500_000, 120_000) * np.exp(chance.normal(0, 0.8, jobs))
    for asking, whom in ((c, w) for c in range(len(clients)) for w in range(len(workers))):
        mine = np.flatnonzero((client == asking) & (worker == whom))
        steps = _job(clients[asking], workers[whom])
        for step, (share, delay_us, sender, of_client, message) in enumerate(steps):
            form = make(message)
            rows = mine if step < 5 else mine[~wrong[mine]] if step < 7 else mine[wrong[mine]]
            talk = asking if of_client else len(clients) + whom
            scene.say((at + took * share)[rows] + delay_us, talk, sender, form, rows)
    alive = np.arange(1_000_000, span_us, 5_000_000)
    for whom, name in enumerate(workers):
        service = name.partition("-")[0]
        for header, sender in (("NFPW01", "W"), ("NFPB01", "B")):
            beat = norfab.Keepalive(header=header, service=service)
            scene.say(alive + whom, len(clients) + whom, sender, make(beat))
    return scene


Step = tuple[float, int, str, bool, Message]


def _job(client: str, worker: str) -> list[Step]:
    """Return a job's messages: after which share of its time and how many microseconds, who, on whose connection."""
    service, uuid = worker.partition("-")[0], f"{FIRST:08x}-0000-4000-8000-000000000000"
    address = client.encode()
    task = (
        b'{"task":"'
        + {"netbox": b"sync_device_facts", "nornir": b"cli"}.get(service, b"run")
        + b'","kwargs":{}}'
    )
    accepted = b'{"worker":"%s","status":"ACCEPTED"}' % worker.encode()
    sent = b'{"workers":["%s"],"status":"DISPATCHED"}' % worker.encode()
    began = b'{"worker":"%s","event_type":"progress"}' % worker.encode()
    done, failed = (
        b'{"%s":{"result":{},"failed":%s,"errors":[]}}' % (worker.encode(), text)
        for text in (b"false", b"true")
    )
    return [
        (0, 0, "C", True, norfab.PostClient(service, "any", uuid, task)),
        (0, 300, "B", True, norfab.ResponseClient(service, uuid, "202", sent)),
        (0, 500, "B", False, norfab.PostWorker(address, uuid, task)),
        (0, 900, "W", False, norfab.ResponseWorker(address, uuid, "201", accepted)),
        (0.3, 1000, "W", False, norfab.EventWorker(address, uuid, "200", began)),
        (1, 1000, "W", False, norfab.ResponseWorker(address, uuid, "200", done)),
        (1, 1200, "B", True, norfab.ResponseClient(service, uuid, "200", done)),
        (1, 1000, "W", False, norfab.ResponseWorker(address, uuid, "200", failed)),
        (1, 1200, "B", True, norfab.ResponseClient(service, uuid, "200", failed)),
    ]
