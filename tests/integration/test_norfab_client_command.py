"""`specwire norfab client` and `show`, as whoever operates a broker calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.cli import main as root
from specwire.runtime.norfab.security.keyring import Keyring
from tests.integration.norfab_serving import Serving


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A broker with two workers and a file."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "files").mkdir()
    (folder / "files" / "greeting.txt").write_text("hello\n")
    with Serving(folder / "b", ("w1", "w2"), files=folder / "files") as serving:
        yield serving


class Terminal:
    """Calls commands against a broker, with a folder of its own."""

    def __init__(self, serving: Serving, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.endpoint, self.folder, self._capsys = serving.endpoint, folder, capsys

    def client(self, command: str, *words: str) -> tuple[int, str, str]:
        """Call a command of the client; return its status, output and errors."""
        return self.call(
            "client", command, *words, "--insecure", "--broker", self.endpoint, "--folder", str(self.folder)
        )

    def show(self, what: str, *words: str) -> tuple[int, str, str]:
        """Look at the broker."""
        return self.call("show", what, *words, "--insecure", "--broker", self.endpoint)

    def call(self, *words: str) -> tuple[int, str, str]:
        """Call any command."""
        with pytest.raises(SystemExit) as end:
            root.main(["norfab", *words])
        printed = self._capsys.readouterr()
        code = end.value.code
        return code if isinstance(code, int) else 0, printed.out, printed.err


@pytest.fixture
def terminal(serving: Serving, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A person at work."""
    return Terminal(serving, tmp_path / "client", capsys)


def test_a_job_that_is_done(terminal: Terminal) -> None:
    """Whole values in columns for a program; progress apart from them."""
    status, out, err = terminal.client("run", "svc", "add", "1", "text", "--kwargs", '{"c": [1]}')
    assert (status, sorted(out.splitlines())) == (0, ["w1\tdone\t5", "w2\tdone\t5", "worker\tstate\tresult"])
    assert "of 2 workers have answered" in err


def test_a_job_that_fails(terminal: Terminal) -> None:
    """The exit status tells, and a sentence says why."""
    status, out, err = terminal.client("run", "svc", "fail", "--target", "w2", "--quiet")
    assert (status, out) == (1, "worker\tstate\tresult\nw2\tfailed\tno route to 10.0.0.1\n")
    assert err.startswith("specwire: fail of svc (") and err.endswith(
        "has failed: w2: no route to 10.0.0.1\n"
    )


def test_a_job_as_json(terminal: Terminal) -> None:
    """All that is known of it, whether it has failed or not."""
    status, out, _ = terminal.client("run", "svc", "add", "--target", "any", "--json")
    said = json.loads(out)
    assert status == 0 and said["state"] == "COMPLETED"
    assert [part["result"] for part in said["results"].values()] == [5]
    status, out, _ = terminal.client("run", "svc", "fail", "--json")
    assert status == 1 and json.loads(out)["results"]["w1"]["errors"] == ["no route to 10.0.0.1"]


def test_a_job_that_is_collected_later(terminal: Terminal) -> None:
    """Submitted, listed, collected, deleted."""
    status, out, _ = terminal.client("submit", "svc", "add")
    uuid = out.strip()
    assert status == 0 and len(uuid) == 32
    status, out, _ = terminal.client("collect", uuid)
    assert status == 0 and "w1\tdone\t5" in out
    status, out, _ = terminal.call("client", "history", "--folder", str(terminal.folder), "--json")
    assert status == 0 and [(one["uuid"], one["state"]) for one in json.loads(out)] == [(uuid, "COMPLETED")]
    status, out, _ = terminal.call("client", "history", "--folder", str(terminal.folder))
    assert uuid in out and "\tsvc\tadd\tall\tCOMPLETED\t" in out
    assert terminal.client("delete", uuid) == (0, "", "")
    status, _, err = terminal.client("collect", uuid)
    assert status == 2 and "name its service" in err
    assert terminal.call("client", "history", "--folder", str(terminal.folder))[1] == ""


def test_a_job_of_somebody_else(terminal: Terminal) -> None:
    """Any client that knows uuid and service gets the result."""
    uuid = terminal.client("submit", "svc", "add")[1].strip()
    other = [*("--insecure", "--broker", terminal.endpoint), "--folder", str(terminal.folder / "other")]
    status, out, _ = terminal.call("client", "collect", uuid, "--service", "svc", *other)
    assert status == 0 and "w2\tdone\t5" in out


def test_a_job_that_takes_too_long(terminal: Terminal) -> None:
    """What there is, which worker is waited for, and how to go on."""
    uuid = json.loads(terminal.client("submit", "svc", "wait", "--target", "w1", "--json")[1])["uuid"]
    status, out, err = terminal.client("collect", uuid, "--timeout", "0.5")
    assert status == 1 and out == "worker\tstate\tresult\nw1\tno answer\t\n"
    assert "no answer of w1" in err and f"go on with: specwire norfab client collect {uuid}" in err
    assert terminal.client("delete", uuid)[0] == 0


