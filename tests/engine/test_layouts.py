"""Which hierarchies have a layout that no cycle may try, and what is said of them."""

import pytest

from muster.engine import layouts
from muster.engine.cluster_state import ClusterState
from muster.engine.layouts import layout_faults
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from tests.engine.tree_cluster import TreeCluster, composite, leaf, node, pods, template, workload

ROOT = composite("root")


def faults(*objects: ClusterObject) -> dict[str, str]:
    """Code and message of each fault of the tree whose root is called "root"."""
    trees = TreeCluster()
    trees.apply(*objects)
    return dict(layout_faults(trees.cluster.state, ROOT.key))


def chain(length: int) -> list[ClusterObject]:
    """A root with a composite below a composite, and a leaf at the end: so many levels."""
    middle = [
        composite(f"c-{level}", parent=f"c-{level - 1}" if level > 2 else ROOT) for level in range(2, length)
    ]
    return [ROOT, *middle, leaf("g", parent=middle[-1])]


def test_a_tree_of_four_levels_of_any_mix_of_policies_is_sound() -> None:
    groups: list[ClusterObject] = [
        ROOT,
        composite("c-2", 1, parent=ROOT),
        composite("c-3", parent="c-2"),
        leaf("g", 3, parent="c-3"),
    ]

    assert faults(*groups, leaf("beside", parent=ROOT)) == {}


def test_a_fifth_level_is_too_deep() -> None:
    assert faults(*chain(5)) == {
        "TREE_TOO_DEEP": "the hierarchy has a depth of 5 levels, at most 4 are allowed: PodGroup default/g"
    }


def test_a_very_long_chain_is_just_too_deep() -> None:
    found = faults(*chain(3_000))

    assert found["TREE_TOO_DEEP"].startswith("the hierarchy has a depth of 3000 levels")
    assert found["TREE_TOO_DEEP"].endswith(" and 2993 more")


def test_a_tree_of_more_groups_than_are_allowed_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MOST_GROUPS_A_UNIT", 3)
    two = [leaf("a", parent=ROOT), leaf("b", parent=ROOT)]

    assert faults(ROOT, *two) == {}
    assert faults(ROOT, *two, leaf("c", parent=ROOT)) == {
        "TOO_MANY_GROUPS": "the hierarchy has 4 groups, at most 3 are allowed"
    }


def test_two_workloads_in_one_tree_clash() -> None:
    assert faults(composite("root", workload="one"), leaf("g", parent="root", workload="two")) == {
        "SEVERAL_WORKLOADS": "groups refer to different Workloads: CompositePodGroup default/root to 'one', "
        "PodGroup default/g to 'two'"
    }


def test_groups_of_different_priority_clash() -> None:
    assert faults(composite("root", priority=1_000), leaf("g", parent="root", priority=100)) == {
        "GROUP_PRIORITY_CLASH": "groups differ in priority: CompositePodGroup default/root has 1000, "
        "PodGroup default/g has 100"
    }


def test_what_is_disrupted_whole_has_nothing_below_that_is_not() -> None:
    whole = composite("root", whole=True)

    assert faults(whole, leaf("a", 1, parent="root", whole=True), leaf("b", 1, parent="root")) == {
        "DISRUPTION_MODE_CLASH": "disruption modes clash: CompositePodGroup default/root is disrupted as a whole, "
        "PodGroup default/b below it is not"
    }


def test_below_what_is_disrupted_singly_anything_goes() -> None:
    assert faults(ROOT, leaf("a", 1, parent="root", whole=True), leaf("b", 1, parent="root")) == {}


TEMPLATES = workload(
    "wl",
    composites=(
        template(
            "t-root", composites=(template("t-mid", leaves=(template("t-low"),)),), leaves=(template("t-g"),)
        ),
    ),
)


@pytest.mark.parametrize(
    ("groups", "code", "message"),
    [
        pytest.param(
            [ROOT, leaf("g", parent=ROOT, template="t-none")],
            "TEMPLATE_UNKNOWN",
            "Workload wl has no template t-none for PodGroup default/g",
            id="unknown",
        ),
        pytest.param(
            [ROOT, leaf("g", parent=ROOT, template="t-mid")],
            "TEMPLATE_OF_OTHER_KIND",
            "template t-mid of Workload wl is for a CompositePodGroup, not for PodGroup default/g",
            id="of the other kind",
        ),
        pytest.param(
            [ROOT, leaf("low", parent=ROOT)],
            "TEMPLATE_ELSEWHERE",
            "template t-low of Workload wl is below template t-mid, but PodGroup default/low is below "
            "CompositePodGroup default/root of template t-root",
            id="of another parent",
        ),
        pytest.param(
            [composite("root", template="t-mid")],
            "TEMPLATE_ELSEWHERE",
            "CompositePodGroup default/root is a root, but template t-mid of Workload wl is below t-root",
            id="of a child, for a root",
        ),
    ],
)
def test_a_template_must_be_the_groups_own(groups: list[ClusterObject], code: str, message: str) -> None:
    assert faults(TEMPLATES, *groups) == {code: message}


def test_templates_of_a_workload_that_is_not_known_may_still_come() -> None:
    assert faults(ROOT, leaf("g", parent=ROOT, template="t-none")) == {}


def test_a_root_pod_group_without_a_workload_is_sound() -> None:
    trees = TreeCluster()
    alone = leaf("alone", 2, workload="")
    trees.apply(alone, TEMPLATES)

    assert layout_faults(trees.cluster.state, alone.key) == ()


def test_each_broken_rule_is_told() -> None:
    found = faults(TEMPLATES, ROOT, leaf("g", parent=ROOT, template="t-none", priority=5))

    assert list(found) == ["GROUP_PRIORITY_CLASH", "TEMPLATE_UNKNOWN"]


def test_only_trees_whose_groups_or_workload_changed_are_checked_and_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees = TreeCluster(node("n"))
    checked: list[str] = []
    real = layouts.layout_faults

    def noted(state: ClusterState, root: ObjectKey) -> layouts.Faults:
        checked.append(root.name)
        return real(state, root)

    monkeypatch.setattr(layouts, "layout_faults", noted)
    big = [leaf(f"g-{i}", 2, parent="big", workload="wl-2") for i in range(100)]

    trees.apply(ROOT, leaf("g", 2, parent=ROOT), composite("big", workload="wl-2"), *big)
    assert sorted(checked) == ["big", "root"]
    checked.clear()
    trees.apply(*(pod for group in big for pod in pods(group, 2)))
    trees.cycles()
    assert checked == []
    trees.apply(workload("wl-2", leaves=(template("t-g"),)))
    assert checked == ["big"]
