"""`specwire config`, and `--config` of the servers: what holds before what, and faults with their lines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.cli.config_faults import describe_faults
from specwire.runtime.cli.config_sections import SECTIONS, load_section
from specwire.runtime.cli.config_units import UNIT, unit_of
from specwire.runtime.cli.console import output
from specwire.runtime.cli.main import load_command
from specwire.runtime.cli.norfab_worker_options import WorkerOptions
from specwire.runtime.kernel.settings_sources import ConfigurationError, read_found
from tests.runtime.cli.commands import Outcome, specwire

UNITS = Path(__file__).parents[3] / "docs" / "systemd"


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SPECWIRE_")]:
        monkeypatch.delenv(name)


def write(folder: Path, text: str) -> str:
    file = folder / "specwire.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


# --- what holds before what, shown by a command that says what it was told


@pytest.fixture
def worker(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> tuple[list[list[str]], pytest.CaptureFixture[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: calls.append(arguments))
    return calls, capfd


def options_of(worker: tuple[list[list[str]], pytest.CaptureFixture[str]], *arguments: str) -> WorkerOptions:
    calls, capfd = worker
    ended = specwire(capfd, "norfab", "worker", *arguments)
    assert ended.status == 0, ended.err
    return msgspec.json.decode(calls.pop()[-1], type=WorkerOptions)


WORKER = """
[norfab.worker]
service = "svc"
plugin = "m:C"
name = "of-the-file"
broker = ["tcp://a:1", "tcp://b:2"]
concurrency = 3
grace = 2.5
keys = "keys"
as = "me"
durability = "full"
quiet = true

[filemq.serve]
folders = 3   # not this server's, and so not its fault
"""


def test_option_before_environment_before_file_before_default(
    worker: tuple[list[list[str]], pytest.CaptureFixture[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = write(tmp_path, WORKER)
    monkeypatch.setenv("SPECWIRE_NORFAB_WORKER_NAME", "of-the-environment")
    monkeypatch.setenv("SPECWIRE_NORFAB_WORKER_CONCURRENCY", "4")
    monkeypatch.setenv("SPECWIRE_NORFAB_WORKER_JOB_TIMEOUT", "20")
    told = options_of(worker, "--name", "of-the-line", "--config", file, "--as", "you")
    assert (told.name, told.user) == ("of-the-line", "you")
    assert (told.concurrency, told.job_timeout) == (4, 20.0)
    assert (told.service, told.grace, told.durability, told.quiet) == ("svc", 2.5, "full", True)
    assert told.brokers == ("tcp://a:1", "tcp://b:2")
    assert told.keys == f"{tmp_path}/keys", "a path in a file begins at the file"
    assert (told.drain, told.protocol, told.insecure) == (None, "norfab_ascii", False)
    assert told.config == file


def test_a_variable_names_the_file(
    worker: tuple[list[list[str]], pytest.CaptureFixture[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SPECWIRE_CONFIG", write(tmp_path, WORKER))
    assert options_of(worker).name == "of-the-file"


def test_without_file_and_variables_nothing_changes(
    worker: tuple[list[list[str]], pytest.CaptureFixture[str]],
) -> None:
    told = options_of(worker, "--service", "s", "--plugin", "m:C", "--name", "w")
    assert (told.config, told.command, told.concurrency) == (None, (), 1)


def test_a_server_does_not_start_with_a_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, '[filemq.serve]\nfolders = ["."]\n\nreport-evry = 1\n')
    ended = specwire(capfd, "filemq", "serve", "--config", file)
    assert ended == Outcome(
        2,
        "",
        f"specwire: {file}:4: filemq.serve.report-evry: unknown setting; did you mean 'report-every'?\n",
    )


def test_a_value_that_is_none_is_told_with_its_line_unless_the_command_line_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, '[filemq.serve]\nfolders = ["none"]\n\nendpoint = "tcp://127.0.0.1"\n')
    ended = specwire(capfd, "filemq", "serve", "--config", file, str(tmp_path))
    told = "filemq.serve.endpoint: 'tcp://127.0.0.1' names no port: tcp://HOST:PORT is wanted"
    assert ended == Outcome(2, "", f"specwire: {file}:4: {told}\n"), (
        "the folder of the file was not asked for"
    )
    monkeypatch.setenv("SPECWIRE_FILEMQ_SERVE_ENDPOINT", "tcp://*")
    ended = specwire(capfd, "filemq", "serve", "--config", file, str(tmp_path))
    assert ended.err.startswith("specwire: SPECWIRE_FILEMQ_SERVE_ENDPOINT: 'tcp://*' names no")


def test_help_does_not_read_a_configuration(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECWIRE_CONFIG", "/nowhere")
    for name in SECTIONS:
        shown = specwire(capfd, *name.split("."), "--help")
        assert shown.status == 0 and "--config" in shown.out


# --- specwire config check


def test_check_says_what_a_file_sets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    file = write(tmp_path, '[norfab.broker]\nkeepalive = 1\n[filemq.serve]\nfolders = ["a"]\n')
    assert specwire(capfd, "config", "check", file) == Outcome(
        0, f"{file} sets filemq.serve, norfab.broker\n", ""
    )
    shown = specwire(capfd, "config", "check", file, "--json")
    assert json.loads(shown.out) == {
        "file": file,
        "sections": ["filemq.serve", "norfab.broker"],
        "faults": [],
    }
    empty = write(tmp_path, "# nothing\n")
    assert specwire(capfd, "config", "check", empty).out.endswith(
        "sets nothing: every server runs with its defaults\n"
    )


FAULTY = """\
# A comment, and a string over lines
[filemq.serve]
folders = [
  "a",
]
"report-every" = -1
capture.keep = 7

