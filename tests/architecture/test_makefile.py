"""What `make` tells whoever waits for it."""

import os
import subprocess

from tests.architecture.repository import ROOT


def test_setting_up_says_what_takes_so_long_before_it_is_silent() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--dry-run", "--always-make", "setup"]
    planned = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    said = next(number for number, line in enumerate(planned) if line.startswith("echo"))
    installed = next(number for number, line in enumerate(planned) if "pip install" in line)
    assert said < installed
    assert "minute" in planned[said]
