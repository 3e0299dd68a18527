from dataclasses import replace

from muster.model.meta import POD as POD_KIND
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import keys_of
from muster.validation.admission import Admitted, Answer, NewPods, Outcome, admit_batch, create_batch
from tests.validation.admission.applying import context, created, refused, respec
from tests.validation.examples import BATCH, POD


def _applied(stored: dict[str, ClusterObject] | None = None, batch: object = BATCH) -> list[Answer]:
    found = stored or {}

    def find(key: ObjectKey) -> ClusterObject | None:
        assert (key.kind, key.namespace) == ("Pod", "default")
        return found.get(key.name)

    return admit_batch(batch, find, context())  # type: ignore[arg-type]


def _objects(answers: list[Answer]) -> list[ClusterObject]:
    return [answer.object for answer in answers if isinstance(answer, Admitted)]


def test_a_batch_makes_the_pods_that_single_ones_would_be() -> None:
    single = created(POD)

    first, second = _objects(_applied())

    assert first == single
    assert second == replace(single, name="p-1", ordinal=single.ordinal + 1)


def test_a_batch_of_which_no_pod_exists_makes_the_same_pods_in_columns() -> None:
    batch = replace(BATCH, uids=("", "u-1"))

    made = create_batch(batch, context()) or NewPods([])

    singly = _objects(_applied(batch=batch))
    assert made.pods == singly
    assert keys_of(made.pods) == [ObjectKey(POD_KIND, "default", pod.name) for pod in singly]


def test_each_pod_of_a_batch_gets_its_uid() -> None:
    pods = _objects(_applied(batch=replace(BATCH, uids=("u-0", "u-1"))))

    assert [pod.uid for pod in pods] == ["u-0", "u-1"]


def test_a_batch_falls_into_the_default_namespace() -> None:
    batch = replace(BATCH, template=replace(BATCH.template, namespace=""))

    assert [pod.namespace for pod in _objects(_applied(batch=batch))] == ["default", "default"]


def test_pods_of_a_batch_that_exist_are_updated_or_unchanged() -> None:
    same = created(POD)
    other = replace(created(replace(POD, name="p-1")), labels={"a": "b"})

    answers = _applied({"p-0": same, "p-1": other})

    assert [answer.outcome for answer in answers if isinstance(answer, Admitted)] == [
        Outcome.UNCHANGED,
        Outcome.UPDATED,
    ]


def test_a_refusal_points_into_the_template() -> None:
    batch = replace(BATCH, template=respec(BATCH.template, priority_class_name="gone"))

    answers = _applied(batch=batch)

    assert [refused(answer) for answer in answers] == [[("template.spec.priorityClassName", "INVALID")]] * 2
    assert "Pod default/p-1: " in str(answers[1])