[norfb.broker]
keepalive = 1

[flux.broker]
rank = 0
size = 0
"""


def test_check_names_line_and_key_of_every_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Lines counted by hand."""
    (tmp_path / "a").mkdir()
    file = write(tmp_path, FAULTY)
    wanted = [
        f"{file}:6: filemq.serve.report-every: expected a number of at least 0, not -1",
        f"{file}:7: filemq.serve.capture.keep: expected text, not 7",
        f"{file}:9: norfb: unknown table; did you mean 'norfab'?",
        f"{file}:14: flux.broker.size: expected a whole number of at least 1, not 0",
    ]
    shown = specwire(capfd, "config", "check", file, "--json")
    assert shown.status == 2 and json.loads(shown.out)["faults"] == wanted
    ended = specwire(capfd, "config", "check", file)
    assert ended.status == 2
    assert [line.removeprefix("specwire:").strip() for line in ended.err.splitlines()] == wanted


def test_check_of_what_is_no_toml(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "[filemq.serve]\nfolders = \n")
    ended = specwire(capfd, "config", "check", file)
    assert ended.status == 2
    assert re.fullmatch(rf"specwire: {file}: it is not TOML: .*line 2.*\n", ended.err)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("filemq.serve.quit = 1\n", 1),
        ("\n\nfilemq = {serve = {quiet = true, quit = 1}}\n", 3),
        ("[filemq]\nserve.quiet = true\nserve.quit = 1\n", 3),
        ("[filemq.serve]\r\nquiet = true\r\n\r\nquit = 1\r\n", 4),
        ("[filemq . 'serve']\n\"qui\\u0074\" = 1\n", 2),
        ('[filemq.serve]\nendpoint = """\nquit = 1\n"""\nquit = 1\n', 5),
        ("[filemq.serve]\nfolders = [ # quit = 1\n 'quit = 1', # ]\n]\nquit = 1", 5),
    ],
    ids=["dotted", "inline", "half dotted", "CRLF", "quoted", "text over lines", "list over lines"],
)
def test_the_line_of_a_key_however_it_is_written(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "specwire.toml"
    file.write_bytes(text.encode())
    with pytest.raises(ConfigurationError) as caught:
        read_found(load_section("filemq.serve"), SECTIONS, file, {})
    (told,) = describe_faults(caught.value)
    assert told == f"{file}:{line}: filemq.serve.quit: unknown setting; did you mean 'quiet'?"


@pytest.mark.parametrize(
    "text",
    [
        "[[filemq]]\n",
        "[[filemq.serve]]\nquit = 1\n",
        "filemq = [[[[1]]]]\n",
        "'' = 1\n",
        "filemq.'' = 1\n",
        "filemq.serve.'\\x1b' = 1\n",
        'filemq.serve."\\u001b[31m" = 1\n',
        f"filemq.serve.{'x' * 5000} = 1\n",
        "filemq.serve.folders = [{a = 1}]\n",
        "filemq.serve = {}\n[flux]\nstart = [1, {b = []}]\n",
    ],
)
def test_odd_files_have_faults_that_can_be_shown(tmp_path: Path, text: str) -> None:
    file = Path(write(tmp_path, text))
    with pytest.raises(ConfigurationError) as caught:
        read_found(load_section("filemq.serve"), SECTIONS, file, {})
    for told in describe_faults(caught.value):
        assert told.startswith(f"{file}:") and told.isprintable()


def test_a_configuration_in_a_pipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"[filemq.serve]\nquit = 1\n")
    os.close(writer)
    ended = specwire(capfd, "config", "check", f"/dev/fd/{reader}")
    os.close(reader)
    assert ended.status == 2 and "filemq.serve.quit: unknown setting" in ended.err


