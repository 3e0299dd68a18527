"""Finished pods go after a time, trees when all of them has finished, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

from muster.engine.api import PhaseChanged
from muster.engine.finished import AT_ONCE, FinishedPods
from muster.model.meta import OwnerReference
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from tests import dsl
from tests.engine.queue_worlds import QueueWorld, ours
from tests.engine.tree_cluster import composite, leaf, node, pods

KEEP_SECONDS = 100
ROOT = composite("root", 1)
LEFT, RIGHT = leaf("left", 1, parent=ROOT), leaf("right", 1, parent=ROOT)


class FinishingWorld(QueueWorld):
    """Pods of one node, which has room for all."""

    def __init__(self, *objects: ClusterObject) -> None:
        super().__init__(node("n", cpu=1000), *objects)
        self.cycles()
        self.finished = FinishedPods(KEEP_SECONDS * 1_000_000)

    def finish(self, *names: str, phase: str = "Succeeded") -> None:
        for name in names:
            self.reported(name, PhaseChanged(phase, "", ""))

    def removed(self) -> int:
        return self.change(lambda mutation: self.finished.remove(mutation, clients_evict=False))

    def left_after(self, seconds: int) -> set[str]:
        """Names of all but the node once the time has passed."""
        self.removed()
        self.now_us += seconds * 1_000_000
        while self.removed():
            pass
        objects = self.cluster.state.objects
        return {name for kind, held in objects.items() if kind != "Node" for _, name in held}


def alone(name: str, **fields: object) -> Pod:
    return replace(ours(dsl.pod(name)), **fields)  # type: ignore[arg-type]


def test_a_pod_goes_once_it_has_been_finished_for_the_time_and_no_other_does() -> None:
    world = FinishingWorld(alone("done"), alone("failed"), alone("runs"))
    world.finish("done")
    world.finish("failed", phase="Failed")

    assert world.left_after(KEEP_SECONDS - 1) == {"done", "failed", "runs"}
    assert world.left_after(1) == {"runs"}


def test_a_finished_member_stays_while_another_of_its_tree_runs() -> None:
    world = FinishingWorld(ROOT, LEFT, RIGHT, *pods(LEFT, 2), *pods(RIGHT, 1))

    world.finish("left-0", "left-1")

    everything = {"root", "left", "right", "left-0", "left-1", "right-0"}
    assert world.left_after(KEEP_SECONDS) == everything


def test_a_tree_goes_whole_a_time_after_its_last_pod() -> None:
    world = FinishingWorld(ROOT, LEFT, RIGHT, *pods(LEFT, 2), *pods(RIGHT, 1))
    world.finish("left-0", "left-1")
    world.left_after(KEEP_SECONDS)

    world.finish("right-0")

    assert len(world.left_after(KEEP_SECONDS - 1)) == 6
    assert world.left_after(1) == set()


def test_a_pod_whose_group_is_not_there_goes_by_itself() -> None:
    world = FinishingWorld(alone("lost", group="nowhere", node_name="n"))

    world.finish("lost")

    assert world.left_after(KEEP_SECONDS) == set()


def test_what_a_finished_pod_owns_goes_with_it_and_a_finalizer_holds_either() -> None:
    boss = alone("boss", finalizers=("example.com/hold",))
    world = FinishingWorld(boss, alone("other"))
    owners = [OwnerReference(kind="Pod", name=name, uid=world.pod(name).uid) for name in ("boss", "other")]
    world.apply(*(alone(f"of-{each.name}", owner_references=(each,)) for each in owners))
    world.cycles()

    world.finish("boss", "other")

    assert world.left_after(KEEP_SECONDS) == {"boss"}
    assert world.pod("boss").deletion_us is not None
    revision = world.cluster.state.revision
    assert world.left_after(KEEP_SECONDS) == {"boss"}
    assert world.cluster.state.revision == revision


def test_many_go_in_steps() -> None:
    world = FinishingWorld(*(alone(f"p{i}", node_name="n") for i in range(AT_ONCE + 5)))
    world.finish(*(f"p{i}" for i in range(AT_ONCE + 5)))
    world.removed()
    world.now_us += KEEP_SECONDS * 1_000_000

    assert [world.removed() for _ in range(3)] == [AT_ONCE, 5, 0]
