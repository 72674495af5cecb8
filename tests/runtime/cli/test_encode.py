"""`specwire encode`: fields to frames, as a person types them and as a program writes them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from specwire.runtime.packages import load_package, package_names
from tests.runtime.cli.commands import specwire

REQUEST = "''\n6b76732e676574\n7b7d\n8e01014bffffffff00000000ffffffff00000007\n"
"""Flux v1: delimiter, topic, payload; magic 8E, version 1, type 1, flags topic 1, payload 2, route 8, streaming 40; userid
unknown, rolemask 0, nodeid any, matchtag 7."""


def test_frames_in_hexadecimal_a_line_each(capfd: pytest.CaptureFixture[str]) -> None:
    fields = ("topic=kvs.get", "payload={}", "nodeid=any", "matchtag=0x7", "flags=streaming")
    outcome = specwire(capfd, "encode", "flux", "Request", *fields)
    assert (outcome.status, outcome.out, outcome.err) == (0, REQUEST, "")


def test_output_is_what_decode_takes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As a hex dump, and pasted behind it."""
    outcome = specwire(capfd, "encode", "flux", "request", "topic=kvs.get", "payload={}", "matchtag=7")
    file = tmp_path / "dump"
    file.write_text(outcome.out, encoding="ascii")
    of_dump = json.loads(specwire(capfd, "decode", "--json", "flux", str(file)).out)
    pasted = ["" if line == "''" else line for line in outcome.out.split()]
    of_frames = json.loads(specwire(capfd, "decode", "--json", "flux", *pasted).out)
    assert of_dump["fields"] == of_frames["fields"] and of_frames["fields"]["topic"] == "kvs.get"


@pytest.mark.parametrize(
    ("arguments", "frames"),
    [
        (("filemq", "NOM", "credit=1099511627776"), ["aaa3070000010000000000"]),
        (
            ("filemq", "Icanhaz", "path=/", "options=RESYNC=1"),
            ["aaa305012f01" + "08" + b"RESYNC=1".hex() + "00"],
        ),
        (
            ("filemq", "Icanhaz", "path=/", 'options:=[["RESYNC", "1"]]'),
            ["aaa305012f01" + "08" + b"RESYNC=1".hex() + "00"],
        ),
        (("norfab", "Open", "body=hex:00ff"), ["", b"NFPC01".hex(), "00", "00ff"]),
        (("norfab", "Open", "body=text:hex:"), ["", b"NFPC01".hex(), "00", b"hex:".hex()]),
        (("norfab", "Open", 'body:="00ff"'), ["", b"NFPC01".hex(), "00", "00ff"]),
    ],
)
def test_values(arguments: tuple[str, ...], frames: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "encode", "--json", *arguments)
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["frames"] == frames


def test_octets_of_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "octets").write_bytes(b"\x00\xfe")
    outcome = specwire(capfd, "encode", "norfab", "Open", f"body=@{tmp_path / 'octets'}")
    assert outcome.out.splitlines()[-1] == "00fe"


