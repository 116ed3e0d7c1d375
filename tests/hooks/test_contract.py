"""The specifications, the protocols and docs/plugins.md say the same."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from moeplan.hooks import plain_data, specs
from moeplan.hooks.protocols import PROTOCOLS
from moeplan.model import plugin as model
from moeplan.model.plan import Criterion

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text("utf-8")
WORDS = ("Purity:", "Ordering:", "None:", "Since:")


def signature(hook: str) -> str:
    told = str(inspect.signature(getattr(specs, hook))).replace("'", "")
    return f"{hook}{told}"


def test_headings_of_the_page_are_the_signatures_of_the_hooks() -> None:
    assert re.findall(r"^### `(moeplan_.*)`$", PAGE, re.MULTILINE) == [signature(hook) for hook in specs.HOOKS]


@pytest.mark.parametrize("hook", specs.HOOKS)
def test_each_hook_says_what_a_plugin_must_know(hook: str) -> None:
    section = PAGE.split(f"### `{signature(hook)}`\n")[1].split("\n### ")[0]
    told = inspect.getdoc(getattr(specs, hook)) or ""
    for word in WORDS:
        (line,) = re.findall(rf"^{word} (.*)$", told, re.MULTILINE)
        assert f"- {word} {line}" in section


def test_every_specification_is_listed() -> None:
    marked = {name for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")}
    assert marked == set(specs.HOOKS) == set(PROTOCOLS)


@pytest.mark.parametrize("hook", specs.HOOKS)
def test_protocols_have_the_signatures_of_the_specifications(hook: str) -> None:
    method = inspect.signature(getattr(PROTOCOLS[hook], hook))
    without_self = method.replace(parameters=list(method.parameters.values())[1:])
    assert without_self == inspect.signature(getattr(specs, hook))


def test_only_one_hook_may_answer_none() -> None:
    assert [hook for hook in specs.HOOKS if plain_data.may_be_none(hook)] == ["moeplan_owns_manifest"]


def test_page_names_the_api_and_every_failure_code() -> None:
    assert f"MOEPLAN_API = {specs.API_MAJOR}" in PAGE
    assert re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE) == list(model.FAILURE_CODES)


def test_a_contributed_name_fits_the_criterion() -> None:
    name, version = "p" * 64, "1" * 63
    assert re.fullmatch(model.PLUGIN_PATTERN, name)
    assert re.fullmatch(model.VERSION_PATTERN, version)
    offer = model.OfferedCriterion(
        gate="runtime_load",
        id="extra",
        metric="m",
        aggregation="sum",
        comparator="le",
        limit=0,
        unit="count",
        evidence_types=(),
        min_binding="declared",
        clause="extra",
    )
    assert offer.contributed(name, version).criterion.contributed_by == f"{name}@{version}"


def test_an_offer_has_every_field_of_a_criterion_but_those_the_host_sets() -> None:
    names = {field.name for field in attrs.fields(Criterion)} - {"contributed_by", "on_missing", "samples"}
    assert {field.name for field in attrs.fields(model.OfferedCriterion)} == names | {"gate"}


def test_frozen_values_come_back_as_they_were() -> None:
    value = {"a": [1, {"b": [None, "x", True]}]}
    frozen = plain_data.freeze(value)
    assert plain_data.thaw(frozen) == value
    with pytest.raises(TypeError):
        frozen["a"][1]["b"] = 0


def test_the_host_loads_pluggy_only_when_there_is_a_plugin_to_ask() -> None:
    program = "import sys; from moeplan.hooks.host import open_host; open_host([]); print('pluggy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
