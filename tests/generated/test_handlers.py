"""Handlers: a side's messages as methods, called by `dispatch_to_…`, and missed by the type checker when absent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from specwire.generator.packages import package_files
from specwire.generator.pipeline import compile_protocol
from tests.generated.type_checker import check

GRAMMAR = """\
door  = C:KNOCK *( C:ASK S:TELL / visit )
visit = C:ENTER
KNOCK = %x01
ASK   = %x02
TELL  = %x03
ENTER = %x04
"""
PROFILE = """\
name = "door"

[roles.C]
name = "caller"
socket = "DEALER"

[roles.S]
name = "porter"
socket = "ROUTER"

[[dialogs]]
name = "door"
rule = "door"
roles = ["C", "S"]
"""
ENGINE = '''\
"""A porter as somebody wrote it for the first edition."""

from __future__ import annotations

from door import AnyMessage, Ask, Enter, Knock, machine


class Inherits(machine.PorterHandler[float, list[str]]):
    """Says that it is a porter."""

    def on_knock(self, message: Knock, now: float) -> list[str]:
        return []

    def on_ask(self, message: Ask, now: float) -> list[str]:
        return [message.NAME]

    def on_enter(self, message: Enter, now: float) -> list[str]:
        return [f"entered at {now}"]


class Resembles:
    """Has what a porter has, and says nothing of it."""

    def on_knock(self, message: Knock, now: float, /) -> list[str]:
        return []

    def on_ask(self, message: Ask, now: float, /) -> list[str]:
        return []

    def on_enter(self, message: Enter, now: float, /) -> list[str]:
        return []


def take(message: AnyMessage, now: float) -> list[str]:
    return machine.dispatch_to_porter(Inherits(), message, now)


def take_too(message: AnyMessage, now: float) -> list[str]:
    return machine.dispatch_to_porter(Resembles(), message, now)
'''


def check_types(folder: Path, grammar: str) -> str:
    """Generate the package of `grammar` beside the engine; return what mypy says of the engine."""
    source = folder / "grammars" / "door"
    source.mkdir(parents=True, exist_ok=True)
    (source / "grammar.abnf").write_text(grammar, encoding="utf-8")
    (source / "profile.toml").write_text(PROFILE, encoding="utf-8")
    for name, text in package_files([compile_protocol(source).protocol]).items():
        path = folder / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    engine = folder / "code" / "engine.py"
    engine.write_text(ENGINE, encoding="utf-8")
    return check(engine)


@pytest.mark.slow
def test_added_message_is_missed_in_every_engine(tmp_path: Path) -> None:
    """After a regeneration the type checker names each class that lacks the new method, and the method."""
    assert check_types(tmp_path, GRAMMAR).startswith("Success")
    added = GRAMMAR.replace("visit = C:ENTER\n", "visit = C:ENTER / C:LEAVE\n") + "LEAVE = %x05\n"
    told = check_types(tmp_path, added)
    assert 'Cannot instantiate abstract class "Inherits" with abstract attribute "on_leave"' in told
    assert '"Resembles" is missing following "PorterHandler" protocol member:' in told
    assert "on_leave" in told.partition('"Resembles" is missing')[2]


class Writes:
    """Takes every method of a handler, and writes down which was called with what."""

    def __getattr__(self, name: str) -> Any:
        return lambda message, context: (name, message, context)


@pytest.mark.parametrize(
    ("name", "fields", "method"),
    [
        ("Ohai", {}, "on_ohai"),
        ("Icanhaz", {"path": "/"}, "on_icanhaz"),
        ("Nom", {"credit": 1}, "on_nom"),
        ("Hugz", {}, "on_hugz"),
        ("HugzOk", {}, "on_hugz_ok"),
        ("Kthxbai", {}, "on_kthxbai"),
    ],
)
def test_each_message_goes_to_its_method(filemq: Any, name: str, fields: dict[str, Any], method: str) -> None:
    handler: Any = Writes()
    message = filemq.MESSAGES[name](**fields)
    assert filemq.machine.dispatch_to_server(handler, message, 1.5) == (method, message, 1.5)


@pytest.mark.parametrize("name", ["OhaiOk", "Cheezburger"])
def test_message_that_a_side_never_gets_is_refused_at_once(filemq: Any, name: str) -> None:
    handler: Any = Writes()
    messages = filemq.OhaiOk(), filemq.Cheezburger(0, 1, "/", 0, (), b"")
    (message,) = (message for message in messages if type(message).__name__ == name)
    with pytest.raises(TypeError, match=f"^dialog peering has no such message for the server: {name}$"):
        filemq.machine.dispatch_to_server(handler, message, 0.0)


def test_handler_that_lacks_a_method_cannot_be_made(filemq: Any) -> None:
    """At run time as well: a method that is missing is no silent None later."""

    class Deaf(filemq.machine.ServerHandler):  # type: ignore[misc]
        def on_ohai(self, message: object, context: None) -> None:
            return None

    with pytest.raises(TypeError, match="on_hugz"):
        Deaf()


def methods(handler: type) -> list[str]:
    return [name for name in vars(handler) if name.startswith("on_")]


def test_handlers_are_named_after_who_receives(
    filemq: Any, flux: Any, libfilemq: Any, norfab: Any, zre: Any
) -> None:
    """One for each role; for each dialog of a role that speaks in several; one for both of a symmetric dialog."""
    assert methods(filemq.machine.ClientHandler) == [
        "on_ohai_ok", "on_icanhaz_ok", "on_cheezburger", "on_hugz", "on_hugz_ok", "on_kthxbai", "on_srsly", "on_rtfm",
        "on_wat",
    ]  # fmt: skip
    assert methods(flux.machine.RpcHandler) == ["on_request", "on_response", "on_event", "on_control"]
    assert methods(norfab.machine.BrokerWorkerHandler) == [
        "on_open", "on_ready", "on_keepalive", "on_disconnect", "on_response_worker", "on_event_worker",
    ]  # fmt: skip
    assert methods(norfab.machine.BrokerClientHandler) == [
        "on_open", "on_post_client", "on_get_client", "on_delete_client", "on_mmi_client",
    ]  # fmt: skip
    assert methods(norfab.machine.ClientHandler)[0] == "on_open"
    assert "on_wat" not in methods(libfilemq.machine.ClientHandler)
    assert len(methods(zre.machine.ReceiverHandler)) == 7
    assert not hasattr(zre.machine, "PeerHandler"), "nobody sends to a peer over its own connection"


def test_names_that_mean_something_else_are_no_trouble(tmp_path: Path) -> None:
    """Messages called like what the module has, a role whose name is no name, a dialog called like a role."""
    source = tmp_path / "odd"
    source.mkdir()
    names = ("session", "protocol", "codec", "class", "any-message", "result-co", "import", "literal")
    rules = "".join(f"{name} = %x0{number}\n" for number, name in enumerate(names))
    whole = (
        "odd = *( A:session B:protocol / A:codec / B:class / A:any-message B:result-co / A:import B:literal )"
    )
    (source / "grammar.abnf").write_text(f"{whole}\n{rules}", encoding="utf-8")
    profile = (
        'name = "odd"\n[roles.A]\nname = "1/2"\nsocket = "PAIR"\n[roles.B]\nname = "odd"\nsocket = "PAIR"\n'
    )
    dialog = '[[dialogs]]\nname = "odd"\nrule = "odd"\nroles = ["A", "B"]\n'
    symmetric = dialog.replace('"odd"', '"both"', 1) + "symmetric = true\n"
    (source / "profile.toml").write_text(profile + dialog + symmetric, encoding="utf-8")
    text = package_files([compile_protocol(source).protocol])["odd/machine.py"]
    found = re.findall(r"^(?:class|def) (\w+Handler|dispatch_to_\w+)", text, re.MULTILINE)
    assert found == [
        "AOddHandler", "dispatch_to_a_odd", "OddOddHandler", "dispatch_to_odd_odd", "BothHandler", "dispatch_to_both",
    ]  # fmt: skip
    compile(text, "machine.py", "exec")
