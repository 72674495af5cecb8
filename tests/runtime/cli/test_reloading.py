"""SIGHUP: what can change changes, what cannot is named, and a fault changes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.cli.config_option import configure
from specwire.runtime.cli.norfab_limits import names_of_limits, read_settings
from specwire.runtime.cli.readiness import VARIABLE, Readiness
from specwire.runtime.cli.rekeying import Rekeying
from specwire.runtime.cli.reloading import Apply, Reloading
from specwire.runtime.kernel.settings_sources import Found
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyFileError, KeyPair


class Server:
    """What a server would have been told, and its log."""

    def __init__(self, file: Path, *, fixed: tuple[str, ...] = ()) -> None:
        self.file = file
        self.lines: list[str] = []
        self.taken: dict[str, object] = {}
        self.rereads = 0
        made = configure("filemq.serve", file)
        appliers = {
            each.parameter: self._take(each.parameter) for each in made.section.settings if each.reload
        }
        self.reloading = Reloading(
            msgspec.structs.replace(made, fixed=dict.fromkeys(fixed, Found(1))),
            self.lines.append,
            appliers={**appliers, "plain": self._refuse},
            rereads=[self._reread],
        )

    def reload(self, text: str) -> list[str]:
        """Write the file anew, reload, and return what was told."""
        self.file.write_text(text, encoding="utf-8")
        self.lines.clear()
        self.reloading.reload()
        return self.lines

    def _take(self, name: str) -> Apply:
        def take(value: object) -> None:
            self.taken[name] = value

        return take

    def _refuse(self, value: object) -> str:
        raise ValueError("no")

    def _reread(self) -> None:
        self.rereads += 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "specwire.toml"
    made.write_text('[filemq.serve]\nfolders = ["a"]\nquiet = true\nreport-every = 9\n', encoding="utf-8")
    return made


def test_a_default_that_is_written_down_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "specwire.toml"
    file.write_text("[norfab.broker]\n", encoding="utf-8")
    configured = configure("norfab.broker", file)
    file.write_text('[norfab.broker]\ndurability = "process"\nkeepalive = 2.5\n', encoding="utf-8")
    assert configured.read_again({}) == {}


def test_what_changes_is_told_once(file: Path) -> None:
    server = Server(file)
    text = '[filemq.serve]\nfolders = ["a"]\nquiet = true\nreport-every = 5\n'
    again = f"the configuration was read again: {file}"
    assert server.reload(text) == [again, "report-every is 5.0 from now on"]
    assert server.taken == {"report_every": 5.0}
    assert server.reload(text) == [again]
    assert server.rereads == 2


def test_what_is_set_no_more_has_its_default(file: Path) -> None:
    server = Server(file)
    told = server.reload("[filemq.serve]\n")
    assert told[1:] == [
        "quiet is false from now on",
        "report-every is 600 from now on",
        "what else has changed holds from the next start on: folders",
    ]
    assert server.taken == {"quiet": False, "report_every": 600}


def test_what_the_command_line_said_stays(file: Path) -> None:
    server = Server(file, fixed=("report-every",))
    assert len(server.reload('[filemq.serve]\nfolders = ["a"]\nquiet = true\nreport-every = 1\n')) == 1
    assert server.taken == {}


def test_the_environment_holds_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECWIRE_FILEMQ_SERVE_REPORT_EVERY", "7")
    server = Server(file)
    assert len(server.reload('[filemq.serve]\nfolders = ["a"]\nquiet = true\nreport-every = 1\n')) == 1


def test_a_fault_changes_nothing_and_other_files_are_read_all_the_same(file: Path) -> None:
    server = Server(file)
    (line,) = server.reload("[filemq.serve]\nquiet = false\nreport-evry = 1\n")
    assert line.startswith(
        f"the configuration stays as it was: {file}:3: filemq.serve.report-evry: unknown setting"
    )
    assert server.taken == {} and server.rereads == 1
    told = server.reload('[filemq.serve]\nfolders = ["a"]\nquiet = false\nreport-every = 9\n')
    assert told[1:] == ["quiet is false from now on"], "compared with what held, not with what was refused"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('plain = "none"', "6: filemq.serve.plain: {tmp}/none cannot be read: No such file or directory"),
        (
            'no-digests = true\ndigests = "d"',
            "1: filemq.serve: digests and no-digests exclude each other",
        ),
    ],
    ids=["refused", "together"],
)
def test_values_that_a_server_would_refuse_change_nothing(file: Path, line: str, reason: str) -> None:
    """The folder `a` does not exist, but is no change."""
    server = Server(file)
    text = f'[filemq.serve]\nfolders = ["a"]\nquiet = false\nreport-every = 9\n\n{line}\n'
    place = f"{file}:{reason.replace('{tmp}', str(file.parent))}"
    assert server.reload(text) == [f"the configuration stays as it was: {place}"]
    assert server.taken == {} and server.rereads == 1
    told = server.reload('[filemq.serve]\nfolders = ["a"]\nquiet = false\nreport-every = 9\n')
    assert told[1:] == ["quiet is false from now on"]


def test_what_a_server_refuses_is_told(file: Path) -> None:
    server = Server(file)
    passwords = file.with_name("x")
    passwords.write_text('[ada]\npassword = "secret"\npaths = ["/"]\n')
    passwords.chmod(0o600)
    told = server.reload('[filemq.serve]\nfolders = ["a"]\nquiet = true\nreport-every = 9\nplain = "x"\n')
    assert told[1:] == ["plain stays as it was: no"]


def test_a_wish_that_comes_early_is_fulfilled_when_the_server_runs(file: Path) -> None:
    server = Server(file)
    for _ in range(2):
        server.reloading._hang_up()
    assert server.rereads == 0
    server.reloading.begin()
    assert server.rereads == 1


def test_sighup_is_listened_to_only_where_there_is_something_to_read(file: Path) -> None:
    async def story() -> None:
        server = Server(file)
        server.reloading.listen()
        try:
            server.reloading.begin()
            os.kill(os.getpid(), signal.SIGHUP)
            while not server.rereads:
                await asyncio.sleep(0)
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        Reloading(configure("norfab.broker", None), print, appliers={}).listen()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    asyncio.run(asyncio.wait_for(story(), 60))


# --- keys


def test_keys_are_changed_where_they_are_others() -> None:
    one, two, bad = (KeyPair(name * 40, name * 40) for name in "abc")
    state = {"keys": one}
    lines: list[str] = []
    taken: list[KeyPair] = []

    def load() -> KeyPair:
        if state["keys"] is bad:
            raise KeyFileError("no key")
        return state["keys"]

    async def change(keys: KeyPair) -> None:
        if taken:
            raise TransportError("no way")
        taken.append(keys)

    async def story() -> None:
        rekeying = Rekeying(load, one, change, lines.append)
        rekeying.reread()
        assert not rekeying._work, "the same keys are left alone"
        for keys in (bad, two, one, one):
            state["keys"] = keys
            rekeying.reread()
            await asyncio.gather(*rekeying._work)

    asyncio.run(story())
    assert taken == [two]
    assert lines == [
        "the keys stay as they were: no key",
        f"the server proves itself by other keys now; who connects has to expect {two.public}",
        "the keys stay as they were: no way",
        "the keys stay as they were: no way",
    ], "a change that failed is tried again"


# --- a broker's limits


def test_limits_in_place_of_the_brokers_own() -> None:
    settings = read_settings(["queue_s=0.5", "jobs=7"], keepalive_s=1.0)
    assert (settings.queue_s, settings.jobs, settings.keepalive_s) == (0.5, 7, 1.0)
    assert settings.job_s == Settings().job_s
    assert "keepalive_s" not in names_of_limits()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("queu_s=1", "--limit queu_s=1: there is no limit 'queu_s'; did you mean 'queue_s'?"),
        ("keepalive_s=1", "there is no limit 'keepalive_s'"),
        ("jobs=1.5", "--limit jobs=1.5: a whole number is wanted after jobs="),
        ("jobs", "--limit jobs: a whole number is wanted after jobs="),
        ("queue_s=long", "--limit queue_s=long: a number is wanted after queue_s="),
        ("queue_s=nan", "--limit queue_s=nan: a number above 0 is wanted"),
        ("queue_s=inf", "--limit queue_s=inf: a number above 0 is wanted"),
        ("jobs=0", "--limit jobs=0: a number above 0 is wanted"),
    ],
)
def test_a_limit_that_cannot_be_used(word: str, reason: str) -> None:
    with pytest.raises(ValueError, match="--limit") as caught:
        read_settings([word], keepalive_s=1.0)
    assert reason in str(caught.value)


# --- readiness


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    name = f"specwire-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if abstract else name)
        manager.settimeout(60)
        environment = {VARIABLE: f"@{name}" if abstract else name}
        ready = Readiness(environment)
        assert environment == {}, "children have no part in it"
        ready.tell()
        assert manager.recv(100) == b"READY=1"


def test_nobody_to_tell() -> None:
    Readiness({}).tell()
    Readiness({VARIABLE: "/nowhere/at/all"}).tell()


def test_every_limit_is_in_the_documentation_with_its_default() -> None:
    rows = (Path(__file__).parents[3] / "docs/how-to/operating.md").read_text(encoding="utf-8").splitlines()
    told = {row.split("|")[1].strip(" `"): row.split("|")[2].strip() for row in rows if row.startswith("| `")}
    for name in names_of_limits():
        assert float(told[name].replace(",", "")) == getattr(Settings(), name), name