def test_enumeration_and_several_values(capfd: pytest.CaptureFixture[str]) -> None:
    fields = (
        "sequence=1",
        "operation=delete",
        "filename=/a",
        "offset=0",
        "chunk=",
        "headers=a=b",
        "headers=c=d=e",
    )
    outcome = specwire(capfd, "encode", "--json", "filemq", "Cheezburger", *fields)
    (head, chunk) = json.loads(outcome.out)["frames"]
    assert chunk == "" and bytes.fromhex(head).endswith(b"\x02\x03a=b\x05c=d=e")
    assert bytes.fromhex(head)[3:12] == (1).to_bytes(8, "big") + b"\x02"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "which message? specwire encode PROTOCOL MESSAGE"),
        (("filemk", "Nom"), "there is no protocol 'filemk'"),
        (("filemq", "Nomm"), "filemq has no message 'Nomm'; did you mean 'Nom'?"),
        (("filemq", "Nom"), "Nom needs credit; its fields are credit"),
        (("filemq", "Nom", "credits=1"), "Nom has no field 'credits'; did you mean 'credit'?"),
        (("filemq", "Nom", "credit"), "'credit' is no FIELD=VALUE; its fields are credit"),
        (("filemq", "Nom", "credit=1", "credit=2"), "credit is given twice"),
        (("filemq", "Nom", "credit=many"), "credit: 'many' is no integer"),
        (
            ("filemq", "Cheezburger", "operation=move"),
            "operation: 'move' is no integer, nor one of create, delete",
        ),
        (("filemq", "Nom", "credit=-1"), "NOM.credit: expected 0 to 18446744073709551615, found -1"),
        (("filemq", "Nom", "credit:=[1"), "credit: '[1' is not JSON"),
        (("filemq", "Nom", "credit:=null"), "NOM.credit: expected an integer, found None"),
        (("filemq", "Nom", 'credit:={"a": 1}'), "NOM.credit: expected an integer, found dict"),
        (("filemq", "Icanhaz", "options=a"), "options=a: expected NAME=VALUE"),
        (("norfab", "Open", "body=hex:0"), "body: '0' is not hexadecimal"),
        (("norfab", "Open", "body=@/nowhere"), "/nowhere: No such file or directory"),
    ],
)
def test_mistakes_are_told(
    arguments: tuple[str, ...], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = specwire(capfd, "encode", *arguments)
    assert outcome.status == 2 and outcome.out == "" and sentence in outcome.err


def input_of(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


@pytest.mark.parametrize("name", [name for name in package_names() if name != "zmtp"])
def test_what_decode_writes_is_what_encode_reads(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Examples by the generated strategies: the JSON of each gives its frames again."""
    package = load_package(name)
    file = tmp_path / "dump"

    @given(package.strategies.messages())
    @settings(max_examples=15, deadline=None, database=None)
    def holds(message: Any) -> None:
        frames = [frame.hex() for frame in message.encode()]
        decoded = specwire(capfd, "decode", "--json", name, *frames)
        assert decoded.status == 0, decoded.err
        file.write_text(decoded.out, encoding="utf-8")
        outcome = specwire(capfd, "encode", "--json", "--json-input", str(file))
        assert outcome.status == 0, outcome.err
        assert json.loads(outcome.out)["frames"] == frames

    holds()


@pytest.mark.parametrize("name", ["type", "type_"])
def test_a_field_is_known_by_the_name_of_the_grammar_and_of_python(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Flux v1's control: magic 8E, version 1, type 8, no flags; userid unknown, rolemask 0, type 3, status 0."""
    control = "8e010800ffffffff000000000000000300000000\n"
    input_of(monkeypatch, json.dumps({"protocol": "flux", "message": "Control", "fields": {name: 3}}))
    assert specwire(capfd, "encode", "--json-input", "-").out == control
    assert specwire(capfd, "encode", "flux", "Control", f"{name}=3").out == control


def test_several_messages_of_json(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Lines, indented objects, an array; rows that could not be decoded are passed over."""
    nom = {"protocol": "filemq", "message": "Nom", "fields": {"credit": 1}}
    bad = {"protocol": "filemq", "message": None, "fields": None, "error": {"text": "..."}}
    input_of(
        monkeypatch,
        f"{json.dumps(nom)}\n{json.dumps(bad)}\n{json.dumps(nom, indent=2)}\n[{json.dumps(nom)}]\n",
    )
    outcome = specwire(capfd, "encode", "--json-input", "-")
    assert outcome.out == "\n".join(["aaa3070000000000000001\n"] * 3)
    input_of(monkeypatch, json.dumps({"fields": {"credit": 1}}))
    outcome = specwire(capfd, "encode", "filemq", "Nom", "credit=2", "--json-input", "-")
    assert outcome.out == "aaa3070000000000000002\n", "what is typed stands above the input"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"message": "Nom"}', "message 1 of the input names no protocol"),
        ('{"protocol": "filemq"}', "message 1 of the input names no message"),
        ('{"protocol": "filemq", "message": "Nom", "fields": 3}', "message 1: its fields are no object"),
        (
            '{"protocol": "filemq", "message": "Nom", "fields": {"credit": "x"}}',
            "NOM.credit: expected an integer",
        ),
        ('{"protocol": "filemq", "message": "Ohai", "ts": "noon"}', "message 1: 'noon' is no time"),
        ("\n[3]", "3 is no object that describes a message"),
        ("{}\n\n{", "standard input:3: not JSON"),
        ("[" * 100_000, "standard input:1: not JSON"),
    ],
)
def test_input_that_is_no_message(
    text: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    input_of(monkeypatch, text.replace("{}", '{"protocol": "filemq", "message": "Hugz"}'))
    outcome = specwire(capfd, "encode", "--json-input", "-")
    assert outcome.status == 2 and sentence in outcome.err


def test_written_as_a_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    row = {
        "ts": "2026-03-01T12:00:00.000001Z",
        "protocol": "filemq",
        "conversation": "talk",
        "sender": "C",
        "peer": "me",
        "message": "Nom",
        "fields": {"credit": 5},
    }
    input_of(monkeypatch, json.dumps(row))
    folder = tmp_path / "capture"
    outcome = specwire(capfd, "encode", "--json-input", "-", "--out", str(folder), "--json")
    assert json.loads(outcome.out)["written"] == {"filemq": 1}
    found = json.loads(specwire(capfd, "decode", "--json", str(folder)).out)
    assert found == {**row, "frames": ["aaa3070000000000000005"]}
    outcome = specwire(capfd, "encode", "filemq", "Hugz", "--sender", "S", "--out", str(tmp_path / "b"))
    found = json.loads(specwire(capfd, "decode", "--json", str(tmp_path / "b")).out)
    assert (found["sender"], found["message"]) == ("S", "Hugz") and found["ts"]