OLD = """\
[filemq.serve]
folders = ["a"]
endpoint = "tcp://127.0.0.1:5670"
protocol = "filemq"
capture = "captures"
capture-keep = "7d"
capture-max = "20G"
capture-payload = "hash"
capture-free = "1G"
insecure = false
accept-empty = false
settle = 1
message-octets = 1000
undelivered-octets = 1000
digests = "digests"
no-digests = false
report-every = 60
quiet = true
json = true
status = false
metrics = "9464"
metrics-anywhere = true
log-format = "json"

[filemq.subscribe]
server = "tcp://127.0.0.1:5670"
paths = ["/"]
inbox = "in"
protocol = "libfilemq"
capture = "captures"
capture-keep = "7d"
user = "ada"
origin = "tcp://old:5670"
check = false
delete-share = 1
delete-files = 3
accept-deletions = true
trash-days = 0
check-every = 5
report-every = 0
metrics = "localhost:0"
"""


def test_a_file_of_an_earlier_version_has_the_same_meaning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As `config example` of version 0.1 wrote it."""
    (tmp_path / "a").mkdir()
    file = write(tmp_path, OLD)
    assert specwire(capfd, "config", "check", file).status == 0
    serve, subscribe = json.loads(specwire(capfd, "config", "show", "--config", file, "--json").out)
    values = {row["key"]: row["value"] for row in serve["settings"] if row["from"] == file}
    assert values["capture.folder"] == f"{tmp_path}/captures"
    assert (values["capture.keep"], values["capture.payload"]) == ("7d", "hash")
    assert (values["metrics.address"], values["metrics.anywhere"]) == ("9464", True)
    assert len(values) == OLD.partition("\n\n")[0].count(" = ")
    values = {row["key"]: row["value"] for row in subscribe["settings"] if row["from"] == file}
    assert (values["check"], values["delete-share"], values["trash-days"]) == (False, 1.0, 0.0)


REFUSED = """\
[filemq.serve]
folders = ["nowhere"]
endpoint = "tcp://127.0.0.1"
protocol = "filemqq"
curve = "me.key"
clients = "faulty.toml"
capture-keep = "7 moons"
capture = "faulty.toml"

[norfab.broker]
endpoint = ["tcp://127.0.0.1:1", "udp://a"]
limit = ["jobs=10", "job=10"]
[flux.broker]
timer = ["idle=soon"]
[filemq.subscribe]
server = "tcp://*:5670"
server-key = ["me.key", "no key"]
[bridge]
to = "tcp://127.0.0.1:*"
metrics = "here:there"
"""


def test_check_finds_what_a_server_would_refuse(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Values that are of the right kind and no values, and files that cannot be used; lines counted by hand."""
    specwire(capfd, "keys", "me", "--to", str(tmp_path))
    (tmp_path / "faulty.toml").write_text("[ada]\n")
    file = write(tmp_path, REFUSED)
    wanted = [
        "2: filemq.serve.folders: DIR/nowhere is not a folder",
        "3: filemq.serve.endpoint: 'tcp://127.0.0.1' names no port: tcp://HOST:PORT is wanted",
        "4: filemq.serve.protocol: …",
        "5: filemq.serve.curve: DIR/me.key holds a public key only: …",
        "6: filemq.serve.clients: DIR/faulty.toml: client 'ada': it needs key = \"...\"",
        "7: filemq.serve.capture-keep: …",
        "8: filemq.serve.capture: DIR/faulty.toml is not a folder",
        "11: norfab.broker.endpoint: 'udp://a' is no endpoint: tcp://HOST:PORT or ipc://PATH is wanted",
        "12: norfab.broker.limit: --limit job=10: there is no limit 'job'; did you mean …",
        "14: flux.broker.timer: --timer idle=soon: 'soon' is no number of seconds",
        "15: filemq.subscribe: curve (the client's secret key) and server-key go together: name both",
        "16: filemq.subscribe.server: 'tcp://*:5670' names no host to connect to",
        "17: filemq.subscribe.server-key: 'no key' is no public key: …",
        "19: bridge.to: 'tcp://127.0.0.1:*' names no port to connect to",
        "20: bridge.metrics: …",
    ]
    shown = specwire(capfd, "config", "check", file, "--json")
    assert shown.status == 2
    faults = [fault.removeprefix(f"{file}:") for fault in json.loads(shown.out)["faults"]]
    for fault, words in zip(faults, wanted, strict=True):
        pattern = ".*".join(map(re.escape, words.replace("DIR", str(tmp_path)).split("…")))
        assert re.fullmatch(pattern, fault), fault


