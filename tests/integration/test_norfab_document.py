"""The first ten minutes of the user's guide, command by command as they stand there, with keys and all."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from specwire.runtime.cli import main as root
from tests.house.repository import ROOT

SPECWIRE = [sys.executable, "-m", "specwire"]


def section() -> str:
    """Return the first ten minutes."""
    guide = (ROOT / "docs/reference/norfab.md").read_text(encoding="utf-8")
    return guide.partition("## The first ten minutes\n")[2].partition("\n## ")[0]


def commands() -> list[list[str]]:
    """Return the words of its commands after `specwire`; whoever reads waits ten seconds, a test does not."""
    shown = re.findall(r"^\$ specwire (.*)$", section(), re.MULTILINE)
    return [["0.2" if word == "10" else word for word in shlex.split(line, comments=True)] for line in shown]


class Reader:
    """Does what is written, in a folder and with data of its own.

    The endpoint is another one: a port of the machine is not a test's to take.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.endpoint = f"ipc://{folder}/broker.sock"

    def words(self, words: list[str]) -> list[str]:
        """Return the command with the endpoint."""
        if words[1] == "broker":
            return [*SPECWIRE, *words, "--endpoint", self.endpoint, "--no-status"]
        return [*SPECWIRE, *words, *([] if "history" in words else ["--broker", self.endpoint])]

    def call(self, words: list[str]) -> tuple[int, str]:
        """Call a command that ends, in this process; return its status and output."""
        with pytest.raises(SystemExit) as end:
            root.main(self.words(words)[len(SPECWIRE) :])
        code = end.value.code
        return code if isinstance(code, int) else 0, self._capsys.readouterr().out

    @contextmanager
    def running(self, words: list[str], until: str) -> Iterator[None]:
        """Have a command that does not end; it has begun when its log holds `until`."""
        process = subprocess.Popen(self.words(words), cwd=self.folder, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            log = []
            for line in process.stderr:
                log.append(line)
                if until in line:
                    break
            else:
                raise AssertionError(f"{words} has ended: {''.join(log)}")
            yield
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_the_first_ten_minutes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command does what the text says."""
    told = iter(commands())
    with TemporaryDirectory(prefix="nf-") as folder, ExitStack() as running:
        reader = Reader(Path(folder), capsys)
        monkeypatch.setenv("XDG_DATA_HOME", folder)
        [plugin] = re.findall(r"```python\n(.*?)```", section(), re.DOTALL)
        (reader.folder / "fleet.py").write_text(plugin, encoding="utf-8")
        running.enter_context(reader.running(next(told), "listening on"))
        running.enter_context(reader.running(next(told), "registered"))
        running.enter_context(reader.running(next(told), "registered"))

        status, out = reader.call(next(told))
        assert status == 0 and [line.split()[0] for line in out.splitlines()] == ["name", "leaf-1", "leaf-2"]
        status, out = reader.call(next(told))
        assert status == 0 and "Return the version that the devices run." in out
        status, out = reader.call(next(told))
        assert status == 0 and sorted(out.splitlines()[1:]) == [
            "leaf-1\tdone\t15.2(4)M",
            "leaf-2\tdone\t15.2(4)M",
        ]
        status, out = reader.call(next(told))
        assert (status, out.splitlines()[1:]) == (0, ["leaf-1\tdone\t15.2(4)M"])

        status, out = reader.call(next(told))
        assert status == 1 and "leaf-1\tfailed\tConnectionError: no route to 10.0.0.1\n" in out

        status, uuid = reader.call(next(told))
        assert status == 0
        status, out = reader.call(next(told))
        assert status == 0 and out.splitlines()[1].startswith(f"{uuid.strip()}\t")
        status, out = reader.call([*next(told)[:-1], uuid.strip()])
        assert status == 0 and "leaf-2\tdone\t15.2(4)M" in out
    assert next(told, None) is None, "a command of the guide that is not tried"
