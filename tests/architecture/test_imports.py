"""Imports go one way. The contracts stand in pyproject.toml; here they are kept, and shown to notice a breach."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, SOURCE_ROOTS, imported, shown, written_python

MODEL = ROOT / "service" / "muster" / "model"
PACKAGES = [
    "app",
    "cli",
    "client",
    "console",
    "core",
    "engine",
    "model",
    "plugins",
    "rpc",
    "store",
    "telemetry",
    "v1",
    "validation",
]
# The contracts are read from the working directory; the packages are those of the arguments alone.
LINT = """
import sys
from importlinter.cli import lint_imports

roots = sys.argv[1:]
sys.path[:] = roots + [entry for entry in sys.path if not entry.endswith(("/service", "/store", "/clients"))]
raise SystemExit(lint_imports(cache_dir=None, no_logo=True))
"""


def _lint(*roots: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, "-c", LINT, *roots]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """A tree with every package of Muster and no code."""
    for package in PACKAGES:
        (tmp_path / "muster" / package).mkdir(parents=True)
        (tmp_path / "muster" / package / "__init__.py").touch()
    return tmp_path


def test_every_import_contract_is_kept() -> None:
    answer = _lint(*SOURCE_ROOTS)

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_packages_without_imports_keep_every_contract(skeleton: Path) -> None:
    assert _lint(skeleton).returncode == 0


@pytest.mark.parametrize(
    ("package", "statement", "finding"),
    [
        pytest.param("core", "import random", "muster.core -> random", id="chance in a decision"),
        pytest.param(
            "plugins", "import google.protobuf", "muster.plugins -> google", id="messages in a plugin"
        ),
        pytest.param(
            "core", "import muster.engine", "muster.core -> muster.engine", id="core calls the engine"
        ),
        pytest.param(
            "engine", "import muster.store", "muster.engine -> muster.store", id="engine names the store"
        ),
        pytest.param("engine", "import muster.v1", "muster.engine -> muster.v1", id="messages in the engine"),
        pytest.param("store", "import muster.core", "muster.store -> muster.core", id="store decides"),
    ],
)
def test_a_breach_of_a_contract_is_found(skeleton: Path, package: str, statement: str, finding: str) -> None:
    (skeleton / "muster" / package / "__init__.py").write_text(f"{statement}\n", encoding="utf-8")

    answer = _lint(skeleton)

    assert answer.returncode != 0
    assert finding in answer.stdout


def test_the_model_needs_the_standard_library_alone() -> None:
    model = [path for path in written_python() if MODEL in path.parents]
    foreign = {
        f"{shown(path)}: {name}"
        for path in model
        for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("muster.model")
    }

    assert model
    assert foreign == set()
