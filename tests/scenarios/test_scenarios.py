"""The case files beside this one, each case on a server of its own; and what the runner itself decides."""

from pathlib import Path

import pytest

from tests.scenarios.case import Case, cases
from tests.scenarios.rejections import Refusal, names
from tests.scenarios.run import case_files, outcome
from tests.scenarios.short_form import ShortFormError, manifest, repeated

FOLDER = Path(__file__).parent
ALL = [case for path in case_files(FOLDER) for case in cases(path)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
async def test_case(case: Case) -> None:
    assert await outcome(case) == ""


def test_no_two_cases_have_the_same_id() -> None:
    assert len({case.id for case in ALL}) == len(ALL)


def test_a_count_repeats_an_object_with_its_index_in_every_text() -> None:
    short = {"kind": "Pod", "name": "p-{i}", "labels": {"of": "{i}"}, "count": 2}

    assert list(repeated(short)) == [
        {"kind": "Pod", "name": "p-0", "labels": {"of": "0"}},
        {"kind": "Pod", "name": "p-1", "labels": {"of": "1"}},
    ]


def test_a_field_that_the_short_form_does_not_know_is_an_error() -> None:
    with pytest.raises(ShortFormError, match="colour"):
        manifest({"kind": "Node", "name": "n", "colour": "blue"})


@pytest.mark.parametrize(
    ("refused", "field", "expected"),
    [
        pytest.param("spec.priority", "spec.priority", True, id="the field itself"),
        pytest.param("spec.templates", "spec.templates[1].name", True, id="an ancestor"),
        pytest.param("spec.templates[1].name", "spec.templates[1]", True, id="a descendant"),
        pytest.param("spec.templates[a]", "spec.templates[1].name", True, id="an index by name"),
        pytest.param("spec.templates[0].name", "spec.templates[1].name", False, id="another index"),
        pytest.param("spec.policy.gang.minCount", "minCount", True, id="the last key alone"),
        pytest.param("spec.minCountries", "minCount", False, id="a key that begins alike"),
        pytest.param("spec.priority", "spec.policy", False, id="a sibling"),
    ],
)
def test_a_refusal_names_a_field(refused: str, field: str, *, expected: bool) -> None:
    assert names(Refusal((refused,), ""), field) is expected
