"""What the repository holds, as the tests of its rules read it."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = (ROOT / "service", ROOT / "store", ROOT / "clients")
GENERATED = tuple(ROOT / "clients" / client / "v1" for client in ("muster", "go/muster", "typescript/muster"))


@cache
def files() -> tuple[Path, ...]:
    """All files that are tracked, or would be by `git add`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    paths = (ROOT / name for name in sorted(listed.split("\0")) if name)
    return tuple(path for path in paths if path.is_file())


def written(*suffixes: str) -> tuple[Path, ...]:
    """All files with one of the suffixes that people write, not generators."""
    return tuple(
        path for path in files() if path.suffix in suffixes and not set(GENERATED) & set(path.parents)
    )


def written_python() -> tuple[Path, ...]:
    """All Python files that people write."""
    return written(".py")


def texts() -> dict[Path, str]:
    """The text of each file that is text."""
    return {path: text for path in files() if (text := _text(path)) is not None}


def shown(path: Path) -> str:
    """The path as a message names it."""
    return path.relative_to(ROOT).as_posix()


@cache
def syntax(path: Path) -> ast.Module:
    """The parsed module at `path`."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> set[str]:
    """Full names of the modules that the file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


@cache
def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
