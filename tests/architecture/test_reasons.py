"""The table of reasons in the document on the API has every one that a caller may be told."""

import re

from muster.engine import errors
from muster.rpc import refusals
from tests.architecture.repository import ROOT, written_python

REFUSALS = {
    name
    for module in (errors, refusals)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, errors.Refusal)
}
MADE = re.compile(r"(?P<refusal>\w+Error)\(\s*\"(?P<reason>[A-Z][A-Z_]+)\"")
ROW = re.compile(r"^\| [A-Z_, ]+ \| (?P<reasons>[^|]+) \|", re.MULTILINE)
WORD = re.compile(r"[A-Z][A-Z_]+")


def test_every_reason_of_a_refusal_is_in_the_table() -> None:
    texts = [
        each.read_text(encoding="utf-8") for each in written_python() if ROOT / "service" in each.parents
    ]
    made = {each["reason"] for text in texts for each in MADE.finditer(text) if each["refusal"] in REFUSALS}
    document = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    told = {reason for row in ROW.finditer(document) for reason in WORD.findall(row["reasons"])}

    assert made
    assert made - told == set()
