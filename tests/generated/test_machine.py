"""The generated machine watches conversations: what is normal passes, what is not is a `Violation`."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruff import find_ruff_bin

from specwire.generated.dialog import Dialog, Phase, step
from specwire.generated.errors import Violation
from specwire.generated.monitors import Memory
from specwire.generator.ir.names import class_name
from tests.generated.machines import SETTINGS, machine, source_of, watch


def peering(reading: str = "concurrent") -> Any:
    return machine("filemq").Session("S", reading)


OPENED = "C:OHAI S:OHAI-OK "

BOTH = [
    "C:OHAI S:OHAI-OK",
    "C:OHAI S:SRSLY",
    OPENED + "C:ICANHAZ S:ICANHAZ-OK C:NOM S:CHEEZBURGER S:CHEEZBURGER C:KTHXBAI",
    OPENED + "C:ICANHAZ S:SRSLY",
    OPENED + "C:HUGZ S:HUGZ-OK S:HUGZ C:HUGZ-OK S:KTHXBAI",
]
ONLY_CONCURRENT = [
    OPENED + "C:ICANHAZ C:NOM S:ICANHAZ-OK",
    OPENED + "C:ICANHAZ C:ICANHAZ S:ICANHAZ-OK S:ICANHAZ-OK",
    OPENED + "C:HUGZ S:CHEEZBURGER S:HUGZ-OK",
    OPENED + "C:HUGZ S:HUGZ C:HUGZ-OK S:HUGZ-OK",
    OPENED + "C:HUGZ S:HUGZ S:HUGZ-OK C:HUGZ-OK",
    OPENED + "C:NOM S:RTFM",
    OPENED + "C:ICANHAZ C:KTHXBAI",
    OPENED + "S:WAT",
]
ONLY_STRICT = [
    "C:OHAI S:SRSLY C:NOM",
    OPENED + "C:ICANHAZ S:RTFM C:NOM",
]
NEITHER = [
    "C:NOM",
    "S:OHAI-OK",
    "S:SRSLY",
    "C:KTHXBAI",
    "S:CHEEZBURGER",
    "C:OHAI C:OHAI",
    "C:OHAI C:ICANHAZ",
    OPENED + "S:ICANHAZ-OK",
    OPENED + "C:ICANHAZ S:ICANHAZ-OK S:ICANHAZ-OK",
    OPENED + "C:HUGZ C:HUGZ-OK",
    OPENED + "S:HUGZ-OK",
    OPENED + "S:NOM",
    OPENED + "C:CHEEZBURGER",
    OPENED + "C:OHAI",
    OPENED + "C:KTHXBAI C:NOM",
    OPENED + "S:KTHXBAI S:CHEEZBURGER",
    OPENED + "C:KTHXBAI S:KTHXBAI",
    OPENED + "B:NOM",
]


@pytest.mark.parametrize("trace", BOTH + ONLY_CONCURRENT)
def test_concurrent_reading_accepts(trace: str) -> None:
    assert watch(peering(), trace) == []


@pytest.mark.parametrize("trace", ONLY_STRICT + NEITHER)
def test_concurrent_reading_refuses_the_last(trace: str) -> None:
    session = peering()
    (violation,) = watch(session, trace)
    assert f"{violation.role}:{violation.message}" == _label(trace.split()[-1])
    assert violation.state == session.state


@pytest.mark.parametrize("trace", BOTH + ONLY_STRICT)
def test_strict_reading_accepts(trace: str) -> None:
    assert watch(peering("strict"), trace) == []


@pytest.mark.parametrize("trace", ONLY_CONCURRENT + NEITHER)
def test_strict_reading_refuses(trace: str) -> None:
    assert watch(peering("strict"), trace)


def _label(word: str) -> str:
    sender, _, name = word.partition(":")
    return f"{sender}:{class_name(name)}"


def test_violation_says_whose_fault_it_is_and_what_was_in_order() -> None:
    (violation,) = watch(peering(), "C:OHAI C:NOM")
    assert violation == Violation(
        role="C",
        message="Nom",
        state="C_OHAI",
        expected=("S:OhaiOk", "S:Srsly", "S:Rtfm", "S:Wat"),
        rule="filemq-protocol",
    )
    assert str(violation) == (
        "C:Nom in state C_OHAI: expected S:OhaiOk, S:Srsly, S:Rtfm, S:Wat [filemq-protocol]"
    )


def test_violation_changes_nothing_and_the_session_goes_on() -> None:
    session = peering()
    assert len(watch(session, "C:NOM C:OHAI C:NOM S:OHAI-OK S:HUGZ-OK C:NOM")) == 3
    assert session.state == "USE"


@pytest.mark.parametrize("before", ["", OPENED + "C:KTHXBAI "])
def test_error_may_answer_a_violation_where_none_is_in_order(before: str) -> None:
    """FILEMQ answers anything before OHAI with RTFM: the client is at fault, not the server."""
    session = peering()
    (violation,) = watch(session, before + "C:NOM S:RTFM")
    assert violation.role == "C"
    assert session.closed
    assert watch(session, "S:RTFM"), "one violation deserves one answer"


def test_error_may_answer_what_did_not_decode() -> None:
    session = peering()
    session.malformed("C")
    assert watch(session, "S:WAT") == []
    assert session.closed


def test_error_of_the_side_at_fault_is_no_answer() -> None:
    session = peering()
    session.malformed("S")
    assert watch(session, "S:WAT")
    assert not session.closed


def test_state_and_closed_follow_the_lifecycle() -> None:
    session = peering()
    seen = []
    for label in (OPENED + "C:HUGZ C:KTHXBAI").split():
        watch(session, label)
        seen.append((session.state, session.closed))
    assert seen == [("C_OHAI", False), ("USE", False), ("USE", False), ("CLOSED", True)]
    assert session.expected() == ()


@pytest.mark.parametrize("reading", ["strict", "concurrent"])
def test_expected_lists_what_is_in_order(reading: str) -> None:
    """Whatever is listed is accepted, whatever is not is refused, in every state that a trace visits."""
    everything = {f"{sender}:{name}" for name in _class_names() for sender in "CS"}
    for trace in BOTH:
        session = peering(reading)
        for word in trace.split():
            expected = session.expected()
            accepted = {label for label in everything if not watch(session.copy(), label)}
            assert set(expected) == accepted
            assert len(expected) == len(accepted)
            watch(session, word)


def _class_names() -> set[str]:
    labels = (label for row in machine("filemq").PEERING.strict.values() for label in row)
    return {label.partition(":")[2] for label in labels}


def test_may_send_is_what_the_watching_side_may_send() -> None:
    session = peering()
    watch(session, OPENED + "C:HUGZ")
    assert session.may_send() == ("Kthxbai", "Srsly", "Rtfm", "Wat", "HugzOk", "Cheezburger", "Hugz")


def test_waiting_counts_requests_without_reply() -> None:
    session = peering()
    watch(session, OPENED + "C:ICANHAZ C:ICANHAZ S:HUGZ S:ICANHAZ-OK")
    assert session.waiting() == {"C_ICANHAZ": 1, "S_HUGZ": 1}
    assert peering("strict").waiting() == {}


@pytest.mark.parametrize("reading", ["strict", "concurrent"])
def test_copy_goes_on_by_itself(reading: str) -> None:
    session = peering(reading)
    watch(session, OPENED + "C:HUGZ")
    twin = session.copy()
    assert type(twin) is type(session)
    assert watch(twin, "S:HUGZ-OK C:KTHXBAI") == []
    assert (session.closed, twin.closed) == (False, True)
    assert watch(session, "S:HUGZ-OK") == []


def test_session_crosses_process_borders() -> None:
    session = peering()
    watch(session, OPENED + "C:HUGZ")
    assert watch(pickle.loads(pickle.dumps(session)), "S:HUGZ-OK S:HUGZ-OK") != []


def test_role_has_to_be_of_the_dialog() -> None:
    with pytest.raises(ValueError, match="'client' has the roles C, B, not 'W'"):
        machine("norfab").Session("W")


def test_reading_has_to_be_known() -> None:
    with pytest.raises(ValueError, match="'strict' or 'concurrent'"):
        machine("filemq").Session("C", "loose")


def rpc(**options: Any) -> Any:
    return machine("flux").Session("C", **options)


def test_reply_pairs_with_its_request_by_key() -> None:
    session = rpc()
    assert watch(session, "C:REQUEST", matchtag=7) == []
    assert watch(session, "C:REQUEST", matchtag=8) == []
    assert watch(session, "S:RESPONSE S:RESPONSE", matchtag=7) == [], "a stream has many responses"
    (violation,) = watch(session, "S:RESPONSE", matchtag=9)
    assert "S:Response" not in violation.expected
    assert watch(session, "S:RESPONSE", matchtag=8) == []


def test_key_belongs_to_the_side_that_chose_it() -> None:
    """Either side may start: matchtag 7 of the client is not matchtag 7 of the server."""
    session = rpc()
    assert watch(session, "S:REQUEST", matchtag=7) == []
    assert watch(session, "S:RESPONSE", matchtag=7) != []
    assert watch(session, "C:RESPONSE", matchtag=7) == []


def test_message_without_a_key_is_not_paired() -> None:
    session = rpc()
    assert watch(session, "C:REQUEST S:RESPONSE", matchtag=0) == []
    assert session.waiting() == {}


def test_request_that_wants_no_reply_opens_no_exchange() -> None:
    session = rpc()
    assert watch(session, "C:REQUEST", matchtag=7, flags=4 | 1) == []
    assert watch(session, "S:RESPONSE", matchtag=7) != []


def test_exchange_repeats_for_ever() -> None:
    strict = rpc(reading="strict")
    assert watch(strict, "C:REQUEST S:RESPONSE S:RESPONSE S:EVENT C:REQUEST C:CONTROL S:EVENT") == []
    assert watch(strict, "S:RESPONSE") != []
    assert watch(rpc(), "S:EVENT C:REQUEST S:EVENT S:RESPONSE C:CONTROL S:CONTROL C:EVENT") == []


def test_open_keys_are_bounded_and_the_most_silent_is_forgotten() -> None:
    session = rpc(open_limit=2)
    for tag in (1, 2):
        watch(session, "C:REQUEST", matchtag=tag)
    watch(session, "S:RESPONSE", matchtag=1)
    watch(session, "C:REQUEST", matchtag=3)
    assert session.waiting() == {"C_REQUEST": 2}
    assert watch(session, "S:RESPONSE", matchtag=2) != []
    assert watch(session, "S:RESPONSE", matchtag=1) == []
    assert watch(session, "S:RESPONSE", matchtag=3) == []


def test_exchange_of_several_steps_keeps_its_key() -> None:
    session = machine("steps").Session("C")
    assert watch(session, "C:ASK", tag=1) == []
    assert watch(session, "C:ASK C:ASK", tag=2) == []
    assert watch(session, "S:WAIT", tag=2) == []
    assert watch(session, "S:TELL", tag=1) != [], "1 was not told to wait"
    assert watch(session, "S:TELL S:WAIT S:TELL", tag=2) == []
    assert watch(session, "S:TELL", tag=2) != []
    assert session.waiting() == {"C_ASK": 1}


def test_norfab_client() -> None:
    session = machine("norfab").Session("C")
    assert watch(session, "C:POST B:RESPONSE B:RESPONSE C:GET B:RESPONSE B:EVENT", uuid="a") == []
    assert watch(session, "B:RESPONSE", uuid="b") != []
    assert watch(session, "C:OPEN") != [], "OPEN comes first or not at all"
    assert watch(machine("norfab").Session("C"), "C:OPEN C:POST B:OPEN B:RESPONSE") == []
    assert watch(machine("norfab").Session("C"), "B:OPEN") != []


def test_norfab_worker() -> None:
    def worker() -> Any:
        return machine("norfab").Session("B", dialog="worker")

    opened = "W:OPEN W:READY B:OPEN "
    assert watch(worker(), opened + "B:POST W:KEEPALIVE B:KEEPALIVE W:RESPONSE B:DISCONNECT") == []
    assert watch(worker(), "W:READY B:GET B:POST W:RESPONSE W:RESPONSE W:DISCONNECT") == []
    assert watch(worker(), "B:POST") != []
    assert watch(worker(), "W:READY W:DISCONNECT W:RESPONSE") != []


def test_step_is_the_strict_table() -> None:
    dialog = machine("filemq").PEERING
    assert step(dialog, "START", "C:Ohai") == "C_OHAI"
    assert step(dialog, "START", "C:Nom") is None


@pytest.mark.parametrize("protocol", ["filemq", "flux", "norfab", "steps"])
def test_every_row_of_the_tables_is_visited(protocol: str) -> None:
    """Every state and phase is reached from the start, and every entry leads to one that exists."""
    dialogs: dict[str, Dialog] = machine(protocol).DIALOGS
    for dialog in dialogs.values():
        phases = {name: _targets(phase) for name, phase in dialog.phases.items()}
        strict = {name: set(row.values()) for name, row in dialog.strict.items()}
        for table in (phases, strict):
            first = next(iter(table))
            reached = {first}
            for _ in table:
                reached |= {target for name in reached for target in table[name]}
            assert reached == set(table)
        places = {place for phase in dialog.phases.values() for _, place in phase.starts.values() if place}
        for _ in dialog.replies:
            taken = [take for takes in dialog.replies.values() for take in takes]
            places |= {then for place, then in taken if place in places and then}
        assert places == {place for takes in dialog.replies.values() for place, _ in takes}


def _targets(phase: Phase) -> set[str]:
    return {*phase.moves.values(), *(target for target, _ in phase.starts.values())}


def test_module_says_roles_and_timers() -> None:
    module = machine("filemq")
    assert module.TIMERS == {"heartbeat": 1.0}
    assert module.ROLES == {"C": "client", "S": "S"}
    assert module.DEFAULT == "peering"
    assert machine("norfab").DEFAULT == "client"


def test_protocol_without_dialog_has_no_session() -> None:
    module = machine("silent")
    assert (module.TIMERS, module.ROLES) == ({}, {"C": "client"})
    assert not hasattr(module, "Session")


def test_packages_have_the_tables_that_the_traces_were_shown_to(filemq: Any, flux: Any) -> None:
    """The traces above are about FILEMQ v2 and Flux as they are committed."""
    assert filemq.machine.PEERING == machine("filemq").PEERING
    written = machine("flux").RPC
    assert msgspec.structs.replace(written, rule="flux-dialog") == flux.machine.RPC


def test_cmb1_pairs_by_matchtag_and_repeats(cmb1: Any) -> None:
    """CMB1's dialog is one exchange without an end; many responses have the matchtag of one request."""
    session = cmb1.machine.Session("C")
    request = cmb1.Request(topic="a.b", matchtag=7)
    assert session.send(request) is None
    assert session.send(request.replace(matchtag=8)) is None
    for matchtag in (8, 7, 7):
        assert session.receive(cmb1.Response(topic="a.b", matchtag=matchtag)) is None
    violation = session.receive(cmb1.Response(topic="a.b", matchtag=9))
    assert violation is not None and (violation.role, violation.message) == ("S", "Response")
    assert session.send(request.replace(matchtag=9, flags=4)) is None, "nobody shall answer this one"
    assert session.receive(cmb1.Response(topic="a.b", matchtag=9)) is not None
    assert session.waiting() == {"C_REQUEST": 2}


