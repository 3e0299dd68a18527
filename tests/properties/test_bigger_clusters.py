"""A tree that a small cluster holds is held by any bigger one, where the search looks at everything.

Greedy placement alone does not have this property: more room may lead an elder sibling into the only rack of a younger
one. Nor has anything with spread constraints, which is why no pod has any here.
"""

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muster.core.decision import SearchEnd
from muster.model.node import Node
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, block, composite, gang, node, pod, pod_group, rack
from tests.dsl.groups import GroupPlan

# Enough to try everything that trees of this size leave open.
EXHAUSTIVE = make_profile({"name": "exhaustive", "search": {"nodeBudget": 1_000_000}})
FREE = st.integers(1, 6)


@st.composite
def leaves(draw: st.DrawFn, name: str) -> GroupPlan:
    """A gang of one to four pods of one to three cpus, in one rack or anywhere."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    pods = tuple(pod(f"{name}-{place}", cpu=str(cpu)) for place, cpu in enumerate(sizes))
    minimum = draw(st.integers(1, len(pods)))
    return pod_group(name, gang(minimum), pods=pods, same=draw(st.sampled_from([None, "rack"])))


@st.composite
def trees(draw: st.DrawFn) -> GroupPlan:
    """A root in one block or anywhere, over leaves and perhaps one group of leaves."""
    children = [draw(leaves(f"leaf-{place}")) for place in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        below = [draw(leaves(f"low-{place}")) for place in range(2)]
        children.append(composite("middle", gang(draw(st.integers(1, 2))), *below))
    minimum = draw(st.integers(1, len(children)))
    return composite("root", gang(minimum), *children, same=draw(st.sampled_from([None, "block"])))


@st.composite
def racks(draw: st.DrawFn) -> list[list[Node]]:
    """Racks of one or two nodes in one or two blocks."""
    made = []
    for place in range(draw(st.integers(1, 3))):
        name = f"r{place}"
        nodes = rack(name, free=draw(FREE))
        if draw(st.booleans()):
            nodes = [*nodes, node(f"node-{name}-b", str(draw(FREE)), labels={"rack": name})]
        made.append(block(draw(st.sampled_from("AB")), nodes))
    return made


@st.composite
def grown(draw: st.DrawFn, small: list[list[Node]]) -> list[list[Node]]:
    """The same racks with a node grown, a node more in one, or a rack more."""
    bigger = [list(nodes) for nodes in small]
    place = draw(st.integers(0, len(small) - 1))
    labels = dict(small[place][0].labels)
    match draw(st.sampled_from(["node grown", "node added", "rack added"])):
        case "node grown":
            more = {**small[place][0].allocatable, "cpu": str(draw(st.integers(6, 9)))}
            bigger[place][0] = replace(small[place][0], allocatable=more, capacity=more)
        case "node added":
            kept = {key: labels[key] for key in ("rack", "block")}
            bigger[place].append(node("added", str(draw(FREE)), labels=kept))
        case _:
            bigger.append(block(draw(st.sampled_from("ABC")), rack("added", free=draw(FREE))))
    return bigger


@given(tree=trees(), small=racks(), choices=st.data())
@settings(max_examples=150, deadline=None)
def test_a_bigger_cluster_never_turns_a_placed_tree_into_an_unplaceable_one(
    tree: GroupPlan, small: list[list[Node]], choices: st.DataObject
) -> None:
    assume(Cluster(*small, profile=EXHAUSTIVE).schedule(tree).code == "SCHEDULED")
    bigger = choices.draw(grown(small))

    result = Cluster(*bigger, profile=EXHAUSTIVE).schedule(tree)

    assert result.decision.search.end is not SearchEnd.BUDGET_SPENT
    assert result.code == "SCHEDULED"
