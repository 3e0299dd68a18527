"""How processes of ours are started."""

import subprocess
from pathlib import Path

import pytest

from muster.engine.child_process import command_of


def test_a_module_is_run_and_nothing_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, elsewhere = tmp_path / "ours", tmp_path / "elsewhere"
    for folder, module, text in (
        (ours, "greeting", "def main(descriptor): print('given', descriptor)"),
        (elsewhere, "signal", "raise SystemExit('not ours')"),
    ):
        folder.mkdir()
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(ours))

    done = subprocess.run(
        command_of("greeting", 7), cwd=elsewhere, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("given 7\n", "")
