"""A command that only asks a broker does not wait for what brokers need."""

from __future__ import annotations

import subprocess
import sys


def test_commands_are_there_without_brokers_and_sockets() -> None:
    """ZeroMQ and the broker come with the commands that run one."""
    script = (
        "import sys, specwire.runtime.cli.flux;"
        "print({'zmq', 'specwire.runtime.flux.serve', 'specwire.runtime.flux.broker', 'rich.table'} & set(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "set()"
