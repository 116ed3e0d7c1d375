"""Secrets sown into every input of every importer and collector: none comes out in a file, on stdout or on stderr."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.import_observations import OBSERVATION_IMPORTS
from moeplan.cli.main import main
from moeplan.importers.table import IMPORTERS
from tests.integration.privacy import FILE_SEED, SEEDS, SOWN, leaks, leaks_in_files, swapped
from tests.integration.privacy_inputs import INPUTS

DEMO = Path(__file__).resolve().parents[2] / "demo"
METRICS = [DEMO / "trials" / f"metrics-{name}.prom" for name in ("before", "after-1")]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the options that name plan, checkpoint and runtime."""
    path = tmp_path_factory.mktemp("stated")
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(path / "checkpoint.json")]) == 0
    assert main(["plan", "kimi-k3", "h200", "--devices", "16", "--output", str(path / "plan.json")]) == 0
    return [
        *("--plan", str(path / "plan.json"), "--checkpoint", str(path / "checkpoint.json")),
        *("--runtime-packages", str(DEMO / "runtime-packages.txt")),
    ]


def imported(name: str, stated: list[str], files: dict[str, bytes], folder: Path) -> int:
    """Run the import of files that lie in a folder whose name, like theirs, is nobody's business."""
    given = folder / FILE_SEED
    given.mkdir(parents=True)
    for ending, data in files.items():
        (given / f"{ending.partition('.')[0]}_{FILE_SEED}.{ending.partition('.')[2]}").write_bytes(data)
    one = INPUTS[name]
    paths = [str(given)] if one.directory else sorted(map(str, given.iterdir()))
    options = [str(folder / "site.key") if option == "KEY" else option for option in one.options]
    return main(["import", name, *paths, *options, *stated, "-o", str(folder / "out")])


def test_every_import_has_an_input_here() -> None:
    """``auto`` reads nothing of its own: it runs the others, and shows the paths it was given."""
    assert {*INPUTS, "auto"} == {*IMPORTERS, *(one.name for one in OBSERVATION_IMPORTS)}


def test_no_secret_comes_out_of_what_auto_imports(stated: list[str], tmp_path: Path) -> None:
    given = tmp_path / "given"
    for name in ("vllm-bench", "vllm-log", "lm-eval", "sglang-bench"):
        (given / name).mkdir(parents=True)
        for ending, data in INPUTS[name].files().items():
            (given / name / f"file-{ending}").write_bytes(data)
    options = [word for name in ("vllm-bench", "vllm-log", "sglang-bench") for word in INPUTS[name].options]
    with_options = shlex.join([*stated, *options])
    assert main(["import", "auto", str(given), "-o", str(tmp_path / "out"), f"--with={with_options}"]) in (0, 1)
    assert len(list((tmp_path / "out").iterdir())) >= 3
    assert leaks_in_files(tmp_path / "out") == {}


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_no_secret_of_an_input_comes_out(
    name: str, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = INPUTS[name]
    files = one.files()
    assert not files or set(leaks(b"".join(files.values()))) or name == "probe", "nothing was sown"
    capsys.readouterr()
    code = imported(name, stated, files, tmp_path)
    shown = capsys.readouterr()
    assert code in one.codes, shown.err
    assert leaks(shown.out.encode()) == leaks(shown.err.encode()) == [], shown.err
    assert any((tmp_path / "out" / "evidence").iterdir())
    assert leaks_in_files(tmp_path / "out") == {}


SHORT = {name: SEEDS[name] for name in ("home path", "IPv4")}
VARIANTS = [
    pytest.param(name, variant, id=f"{name}-{key}-{of}")
    for name, one in sorted(INPUTS.items())
    if one.documents is not None
    for of, text in {"all": SOWN, **SHORT}.items()
    for key, variant in swapped(one.documents(), text)
]


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_no_text_of_a_hostile_file_comes_out(
    name: str, variant: list[Any], stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code = imported(name, stated, INPUTS[name].files(variant), tmp_path)
    shown = capsys.readouterr()
    assert code in (0, 1, 2, 5), shown.err
    assert leaks(shown.out.encode()) == leaks(shown.err.encode()) == [], shown.err
    assert leaks_in_files(tmp_path / "out") == {}


class TestTheSearchItself:
    @pytest.mark.parametrize("secret", SEEDS.values())
    def test_finds_each_secret_in_each_form(self, secret: str) -> None:
        for data in (
            secret.upper().encode(),
            secret.encode().hex().encode(),
            json.dumps({"x": secret}).encode(),
            *(base64.b64encode(b"abc"[:shift] + secret.encode() + b"!") for shift in range(3)),
        ):
            assert leaks(b"before" + data + b"after") != [], data

    def test_finds_nothing_in_clean_bytes(self) -> None:
        assert leaks(b'{"kind":"evidence_record","seed":1}') == []

    def test_an_enclosed_file_is_found(self, stated: list[str], tmp_path: Path) -> None:
        one = INPUTS["vllm-bench"]
        path = tmp_path / "trial.json"
        path.write_bytes(one.files()["a.json"])
        words = ["import", "vllm-bench", str(path), *one.options, *stated, "--enclose", "tool-output"]
        assert main([*words, "-o", str(tmp_path / "out")]) in one.codes
        (found,) = leaks_in_files(tmp_path / "out").values()
        assert set(found) == set(SEEDS)
