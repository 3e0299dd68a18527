import gc
import weakref
from dataclasses import replace

import pytest

from muster.core.signature import SignatureTable
from muster.model.pod import Container, Pod, PodSpec, Resources


def made(labels: dict[str, str], requests: dict[str, str]) -> Pod:
    spec = PodSpec(containers=(Container(resources=Resources(requests=requests)),))
    return Pod(name="p", namespace="default", labels=labels, spec=spec)


def test_equal_content_has_one_index_whatever_the_order_of_mappings() -> None:
    table = SignatureTable()

    first = table.intern(made({"a": "1", "b": "2"}, {"cpu": "1", "memory": "2"}))
    second = table.intern(made({"b": "2", "a": "1"}, {"memory": "2", "cpu": "1"}))

    assert first == second
    assert len(table) == 1


def test_labels_and_namespace_make_a_signature_and_the_spec_alone_a_shape() -> None:
    table = SignatureTable()
    pod = made({"a": "1"}, {"cpu": "1"})
    variants = [pod, replace(pod, labels={}), replace(pod, namespace="other"), made({"a": "1"}, {"cpu": "2"})]

    indexes = [table.intern(variant) for variant in variants]

    assert indexes == [0, 1, 2, 3]
    assert [table[index].shape for index in indexes] == [0, 0, 0, 1]


def test_pods_that_differ_in_name_and_group_alone_share_a_signature() -> None:
    table = SignatureTable()
    pod = made({}, {"cpu": "1"})

    assert table.intern(pod) == table.intern(replace(pod, name="q", group="g", gates=("later",)))


def test_new_signatures_are_taken_once() -> None:
    table = SignatureTable()
    table.intern(made({}, {"cpu": "1"}))

    first, second = table.take_new(), table.take_new()

    assert [signature.index for signature in first] == [0]
    assert second == ()


def test_requests_leave_out_what_is_zero() -> None:
    table = SignatureTable()

    assert table[table.intern(made({}, {"cpu": "0", "memory": "5"}))].requests == {"memory": 5, "pods": 1}


def test_pods_that_are_gone_are_not_kept_for_their_signatures() -> None:
    class Watched(Pod):
        """A pod that can be watched going."""

    table = SignatureTable()
    pod = Watched(name="p", namespace="default", labels={"own": "1"})
    gone = weakref.ref(pod)
    table.intern(pod)

    del pod
    gc.collect()

    assert gone() is None


def test_what_is_known_by_identity_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SignatureTable, "_MOST_IDENTITIES", 100)
    table = SignatureTable()

    for number in range(1_000):
        table.intern(made({"own": str(number % 7)}, {"cpu": str(number % 5 + 1)}))

    assert len(table._by_identity) <= 100
    assert len(table._shape_by_identity) <= 100
    assert len(table) == 35
