"""All that a snapshot knows, as one value to compare."""

from __future__ import annotations

from muster.core.snapshot import Snapshot


def state_of(snapshot: Snapshot) -> tuple[object, ...]:
    """Everything but what can be derived; arrays to the byte."""
    nodes, pods = snapshot.nodes, snapshot.pods
    return (
        nodes.free.tobytes(),
        nodes.allocatable.tobytes(),
        nodes.present.tobytes(),
        nodes.unschedulable.tobytes(),
        nodes.taint_codes.tobytes(),
        tuple(nodes.rows.items()),
        tuple(nodes.names),
        [dict(labels) for labels in nodes.labels],
        {signature: dict(by_slot) for signature, by_slot in pods.counts.items()},
        {signature: dict(by_slot) for signature, by_slot in pods.leaving.items()},
        set(pods.carriers),
        dict(pods._places),
        [(item.shape, item.namespace, item.labels, item.spec) for item in snapshot.signatures],
        snapshot.version,
    )
