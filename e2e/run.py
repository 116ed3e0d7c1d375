"""The whole path with a real vLLM on this machine's CPUs, from a plan to seven judged gates: ``make e2e``.

Every line that begins with ``$`` is a command anybody can type.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from e2e.deciding import decide
from e2e.engine import free_port
from e2e.install_engine import engine_environment
from e2e.keeping import keep
from e2e.measuring import measure
from e2e.planning import digest_before_start, prepare
from e2e.pricing import declare_price
from e2e.processes import StepFailedError, end_in_order
from e2e.routing import count_experts
from e2e.work import Work

__all__ = ["main", "walk"]


def walk(directory: Path, *, strict: bool) -> None:
    """Walk the path from nothing to the audit; what it makes lies in ``directory``.

    Raises:
        StepFailedError: a step fails, or what must hold at the end does not.
    """
    work = Work(directory, engine_environment(), free_port())
    prepare(work)
    evidence = [digest_before_start(work), *measure(work), *count_experts(work), declare_price(work)]
    decide(work, evidence, strict=strict)


def main() -> None:
    """Walk the path, in a directory that is removed or in one that is named and kept."""
    parser = argparse.ArgumentParser(prog="python -m e2e.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, help="where to keep what is made; must not exist")
    parser.add_argument("--strict", action="store_true", help="accept no criterion that noise leaves inconclusive")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the evidence here, in place of what was kept")
    args = parser.parse_args()
    end_in_order()
    began = time.monotonic()
    kept = None if args.directory is None else args.directory.resolve()
    directory = Path(tempfile.mkdtemp(prefix="moeplan-e2e-")) if kept is None else kept
    try:
        if kept is not None:
            kept.mkdir(parents=True)
        walk(directory, strict=args.strict)
        if args.keep is not None:
            keep(directory, args.keep)
    except StepFailedError as error:
        sys.exit(f"\ne2e: {error}")
    except FileExistsError as error:
        sys.exit(f"e2e: {error.filename} exists: name a directory that does not")
    finally:
        if kept is None:
            shutil.rmtree(directory, ignore_errors=True)
    print(f"\ne2e: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
