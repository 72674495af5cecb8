"""Import of payloads that a document describes: JSON Schemas and tables of the profile, by hand."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from specwire.generator.diagnostics import SpecError
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.payload_files import PayloadOptions
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol

GRAMMAR = """\
store = request / response
request = "Q" topic body
response = "A" topic body
topic = 1OCTET *ALPHA
body = *OCTET
"""
PROFILE = 'name = "store"\n[types.body]\ncontent = "json"\n'

DOCUMENT = """\
Disk service
############

Usage
=====

Topics are those of the service, such as ``disk.usage``.

.. object:: usage request

  The payload is an object:

  .. object:: paths

    (*array of string*, REQUIRED) Paths to look at. Relative ones too.

  .. object:: deep

    (*boolean*, OPTIONAL)

.. object:: usage response

  .. object:: totals

    (*array of objects*, REQUIRED) One per path.

    .. object:: octets

      (*integer*, REQUIRED) Size.

    .. object:: label

      (*string* OPTIONAL) Name.

  .. object:: owner

    (*object*, REQUIRED) See `Owner Object`_ below.

  .. object:: extra...

    Anything else.

.. object:: usage error response

The text of an error.

.. object:: watch started response

  .. object:: type

    (*string*, REQUIRED) Always present, with a value of ``started``.

.. object:: watch changed response

  .. object:: type

    (*string*, REQUIRED) Always present, with a value of ``changed``.

  .. object:: octets

    (*real*, REQUIRED) Size.

Owner Object
============

.. object:: name

  (*string*, REQUIRED) Login name.

.. object:: attrs

  (*object*, OPTIONAL) Attributes. All values SHALL be of type *string*.