def test_a_key_that_is_wrong_hides_no_value_that_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One of each in a section: no such key, of another kind, and a value that is none."""
    text = '[filemq.serve]\nfolder = "a"\nendpoint = 5\ncapture-keep = "sevendays"\nmetrics = "99999999"\n'
    ended = specwire(capfd, "config", "check", write(tmp_path, text), "--json")
    keys = [re.search(r":(\d+: filemq\.serve\.[a-z-]+)", told) for told in json.loads(ended.out)["faults"]]
    assert [key and key[1] for key in keys] == [
        "2: filemq.serve.folder",
        "3: filemq.serve.endpoint",
        "4: filemq.serve.capture-keep",
        "5: filemq.serve.metrics",
    ]


CONFLICTS = """\
[filemq.serve]
clients = "clients.toml"
[filemq.subscribe]
curve = "me.key_secret"
password-file = "word"
"""


def test_check_finds_conflicts_of_settings_also_without_required_ones(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    specwire(capfd, "keys", "me", "--to", str(tmp_path))
    (tmp_path / "clients.toml").write_text('[me]\nkey = "me.key"\npaths = ["/"]\n')
    (tmp_path / "word").write_text("secret\n")
    file = write(tmp_path, CONFLICTS)
    faults = json.loads(specwire(capfd, "config", "check", file, "--json").out)["faults"]
    assert faults == [
        f"{file}:1: filemq.serve: clients needs curve: without it no client can prove its name",
        f"{file}:3: filemq.subscribe: curve (the client's secret key) and server-key go together: name both",
    ]


def test_a_value_that_cannot_be_read_is_no_conflict(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`clients` needs `curve`, which is set."""
    specwire(capfd, "keys", "me", "--to", str(tmp_path))
    (tmp_path / "clients.toml").write_text('[me]\nkey = "me.key"\npaths = ["/"]\n')
    file = write(tmp_path, '[filemq.serve]\nclients = "clients.toml"\ncurve = 5\n')
    (fault,) = json.loads(specwire(capfd, "config", "check", file, "--json").out)["faults"]
    assert fault.startswith(f"{file}:3: filemq.serve.curve: expected a path")


# --- specwire config show


def test_show_says_where_values_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, '[filemq.serve]\nfolders = ["a[b]"]\nquiet = true\n')
    monkeypatch.setenv("SPECWIRE_FILEMQ_SERVE_QUIET", "false")
    shown = specwire(capfd, "config", "show", "--config", file, "--json")
    (section,) = json.loads(shown.out)
    rows = {row["key"]: (row["value"], row["from"]) for row in section["settings"]}
    assert section["section"] == "filemq.serve"
    assert rows["folders"] == ([f"{tmp_path}/a[b]"], file)
    assert rows["quiet"] == (False, "SPECWIRE_FILEMQ_SERVE_QUIET")
    assert rows["endpoint"] == ("tcp://127.0.0.1:5670", "default")
    monkeypatch.setenv("COLUMNS", "600")  # the name of this test's folder may be long
    output.cache_clear()
    table = specwire(capfd, "config", "show", "filemq.serve", "--config", file).out
    assert f"{tmp_path}/a[b]" in table, "what Rich takes for markup is shown"


def test_show_without_a_file_says_what_is_to_be_said(capfd: pytest.CaptureFixture[str]) -> None:
    (section,) = json.loads(specwire(capfd, "config", "show", "filemq.serve", "--json").out)
    rows = {row["key"]: row for row in section["settings"]}
    assert rows["folders"]["from"] == "(required)"
    assert rows["report-every"]["variable"] == "SPECWIRE_FILEMQ_SERVE_REPORT_EVERY"


def test_an_unknown_section(capfd: pytest.CaptureFixture[str]) -> None:
    for words in (("show",), ("example",), ("systemd",)):
        ended = specwire(capfd, "config", *words, "filemq.server")
        assert ended.status == 2 and "did you mean 'filemq.serve'?" in ended.err


# --- specwire config example


