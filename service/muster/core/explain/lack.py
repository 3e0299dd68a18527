"""What pods that were not placed lack, in amounts: how much they need, how much is free where they may run.

Worked out on the state in which they failed, so that what was placed before them counts.
"""

from __future__ import annotations

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.decision import Reason
from muster.core.domains import Domain
from muster.core.explain.amounts import quantity
from muster.core.explain.explanation import MISSING_NODES, MISSING_ROOM
from muster.core.ordering import Batch
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot


def missing_room(
    snapshot: Snapshot, placer: PodPlacer, batch: Batch, domain: Domain, number: int
) -> list[Reason]:
    """For so many pods of the batch, a reason for each resource that nodes which may take them have too little of."""
    signature = snapshot.signatures[batch.signature]
    slots = _admitted(snapshot, placer, batch, domain)
    lacking = [
        _of_resource(signature, resource, snapshot.nodes.free[snapshot.nodes.row(resource)][slots], number)
        for resource in sorted(signature.requests)
        if (snapshot.nodes.free[snapshot.nodes.row(resource)][slots] < signature.requests[resource]).any()
    ]
    return lacking or [_no_nodes(number, len(slots))]


def _admitted(snapshot: Snapshot, placer: PodPlacer, batch: Batch, domain: Domain) -> Slots:
    """Nodes of the domain that the pods may run on as far as the nodes themselves are concerned."""
    admitted = placer.keys.admission(snapshot.signatures[batch.signature]).admitted & snapshot.nodes.present
    admitted[snapshot.nodes.slots_of(sorted(batch.excluded))] = False
    return np.flatnonzero(admitted) if domain.slots is None else domain.slots[admitted[domain.slots]]


def _of_resource(signature: Signature, resource: str, free: IntArray, number: int) -> Reason:
    request = signature.requests[resource]
    usable = [max(0, amount) for amount in free.tolist()]
    left, most = sum(usable), max(usable)
    needed = number * request
    details = {
        "pods": str(number),
        "resource": resource,
        "request": quantity(resource, request),
        "needed": quantity(resource, needed),
        "free": quantity(resource, left),
        "largest": quantity(resource, most),
        "missing": quantity(resource, max(0, needed - left)),
    }
    text = f"{_more_pods(number)} {details['needed']} {resource}: {details['free']} free"
    if left:
        text += f", at most {details['largest']} on one node"
    return Reason(MISSING_ROOM, text, 0, details)


def _no_nodes(number: int, admitted: int) -> Reason:
    details = {"pods": str(number), "admitted": str(admitted)}
    nodes = "a node that takes it" if number == 1 else "nodes that take them"
    return Reason(MISSING_NODES, f"{_more_pods(number)} {nodes}", 0, details)


def _more_pods(number: int) -> str:
    return f"{number} more {'pod needs' if number == 1 else 'pods need'}"
