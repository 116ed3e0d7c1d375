"""Preflight checks, formats and imports: what comes through and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.hooks.host import Host, open_host
from moeplan.model.plugin import PluginFailure
from moeplan.model.preflight import ImportFile, ImportRequest
from moeplan.workflows.preflight import importer_of, known_formats, preflight_checks, read_with_plugin
from tests.hooks.plugins import HEAD, add_plugin, hook

MADE = """
from moeplan.model.preflight import *
from moeplan.errors import *
def check(id="look", **more):
    return PreflightCheck(**{"id": id, "title": "Look", "how": "With both eyes.", "proof": "It is there.",
                             "deadline_seconds": 60, "sources": SOURCE, **more})
def info(format="lamps", origin="shared"):
    return ImporterInfo(format, origin, "Lamps of a host", "preflight")
def row(host="n1", **more):
    return ImportedRow(**{"host": host, "probe": "lamp", "item": "left", "metric": "lit", "unit": "boolean", "value": 1,
                          "state": "measured", **more})
def host(name="n1", file="1.json"):
    return ImportedHost(name, file, None, "2026-11-30 17:00:00", (ImportedSection("lamp", "ok", "ok"),))
def imported(**more):
    return Imported(**{"hosts": (host(),), "rows": (row(),), **more})
"""
REQUEST = ImportRequest("lamps", (ImportFile("1.json", '{"lamp": true}'),))
FORMATS = hook("moeplan_importers()", "return (info(),)")
MS = 20_000


def host_of(directory: Path, *bodies: str, deadline_ms: int | None = None) -> Host:
    for name, body in zip("abc", bodies, strict=False):
        add_plugin(directory, name, body, head=HEAD + MADE)
    host = open_host(deadline_ms=deadline_ms)
    assert host.failures == ()
    return host


def refused(directory: Path, *lines: str) -> PluginFailure:
    host = host_of(directory, FORMATS + hook("moeplan_import(request, site)", *lines))
    (failure,) = host.import_files("a", REQUEST, {}).failures
    assert (failure.plugin, failure.hook) == ("a", "moeplan_import")
    return failure


@pytest.mark.parametrize("deadline_ms", [None, MS])
def test_a_plugin_gets_files_and_site_and_its_answer_bears_its_name(deadline_ms: int | None, installed: Path) -> None:
    lines = (
        "told = repr((request.format, [(f.name, f.text) for f in request.files], dict(site)))",
        "value = ComparisonValue('n1', told)",
        "return imported(findings=(finding(file='1.json'),), claims=(ImportedClaim('n1.lit', '1'),),",
        "                comparisons=(Comparison('lamps', 'Lamps', 'not_judged', (value,)),))",
    )
    host = host_of(installed, FORMATS + hook("moeplan_import(request, site)", *lines), deadline_ms=deadline_ms)
    read = read_with_plugin(host, {"1.json": b'{"lamp": true}'}, {"nodes": 1}, "lamps")
    assert (read.plugin, read.version, read.importer.title) == ("a", "1.0", "Lamps of a host")
    (finding,) = read.imported.findings
    assert (finding.plugin, finding.file, finding.id) == ("a", "1.json", "T-1")
    (told,) = read.imported.comparisons[0].values
    assert told.value == repr(("lamps", [("1.json", '{"lamp": true}')], {"nodes": 1}))
    assert [(row.host, row.value) for row in read.imported.rows] == [("n1", 1)]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("return imported(findings=(finding(file='2.json'),))", "false_place", "'2.json'"),
        ("return imported(findings=(finding(),))", "false_place", "None"),
        ("return imported(findings=(finding(file='1.json', line=1),))", "false_place", "line 1"),
        ("return imported(findings=(finding('T-9', file='1.json'),))", "undeclared_id", "T-9"),
        ("return imported(findings=(finding(file='1.json', plugin='b'),))", "false_name", "plugin b"),
        ("return imported(hosts=(host(file='2.json'),))", "malformed_result", "2.json"),
        ("return imported(hosts=(host(), host()))", "colliding_id", "host n1"),
        ("return imported(rows=(row('n2'),))", "malformed_result", "n2"),
        ("return imported(rows=(row(unit='lumen'),))", "raised", "InputError"),
        ("return imported(rows=(row(value=1.5),))", "raised", "InputError"),
        ("return (row(),)", "wrong_type", "expected Imported"),
        ("return None", "none_returned", "None"),
    ],
)
def test_what_does_not_fit_is_refused(line: str, code: str, says: str, installed: Path) -> None:
    failure = refused(installed, line)
    assert failure.code == code
    assert says in failure.message


def test_files_that_a_plugin_refuses_are_the_callers_error(installed: Path) -> None:
    lines = ("raise InputRefusedError(Issue('1.json: $', 'no_lamps', 'no lamps', 'a lamp'))",)
    host = host_of(installed, FORMATS + hook("moeplan_import(request, site)", *lines))
    with pytest.raises(InputError) as caught:
        read_with_plugin(host, {"1.json": b"{}"}, {}, None)
    assert [(issue.path, issue.code) for issue in caught.value.issues] == [("1.json: $", "no_lamps")]


@pytest.mark.parametrize("data", [b"\xff", b'"\0"'])
def test_files_that_are_no_text_reach_no_plugin(data: bytes, installed: Path) -> None:
    host = host_of(installed, FORMATS + hook("moeplan_import(request, site)", "raise KeyError"))
    with pytest.raises(InputError) as caught:
        read_with_plugin(host, {"1.json": data}, {}, "lamps")
    assert caught.value.issues[0].code == "wrong_encoding"


def test_one_format_of_one_origin_is_read_by_the_first_plugin(installed: Path) -> None:
    host = host_of(installed, "", FORMATS, FORMATS)
    assert {name: plugin for name, (plugin, _) in known_formats(host).items()} == {"lamps": "b"}
    assert importer_of(host, None)[0] == importer_of(host, "lamps")[0] == "b"


def test_one_format_of_two_origins_is_nobodys(installed: Path) -> None:
    host = host_of(installed, FORMATS, hook("moeplan_importers()", "return (info(origin='other'), info('doors'))"))
    answers = host.importers()
    assert answers.answers == ()
    assert [(failure.plugin, failure.code) for failure in answers.failures] == [
        ("a", "colliding_id"),
        ("b", "colliding_id"),
    ]


@pytest.mark.parametrize(
    ("formats", "wanted", "code"),
    [
        ("", None, "unknown_format"),
        ("", "lamps", "unknown_format"),
        ("return (info(), info('doors'))", None, "several_formats"),
        ("return (info(),)", "lamp", "unknown_format"),
    ],
)
def test_a_format_that_nothing_or_too_much_reads(formats: str, wanted: str | None, code: str, installed: Path) -> None:
    host = host_of(installed, hook("moeplan_importers()", formats) if formats else "")
    with pytest.raises(InputError) as caught:
        importer_of(host, wanted)
    assert (caught.value.issues[0].path, caught.value.issues[0].code) == ("--format", code)


def test_a_format_twice_is_refused(installed: Path) -> None:
    host = host_of(installed, hook("moeplan_importers()", "return (info(), info())"))
    (failure,) = host.importers().failures
    assert failure.code == "colliding_id"


def test_checks_are_those_of_the_profile(installed: Path) -> None:
    host = host_of(installed, hook("moeplan_preflight()", "return (check(), check('listen', profiles=('one',)))"), "")
    assert [one.id for one in preflight_checks(host, "a", "one")] == ["look", "listen"]
    assert [one.id for one in preflight_checks(host, "a", "two")] == ["look"]
    assert [one.deadline_seconds for one in preflight_checks(host, "a")] == [60, 60]
    assert preflight_checks(host, "b") == ()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("return (check(), check())", "colliding_id"),
        ("return (check(profiles=('three',)),)", "undeclared_id"),
        ("return [check()]", "wrong_type"),
    ],
)
def test_checks_that_do_not_fit_are_refused(line: str, code: str, installed: Path) -> None:
    (failure,) = host_of(installed, hook("moeplan_preflight()", line)).preflight().failures
    assert (failure.plugin, failure.code) == ("a", code)