def test_the_example_can_be_used_as_it_is_and_with_everything_in_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = specwire(capfd, "config", "example").out
    checked = specwire(capfd, "config", "check", write(tmp_path, text))
    assert (checked.status, checked.err) == (0, "")
    assert specwire(capfd, "config", "show", "--config", write(tmp_path, text)).status == 0
    everything = re.sub(r"^#([a-z.-]+ = )", r"\1", text, flags=re.MULTILINE)
    assert specwire(capfd, "config", "show", "--config", write(tmp_path, everything)).status == 0
    tables = tomllib.loads(everything)
    for name in SECTIONS:
        table: Any = tables
        for word in name.split("."):
            table = table[word]
        keys = {
            f"{key}.{below}" if below else key
            for key, value in table.items()
            for below in (value if isinstance(value, dict) and value else [""])  # {} is a setting
        }
        assert keys == {setting.key for setting in load_section(name).settings}


@pytest.mark.parametrize("name", SECTIONS)
def test_keys_are_the_options_of_the_command(name: str) -> None:
    """As typer has them. Settings of a struct may do without, as ``--set`` sets them."""
    program, *words = name.split(".")
    command = load_command(program)
    for word in words:
        command = command.commands[word]
    parameters = [each for each in command.params if not getattr(each, "hidden", False)]
    options = {option for each in parameters for option in each.opts if option.startswith("--")}
    arguments = {each.name for each in parameters if not each.opts[0].startswith("-")}
    settings = load_section(name).settings
    with_option = {f"--{each.option}" for each in settings if not each.rare}
    missing = options - with_option
    assert missing <= {"--config", "--help", "--until-eof", "--test-size", "--set"}, (
        "test-size is an older name of size"
    )
    assert {each.option for each in settings if not each.rare} <= {opt[2:] for opt in options} | arguments
    assert load_section(name).struct or {each.parameter for each in settings} <= {
        each.name for each in parameters
    }
    assert all(setting.help for setting in settings)


# --- systemd


def test_units_are_what_the_command_writes(capfd: pytest.CaptureFixture[str]) -> None:
    """Those in the repository are for reading; nobody keeps them by hand."""
    for name in SECTIONS:
        (file,) = UNITS.glob(f"specwire-{name.replace('.', '-')}*.service")
        wanted = specwire(capfd, "config", "systemd", name, "--program", "/usr/bin/specwire").out
        assert file.read_text(encoding="utf-8") == wanted
        assert wanted.startswith(f"# {file.name}:")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    program = tmp_path / "specwire"
    program.symlink_to(sys.executable)
    files = []
    for name in SECTIONS:
        text = unit_of(name, Path("/etc/specwire/specwire.toml"), str(program))
        assert ("ExecReload=" in text) is (name != "pipeline.watch")
        file = tmp_path / text.partition(": ")[0].removeprefix("# ")
        file.write_text(text, encoding="utf-8")
        files.append(str(file))
    command = ["systemd-analyze", "verify", "--man=no", *files]
    judged = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "Failed to" in judged.stderr and "bus" in judged.stderr:
        pytest.skip(f"systemd-analyze cannot be used here: {judged.stderr.strip()}")
    assert (judged.returncode, judged.stderr) == (0, "")


def test_a_watch_is_told_to_stop_before_its_java_process() -> None:
    """systemd sends SIGTERM to all processes of a unit otherwise; other servers end with those that they have started."""
    for name in SECTIONS:
        unit = unit_of(name, Path("/etc/specwire/specwire.toml"), "/usr/bin/specwire")
        assert ("\nKillMode=mixed\n" in unit) is (name == "pipeline.watch")
        assert unit.count("\nTimeoutStopSec=") == 1


def test_a_unit_may_write_what_its_configuration_names(tmp_path: Path) -> None:
    file = Path(
        write(tmp_path, '[filemq.subscribe]\nserver = "tcp://h:1"\npaths = ["/"]\ninbox = "/srv/in"\n')
    )
    unit = unit_of("filemq.subscribe", file, "/usr/bin/specwire")
    assert "\nReadWritePaths=-/srv/in\n" in unit
    assert "ReadWritePaths" not in unit_of("filemq.serve", file, "/usr/bin/specwire")


def test_a_unit_names_no_path_that_systemd_reads_differently(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = specwire(capfd, "config", "systemd", "filemq.serve", "--config", "/etc/100%/a.toml")
    assert ended.status == 2 and "has a character that means something else in a unit" in ended.err
    assert UNIT.count("{file}") == 2


def test_a_unit_lets_libzmq_bind() -> None:
    """libzmq 4.3.5 asks for the interfaces by netlink when it binds, and aborts where it gets no such socket (strace
    -e inject=socket:error=EAFNOSUPPORT shows it)."""
    (families,) = (line for line in UNIT.splitlines() if line.startswith("RestrictAddressFamilies="))
    assert "AF_NETLINK" in families.split()[1:]
