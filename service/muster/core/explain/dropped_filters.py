"""Profiles without one filter: what placement would be if pods, or nodes, did not have that constraint."""

from __future__ import annotations

from dataclasses import replace

from muster.core.framework import Profile

CORDON = "NODE_UNSCHEDULABLE"
_OF_THE_SAME = {"TOPOLOGY_SPREAD_KEY": ("TOPOLOGY_SPREAD",)}
"""Filters of one constraint: whoever drops it meets neither."""


def without_filter(profile: Profile, code: str) -> Profile | None:
    """The profile without the filter of this code, and without those of the same constraint; None if it has none."""
    dropped = {code, *_OF_THE_SAME.get(code, ())}
    node_filters = tuple(item for item in profile.node_filters if item.code not in dropped)
    pod_filters = tuple(item for item in profile.pod_filters if item.code not in dropped)
    if (node_filters, pod_filters) == (profile.node_filters, profile.pod_filters):
        return None
    return replace(profile, node_filters=node_filters, pod_filters=pod_filters)
