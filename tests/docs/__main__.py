"""Run the commands of pages: ``python -m tests.docs docs/reference/filemq.md …``.

Where the system lets users have namespaces, a page has a network of its own, so the ports that it names are free,
nothing outside can be reached, and hosts that pages name are this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import NamedTemporaryFile

from tests.docs.session import PageError, run_page

UNSHARED = "--unshared"
HOSTS = ("localhost", "a", "b", "c", "files.example", "broker")
"""Hosts that pages name."""
_UNSHARE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)
"""Processes are numbered anew, so that all of them end when the first one does, however it ends."""
_SET_UP = 'ip link set lo up && mount --bind "$0" /etc/hosts && rm "$0" && exec "$@"'


@cache
def can_unshare() -> bool:
    """Whether this user may have namespaces, and set up what is in them."""
    if which("unshare") is None or which("ip") is None:
        return False
    return subprocess.run(unshared(["true"]), capture_output=True, check=False).returncode == 0


def unshared(words: list[str]) -> list[str]:
    """Return the words that run a command with a network, hosts and processes of its own, once."""
    with NamedTemporaryFile("w", prefix="hosts-", delete=False) as hosts:
        hosts.write(f"127.0.0.1 {' '.join(HOSTS)}\n")
    return [*_UNSHARE, "sh", "-c", _SET_UP, hosts.name, *words]


def main(arguments: list[str]) -> int:
    """Run pages one after the other; return 1 where one does not hold."""
    if UNSHARED not in arguments and can_unshare():
        words = unshared([sys.executable, "-m", "tests.docs", UNSHARED, *arguments])
        os.execvp(words[0], words)  # whoever ends this process ends everything
    failed = 0
    for name in arguments:
        if name == UNSHARED:
            continue
        try:
            print(f"{name}: {run_page(Path(name))} commands")
        except PageError as error:
            failed = 1
            print(error)
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
