"""`specwire decode`, `specwire schema` and `specwire show`: what a person reads, and what a program does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from specwire.generator.ir import IR_VERSION
from tests.runtime.cli.commands import specwire

ATTR_GET = ("", "617474722e676574", "7b226e616d65223a22686f73746c697374227d00")
HEADER = "8e01010bffffffff00000000ffffffff00000001"


def test_attr_get_reads_as_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", "flux", *ATTR_GET, HEADER)
    assert outcome.status == 0
    rows = {name: cells for name, *cells in (re.split(" {2,}", line) for line in outcome.out.splitlines())}
    assert rows["topic"][0] == "attr.get"
    assert rows["nodeid"][1] == "NODEID_ANY"
    assert rows["flags"][1].strip() == "0x0b: topic payload route"
    assert rows["matchtag"][0] == "1"


def test_cut_frame_says_which_field_ends_where(capfd: pytest.CaptureFixture[str]) -> None:
    """The header is 20 octets; matchtag begins at octet 16, so a cut of the last leaves it three."""
    outcome = specwire(capfd, "decode", "flux", *ATTR_GET, HEADER[:-2])
    assert outcome.status == 2 and outcome.out == ""
    assert (
        outcome.err
        == "specwire: request.matchtag at octet 16 in frame 3: expected 4 octets, found 3 [Flux v1 matchtag]\n"
    )


@pytest.mark.parametrize(
    "option", [("--out", "folder"), ("--limit", "1"), ("--errors",), ("--message", "Nom")]
)
def test_what_is_for_files_is_refused_with_frames(
    option: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Instead of being passed over: nobody is to wait for a capture that is not written."""
    outcome = specwire(capfd, "decode", "filemq", "aaa3070000010000000000", *option)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"specwire: {option[0]} is for files and folders")


def test_json_has_the_names_of_the_grammar(capfd: pytest.CaptureFixture[str]) -> None:
    """`type` is a word of Python, where the field is `type_`; Flux v1's control: type 1, status 2."""
    control = "8e0108040000000000000000" + "0000000100000002"
    outcome = specwire(capfd, "decode", "--json", "flux", control)
    fields = json.loads(outcome.out)["fields"]
    assert list(fields) == ["routes", "flags", "userid", "rolemask", "type", "status"]
    assert (fields["type"], fields["status"]) == (1, 2)


def test_json_has_octets_in_hexadecimal(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", "--json", "filemq", "aa:a3:07 0000010000000000")
    assert json.loads(outcome.out) == {"protocol": "filemq", "message": "Nom", "fields": {"credit": 1 << 40}}
    outcome = specwire(capfd, "decode", "--json", "flux", *ATTR_GET, HEADER)
    assert json.loads(outcome.out)["fields"]["payload"] == ATTR_GET[2]


@pytest.mark.parametrize("text", ["zz", "0xq0", "é0"])
def test_not_hexadecimal(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", "filemq", text)
    assert outcome.status == 2 and "frame 0 is not hexadecimal" in outcome.err


def test_unknown_protocol(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", "../flux", "00")
    assert outcome.status == 2 and "there is no protocol '../flux'; the known ones are cmb1, " in outcome.err


def test_strict_holds_to_the_letter(capfd: pytest.CaptureFixture[str]) -> None:
    """Deployed peers leave out the NUL that the prose demands at the end of a topic."""
    assert specwire(capfd, "decode", "flux", *ATTR_GET, HEADER).status == 0
    outcome = specwire(capfd, "decode", "--strict", "flux", *ATTR_GET, HEADER)
    assert (
        outcome.status == 2
        and "request.topic at octet 8 in frame 1: expected a NUL at the end" in outcome.err
    )


def test_ddl_of_one_message(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    outcome = specwire(capfd, "schema", "filemq", "--format", "ddl", "--message", "Nom")
    assert outcome.out.startswith("  `credit` DECIMAL(20,0) NOT NULL COMMENT '")
    for spelling in ("nom", "NOM"):
        named = specwire(capfd, "schema", "filemq", "--format", "ddl", "--message", spelling)
        assert (named.status, named.out) == (0, outcome.out)
    outcome = specwire(capfd, "schema", "filemq", "--message", "Non")
    assert outcome.status == 2 and "filemq has no message 'Non'" in outcome.err


def test_schema_json_is_sparks(capfd: pytest.CaptureFixture[str]) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from specwire.generated import flux

    outcome = specwire(capfd, "schema", "flux", "--json")
    schemas = {name: types.StructType.fromJson(schema) for name, schema in json.loads(outcome.out).items()}
    assert schemas == dict(flux.schema.TABLES)


def test_ir_as_json_names_its_version(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "show", "ir", "filemq", "--json")
    shown = json.loads(outcome.out)
    assert (shown["name"], shown["ir_version"]) == ("filemq", IR_VERSION)
    assert [message["class_name"] for message in shown["messages"]][:2] == ["Ohai", "OhaiOk"]


def test_ir_and_tree_for_a_person(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "show", "ir", "filemq")
    assert "Nom = NOM (sent by C)" in outcome.out and "integer, 8 octets" in outcome.out
    outcome = specwire(capfd, "show", "tree", "filemq")
    assert "operation = create / delete" in outcome.out, "errata are applied"


RECORDS = """\
rec = POINTS / NOTHING
POINTS = %x01 count *point
NOTHING = %x02
count = OCTET
point = x label
x = 2OCTET ; an integer in network order
label = length *VCHAR
length = OCTET
"""


def test_records_inside_a_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A person reads names and values in a line for each; a program gets objects."""
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "grammar.abnf").write_text(RECORDS, encoding="utf-8")
    arguments = ("decode", "rec", "0102 0001 0161 0300 0162", "--grammars", str(tmp_path))
    shown = specwire(capfd, *arguments).out
    assert "x = 1, label = a" in shown and "x = 768, label = b" in shown
    fields = json.loads(specwire(capfd, *arguments, "--json").out)["fields"]
    assert list(fields.values()) == [[{"x": 1, "label": "a"}, {"x": 768, "label": "b"}]]
