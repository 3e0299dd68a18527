from dataclasses import replace

import pytest

from muster.model.pod import Pod, PodBatch
from tests.validation.examples import BATCH, faults, with_spec

TEMPLATE = BATCH.template


def _templated(template: Pod) -> PodBatch:
    return replace(BATCH, template=template)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(
            _templated(replace(TEMPLATE, name="p")),
            ("template.metadata.name", "INVALID"),
            id="template's name",
        ),
        pytest.param(
            _templated(replace(TEMPLATE, uid="u")), ("template.metadata.uid", "INVALID"), id="template's uid"
        ),
        pytest.param(
            _templated(replace(TEMPLATE, resource_version=1)),
            ("template.metadata.resourceVersion", "INVALID"),
            id="template's revision",
        ),
        pytest.param(
            _templated(replace(TEMPLATE, labels={"a": "b c"})),
            ("template.metadata.labels[a]", "INVALID"),
            id="template's labels",
        ),
        pytest.param(
            _templated(replace(TEMPLATE, group="A")),
            ("template.spec.schedulingGroup.podGroupName", "INVALID"),
            id="template's group",
        ),
        pytest.param(
            _templated(with_spec(TEMPLATE, priority_class_name="A")),
            ("template.spec.priorityClassName", "INVALID"),
            id="template's spec",
        ),
        pytest.param(replace(BATCH, names=()), ("names", "REQUIRED"), id="no names"),
        pytest.param(replace(BATCH, names=("a", "")), ("names[1]", "REQUIRED"), id="empty name"),
        pytest.param(replace(BATCH, names=("a", "B")), ("names[1]", "INVALID"), id="name's syntax"),
        pytest.param(replace(BATCH, names=("a", "b", "a")), ("names[2]", "DUPLICATE"), id="name twice"),
        pytest.param(replace(BATCH, uids=("u",)), ("uids", "INVALID"), id="too few uids"),
        pytest.param(replace(BATCH, uids=("u", "u" * 254)), ("uids[1]", "TOO_MANY"), id="long uid"),
    ],
)
def test_a_wrong_batch_is_refused_at_its_field(wrong: PodBatch, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


def test_a_batch_may_bring_a_uid_for_each_name() -> None:
    assert faults(replace(BATCH, uids=("u-0", "u-1"))) == []
