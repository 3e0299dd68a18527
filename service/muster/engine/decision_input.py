"""What a decision was made on, for the record: a digest to compare inputs by, and what no object tells.

Together with the objects at the snapshot's revision this is enough to decide again (`rerun`). Costs a unit's groups and
a pass over its ordinals, not its pods one by one.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

import msgspec

from muster.core.framework import Profile
from muster.core.tree import GroupTree, Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.ports import NO_INPUT, DecisionInput
from muster.model.variations import variation

_DIGEST_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode
_input = variation(DecisionInput, "digest", "budget_share", "excluded", "awaited", "stayed", "reserved")


def input_of(cluster: Cluster, unit: Unit, profile: Profile, revision: int) -> DecisionInput:
    """The input of a decision on the snapshot of a revision. Before the decision is committed."""
    excluded, budget_share = _excluded(unit), _share(unit.search_budget_share)
    awaited, stayed = tuple(sorted(cluster.waits.left(unit.key))), sorted(unit.earlier.stayed)
    nominations = unit.earlier.nominations
    parts = (
        revision,
        _profile_digest(profile),
        unit.priority,
        unit.preemption_policy,
        budget_share,
        _tree(unit.root),
        sorted(excluded.items()),
        unit.promised.node_names,
        nominations.pods,
        nominations.nodes,
        nominations.node_index,
        awaited,
        stayed,
    )
    digest = blake2b(_encode(parts), digest_size=_DIGEST_BYTES).hexdigest()
    reserved = _reserved(cluster, unit)
    return _input(NO_INPUT, digest, budget_share, excluded, awaited, tuple(stayed), reserved)


def _reserved(cluster: Cluster, unit: Unit) -> tuple[tuple[int, str, int], ...]:
    """What was kept from the unit for another one; nothing if that ended since, and a rerun then has another input."""
    if not unit.promised.node_names:
        return ()
    held = cluster.reservations.binding(cluster.state, unit.key, unit.priority)
    return () if held is None else held.rows()


def _excluded(unit: Unit) -> dict[int, tuple[str, ...]]:
    """Failed bindings of the unit's own pods."""
    if not unit.excluded_nodes:
        return {}
    own = {pod for leaf in leaves(unit.root) for pod in leaf.pods.ids}
    return {pod: tuple(sorted(nodes)) for pod, nodes in unit.excluded_nodes.items() if pod in own}


def _tree(group: GroupTree) -> tuple[object, ...]:
    """All that a tree says but the indexes of signatures, which each process gives out for itself."""
    return (
        group.key,
        group.is_gang,
        group.minimum,
        group.topology_key,
        group.admissible,
        group.satisfied,
        group.bound_nodes,
        group.pods.ids,
        tuple(map(_tree, group.children)),
    )


def _share(share: Fraction) -> str:
    return "1" if share == 1 else str(share)


@lru_cache(maxsize=64)
def _profile_digest(profile: Profile) -> bytes:
    return blake2b(repr(profile).encode(), digest_size=_DIGEST_BYTES).digest()