"""


def make_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "grammars" / "store"
    folder.mkdir(parents=True)
    (folder / "grammar.abnf").write_text(GRAMMAR)
    (folder / "profile.toml").write_text(PROFILE)
    return folder


def run_import(folder: Path, text: str, name: str = "disk.rst", **options: Any) -> Imported:
    document = folder.parent.parent / name
    document.write_text(text)
    return import_document(
        document, "store", folder=folder, payload_options=PayloadOptions(**{"comments": False} | options)
    )


def schema_of(imported: Imported, name: str) -> dict[str, Any]:
    (text,) = [one.text for one in imported.payloads if one.table.json_schema == f"payloads/{name}.json"]
    schema: dict[str, Any] = json.loads(text)
    assert schema.pop("$comment") == "Written by `specwire import` from disk.rst."
    return schema


def codes(imported: Imported) -> list[str]:
    return [diagnostic.code for diagnostic in imported.diagnostics]


def test_request_has_its_keys(tmp_path: Path) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT)
    assert codes(imported) == []
    assert schema_of(imported, "disk.usage.request") == {
        "type": "object",
        "properties": {
            "paths": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "boolean"},
        },
        "required": ["paths"],
    }


def test_response_has_lists_of_objects_and_the_object_of_a_section(tmp_path: Path) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT)
    item = {
        "type": "object",
        "properties": {"octets": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["octets"],
    }
    owner = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "attrs": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["name"],
    }
    assert schema_of(imported, "disk.usage.response") == {
        "type": "object",
        "properties": {
            "totals": {"type": "array", "items": item},
            "owner": {"$ref": "#/$defs/owner-object"},
        },
        "additionalProperties": True,
        "required": ["totals", "owner"],
        "$defs": {"owner-object": owner},
    }


def test_forms_of_a_response_are_alternatives(tmp_path: Path) -> None:
    schema = schema_of(run_import(make_folder(tmp_path), DOCUMENT), "disk.watch.response")
    assert schema["required"] == ["type"]
    assert schema["properties"] == {"type": {"type": "string"}, "octets": {"type": "number"}}
    assert schema["oneOf"] == [
        {
            "title": "started",
            "type": "object",
            "properties": {"type": {"type": "string", "const": "started"}},
            "required": ["type"],
        },
        {
            "title": "changed",
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": "changed"},
                "octets": {"type": "number"},
            },
            "required": ["type", "octets"],
        },
    ]


def test_descriptions_are_kept_unless_comments_are_omitted(tmp_path: Path) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT, comments=True)
    schema = schema_of(imported, "disk.usage.request")
    assert schema["properties"]["paths"]["description"] == "Paths to look at."
    assert "description" not in schema["properties"]["deep"]


def test_profile_gets_a_table_for_each_payload_and_keeps_its_text(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    write_imported(run_import(folder, DOCUMENT), folder)
    text = (folder / "profile.toml").read_text()
    assert text.startswith(PROFILE)
    tables = tomllib.loads(text)["payload"]
    assert tables[0] == {
        "topic": "disk.usage",
        "message": "Request",
        "json-schema": "payloads/disk.usage.request.json",
        "name": "disk_usage_request",
    }
    assert [(one["topic"], one["message"]) for one in tables[1:]] == [
        ("disk.usage", "Response"),
        ("disk.watch", "Response"),
    ]
    assert all((folder / one["json-schema"]).is_file() for one in tables)
    assert (folder / "grammar.abnf").read_text() == GRAMMAR


def test_second_import_changes_schemas_but_adds_no_table_again(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    write_imported(run_import(folder, DOCUMENT), folder)
    profile = (folder / "profile.toml").read_text()
    assert write_imported(run_import(folder, DOCUMENT), folder) == []
    changed = write_imported(
        run_import(folder, DOCUMENT.replace("(*boolean*, OPTIONAL)", "(*boolean*, REQUIRED)")), folder
    )
    assert [path.name for path in changed] == ["disk.usage.request.json"]
    assert (folder / "profile.toml").read_text() == profile


def test_payload_that_is_gone_is_reported(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    write_imported(run_import(folder, DOCUMENT), folder)
    imported = run_import(folder, DOCUMENT.replace("usage request", "size request"))
    (gone,) = [one for one in imported.diagnostics if one.code == "W725"]
    assert "'disk.usage'" in gone.message


def test_topic_without_service_is_reported(tmp_path: Path) -> None:
    text = DOCUMENT.replace("such as ``disk.usage``", "as always")
    imported = run_import(make_folder(tmp_path), text)
    assert codes(imported) == ["W722"] * 3
    assert {one.table.topic for one in imported.payloads} == {"usage", "watch"}
    imported = run_import(make_folder(tmp_path / "again"), text, service="disk")
    assert codes(imported) == []
    assert {one.table.topic for one in imported.payloads} == {"disk.usage", "disk.watch"}


@pytest.mark.parametrize("title", ["usage payload", "usage event"])
def test_payload_of_unknown_messages_is_reported(tmp_path: Path, title: str) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT.replace("usage request", title))
    assert codes(imported) == ["W722"]


@pytest.mark.parametrize("text", ["(*colour*, OPTIONAL)", "True or false."])
def test_key_of_unknown_type_may_have_any_value(tmp_path: Path, text: str) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT.replace("(*boolean*, OPTIONAL)", text))
    assert codes(imported) == ["W723"]
    assert schema_of(imported, "disk.usage.request")["properties"]["deep"] == {}


def test_entry_without_a_name_is_reported(tmp_path: Path) -> None:
    text = DOCUMENT.replace(
        "(*boolean*, OPTIONAL)", "(*boolean*, OPTIONAL) Deep.\n\n    (*user*, OPTIONAL) Who."
    )
    imported = run_import(make_folder(tmp_path), text)
    assert codes(imported) == ["W724"]
    assert list(schema_of(imported, "disk.usage.request")["properties"]) == ["paths", "deep"]


def test_topic_with_a_word_in_capitals_is_a_pattern(tmp_path: Path) -> None:
    imported = run_import(make_folder(tmp_path), DOCUMENT.replace("usage request", "NAME.usage request"))
    table = imported.payloads[0].table
    assert (table.topic, table.json_schema) == ("*.usage", "payloads/any.usage.request.json")


def test_document_with_grammar_and_payloads_makes_both(tmp_path: Path) -> None:
    rules = "".join(f"  {line}\n" for line in GRAMMAR.splitlines())
    text = f"Store\n#####\n\n.. code-block:: ABNF\n\n{rules}\n{DOCUMENT}"
    folder = tmp_path / "grammars" / "store"
    folder.parent.mkdir()
    imported = run_import(folder, text)
    assert codes(imported) == []
    write_imported(imported, folder)
    assert (folder / "payloads" / "disk.usage.request.json").is_file()
    assert len(tomllib.loads((folder / "profile.toml").read_text())["payload"]) == 3
    compile_protocol(folder)


def test_payloads_without_a_protocol_are_refused(tmp_path: Path) -> None:
    (tmp_path / "grammars").mkdir()
    with pytest.raises(SpecError, match="E702"):
        run_import(tmp_path / "grammars" / "store", DOCUMENT)


def test_json_schema_is_a_payload_of_the_stated_topic(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
    imported = run_import(folder, schema, "a.json", topic="disk.*", message="Request")
    (payload,) = imported.payloads
    assert (payload.table.topic, payload.table.message) == ("disk.*", "Request")
    assert json.loads(payload.text)["properties"] == {"a": {"type": "integer"}}


@pytest.mark.parametrize(("text", "code"), [("{", "E701"), ("{}", "E702"), ('{"items": {}}', "W722")])
def test_json_that_is_no_schema_or_has_no_topic_is_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(SpecError, match=code):
        run_import(make_folder(tmp_path), text, "a.json")


def test_included_schema_is_a_payload(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (tmp_path / "job.json").write_text('{"$schema": "s", "type": "object", "properties": {}}')
    (tmp_path / "example.json").write_text('{"type": "object"}')
    text = "Job\n###\n\n.. literalinclude:: job.json\n\n.. literalinclude:: example.json\n"
    (payload,) = run_import(folder, text, topic="job.submit").payloads
    assert payload.table.topic == "job.submit"
