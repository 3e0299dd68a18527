"""Nouns that build a cluster and a tree of groups, one verb that schedules, and what a test reads off the result.

After each `schedule` the harness checks, unasked: the snapshot is as before, no node is over-committed, no group
that reports Success lacks members, and a second run decides the same.
"""

from tests.dsl.cluster import Cluster
from tests.dsl.groups import basic, composite, gang, pod, pod_group
from tests.dsl.nodes import block, node, rack

__all__ = ["Cluster", "basic", "block", "composite", "gang", "node", "pod", "pod_group", "rack"]
