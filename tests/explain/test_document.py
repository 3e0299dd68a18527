"""docs/explain.md names every code that Explain adds, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from muster.cli.explain import OF_THE_UNIT
from muster.core import candidate_outcomes
from muster.core.explain import explanation
from muster.core.explain.explanation import HelpCode
from muster.engine import explain_call, explaining, group_holds, untried

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
MODULES = (explanation, explain_call, explaining, group_holds, untried)


def listed(heading: str) -> set[str]:
    """Codes in the first column of the table below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def test_every_reason_is_listed() -> None:
    codes = {value for module in MODULES for name, value in vars(module).items() if name == value}

    assert listed("Reasons") == codes | {candidate_outcomes.CLOSEST_DOMAIN}


def test_every_help_is_listed() -> None:
    assert listed("What would help") == {code.value for code in HelpCode}


def test_the_command_knows_which_reasons_are_of_the_whole_unit() -> None:
    of_root = set(re.findall(r"^\| `(\w+)` \| root \|", PAGE, re.MULTILINE))

    assert of_root == set(OF_THE_UNIT)