@pytest.mark.parametrize("protocol", SETTINGS)
def test_source_is_as_a_careful_colleague_writes_it(protocol: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.py"
    path.write_text(source_of(protocol), encoding="utf-8")
    settings = "line-length = 110\nlint.extend-select = ['I', 'UP', 'B', 'RUF', 'SIM']\n"
    config = tmp_path / "ruff.toml"
    config.write_text(settings + "lint.isort.known-first-party = ['specwire']\n", encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        run = subprocess.run(
            [find_ruff_bin(), *command, "--config", config, "--no-cache", path],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("reading", ["strict", "concurrent"])
@pytest.mark.parametrize("conversation", [*BOTH, "C:NOM", OPENED + "C:ICANHAZ C:ICANHAZ S:ICANHAZ-OK"])
def test_memory_goes_on_where_it_was(reading: str, conversation: str) -> None:
    """A session that recalls, through octets, what another knew finds the rest as that one does."""
    package = machine("filemq")
    labels = conversation.split()
    for at in range(len(labels) + 1):
        before, after = package.Session("S", reading), package.Session("S", reading)
        watch(before, " ".join(labels[:at]))
        stored = msgspec.msgpack.encode(before.memory())
        after.recall(msgspec.msgpack.decode(stored, type=Memory))
        assert (after.state, after.waiting(), after.closed) == (before.state, before.waiting(), before.closed)
        assert watch(after, " ".join(labels[at:])) == watch(before, " ".join(labels[at:]))
        assert after.memory() == before.memory()


def test_memory_of_another_dialog_is_refused() -> None:
    """Its states are not those of this one."""
    with pytest.raises(ValueError, match="has no state 'USED'"):
        peering().recall(Memory("USED"))
