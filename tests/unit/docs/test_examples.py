"""Every example on every page is run, and what the page shows of it is what comes out."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.docs.pages import CUT, PAGES, Block, blocks, shows, steps

_PYTHON = [page for page in PAGES if any(block.info == "python" for block in blocks(page))]
_CONSOLE = [page for page in PAGES if any(block.info == "console run" for block in blocks(page))]
_TOOLS = ("jq", "openssl", "sha256sum", "base64", "cmp")


@pytest.mark.parametrize("page", _PYTHON, ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_the_page_shows(
    page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    namespace: dict[str, Any] = {"__name__": page.stem}
    listed = blocks(page)
    for number, block in enumerate(listed):
        if block.info != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Lines of the page in a traceback: the block is compiled as if it stood where it stands.
            exec(compile("\n" * block.line + block.text, page.name, "exec"), namespace)
        output = _output_after(listed, number)
        assert shows(output, printed.getvalue()), f"{page.name}:{block.line} printed\n{printed.getvalue()}"


def _output_after(listed: list[Block], number: int) -> list[str]:
    following = listed[number + 1 : number + 2]
    return following[0].text.splitlines() if following and following[0].info == "text output" else []


@pytest.mark.parametrize("page", _CONSOLE, ids=lambda page: page.name)
def test_console_blocks_run_and_print_what_the_page_shows(page: Path, checkout: Path) -> None:
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the page's commands need {', '.join(missing)}")
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "COLUMNS": "80"}
    for block in blocks(page):
        if block.info != "console run":
            continue
        for step in steps(block):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", step.command],
                cwd=checkout,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            where = f"{page.name}:{step.line}: {step.command}"
            assert done.returncode == step.status, f"{where}\n{done.stdout}"
            assert shows(step.shown, done.stdout), f"{where} printed\n{done.stdout}"


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        (["a", CUT, "d"], "a\nb\nc\nd\n", True),
        (["a", CUT, "d"], "a\nd\n", True),
        (["x sha256:12… y"], "x sha256:1234 y\n", True),
        (["a"], "a\nb\n", False),
        (["a", "b"], "a\n", False),
        (["x sha256:12…"], "x sha256:21\n", False),
    ],
)
def test_comparison_allows_cuts_and_nothing_else(shown: list[str], got: str, same: bool) -> None:
    assert shows(shown, got) is same