def test_a_file(terminal: Terminal, tmp_path: Path) -> None:
    """Fetched to where it is wanted; a failure is a sentence."""
    place = tmp_path / "here.txt"
    words = ("--insecure", "--broker", terminal.endpoint)
    status, out, err = terminal.call("client", "fetch", "nf://greeting.txt", str(place), *words)
    assert (status, out, place.read_text()) == (0, f"{place}\n", "hello\n"), err
    status, out, _ = terminal.call("client", "fetch", "nf://greeting.txt", str(place), "--json", *words)
    assert status == 0 and set(json.loads(out)) == {"file"}
    status, out, err = terminal.call("client", "fetch", "nf://none.txt", str(place), *words)
    assert (status, out) == (1, "") and "none.txt" in err


def test_the_broker_is_looked_at(terminal: Terminal) -> None:
    """Tables for people and programs."""
    status, out, _ = terminal.show("workers", "--service", "svc")
    heads, *rows = [line.split("\t") for line in out.splitlines()]
    assert status == 0 and heads[:3] == ["name", "service", "status"]
    assert sorted(row[:3] for row in rows) == [["w1", "svc", "alive"], ["w2", "svc", "alive"]]
    assert {row["name"] for row in json.loads(terminal.show("workers", "--service", "svc", "--json")[1])} == {
        "w1",
        "w2",
    }
    assert "no worker is registered" in terminal.show("workers", "--service", "other")[2]
    assert "\nsvc\tw1 w2\t" in terminal.show("services")[1]
    assert "status\tactive\n" in terminal.show("broker")[1]
    assert json.loads(terminal.show("broker", "--json")[1])["workers count"] >= 2
    assert terminal.show("clients")[1].startswith("name\tuser\tjobs\t")
    assert "no worker manages anything" in terminal.show("resources")[2]
    uuid = terminal.client("submit", "svc", "wait", "--target", "w2")[1].strip()
    assert uuid in terminal.show("jobs")[1]
    assert terminal.client("delete", uuid)[0] == 0
    assert uuid not in terminal.show("jobs")[1]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("client", "run", "svc", "add", "--kwargs", "[1]", "--insecure"), 2, "--kwargs is no JSON object"),
        (("client", "run", "svc", "add", "--target", "a b", "--insecure"), 2, "--target: a worker cannot be"),
        (("client", "run", "", "add", "--insecure"), 2, "a service has a name"),
        (("client", "run", "svc", "add", "--insecure", "--broker", "tcp://x"), 2, "names no port"),
        (("client", "run", "svc", "add", "--keys", "none"), 2, "specwire norfab keys"),
        (("client", "collect", "nobody-knows", "--insecure"), 2, "name its service"),
        (("show", "jobs", "--state", "odd"), 2, "open, ended or all"),
        (("show", "broker", "--insecure", "--timeout", "0.5", "--broker", "ipc://none.sock"), 1, "no answer"),
        (
            (
                "client",
                "submit",
                "svc",
                "add",
                "--timeout",
                "0.5",
                "--insecure",
                "--broker",
                "ipc://none.sock",
            ),
            1,
            "no broker has taken it",
        ),
    ],
)
def test_what_goes_wrong_is_a_sentence(
    words: tuple[str, ...],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 2 for what the user can mend, 1 for what has failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path))
    with pytest.raises(SystemExit) as end:
        root.main(["norfab", *words])
    printed = capsys.readouterr()
    assert end.value.code == status
    assert said in printed.err and printed.err.splitlines()[-1].startswith("specwire: ")


def test_refusals_are_told(terminal: Terminal, tmp_path: Path) -> None:
    """With keys: a client may give jobs, and not look at the broker; the sentence is the broker's."""
    ring = Keyring(tmp_path / "keys")
    ring.prepare()
    with Serving(tmp_path / "b", (), security=ring.server(), access=ring.table()) as locked:
        words = ("--broker", locked.endpoint, "--keys", str(tmp_path / "keys"))
        assert terminal.call("show", "broker", *words)[0] == 0
        status, _, err = terminal.call("show", "broker", "--as", "client", *words)
        assert status in (0, 1)
        status, _, err = terminal.call("client", "run", "svc", "add", "--as", "worker", *words)
        assert status == 1 and "may not call" in err


def test_an_interrupt_loses_nothing(terminal: Terminal) -> None:
    """Ctrl-C says how to go on; what goes on is the same job."""
    words = ["client", "run", "svc", "wait", "--target", "w1", "--insecure", "--broker", terminal.endpoint]
    command = [sys.executable, "-m", "specwire", "norfab", *words, "--folder", str(terminal.folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "0 of 1 workers" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    uuid = err.strip().rpartition(" ")[2]
    assert f"go on with: specwire norfab client collect {uuid}" in err
    status, out, _ = terminal.client("collect", uuid, "--timeout", "0.3")
    assert status == 1 and "w1\tno answer" in out
    assert terminal.client("delete", uuid)[0] == 0
