"""Filter: node selector and required node affinity. Score: preferred node affinity.

The score of a node is the weight of the terms that it meets as a share of the weight of all terms, so that it
reads one node and the pod alone; upstream scales by the best node instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.framework import MAX_SCORE
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.model.meta import SelectorRequirement
from muster.model.pod import NodeSelectorTerm, PodSpec
from muster.model.selectors import IN, NAME_FIELD, NOT_IN, value_test


@dataclass(frozen=True)
class NodeAffinityFilter:
    code = "NODE_AFFINITY"
    message = "node(s) didn't match the pod's node affinity/selector"

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        return required_nodes(signature.spec, nodes)


@dataclass(frozen=True)
class NodeAffinityScore:
    def score(self, signature: Signature, nodes: NodeTable) -> IntArray | None:
        affinity = signature.spec.affinity
        node_affinity = affinity.node_affinity if affinity is not None else None
        if node_affinity is None or not any(item.weight for item in node_affinity.preferred):
            return None
        matched = np.zeros(nodes.size, dtype=np.int64)
        for item in node_affinity.preferred:
            matched += item.weight * _term_nodes(item.preference, nodes)
        return matched * MAX_SCORE // sum(item.weight for item in node_affinity.preferred)


def required_nodes(spec: PodSpec, nodes: NodeTable) -> BoolArray | None:
    """True per slot that meets the node selector and the required node affinity; None if there is no demand."""
    mask: BoolArray | None = None
    if spec.node_selector:
        mask = _all_met(
            (SelectorRequirement(key, IN, (value,)) for key, value in spec.node_selector.items()), nodes
        )
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return mask
    any_term = np.zeros(nodes.size, dtype=np.bool_)
    for term in affinity.required:
        any_term |= _term_nodes(term, nodes)
    return any_term if mask is None else mask & any_term


def _term_nodes(term: NodeSelectorTerm, nodes: NodeTable) -> BoolArray:
    if not term.match_expressions and not term.match_fields:
        return np.zeros(nodes.size, dtype=np.bool_)
    mask = _all_met(term.match_expressions, nodes)
    for requirement in term.match_fields:
        mask &= _field_nodes(requirement, nodes)
    return mask


def _all_met(requirements: Iterable[SelectorRequirement], nodes: NodeTable) -> BoolArray:
    mask = np.ones(nodes.size, dtype=np.bool_)
    for requirement in requirements:
        mask &= nodes.column(requirement.key).mask(value_test(requirement))
    return mask


def _field_nodes(requirement: SelectorRequirement, nodes: NodeTable) -> BoolArray:
    """A node's name is the only field, and In and NotIn the operators that make sense of it."""
    mask = np.zeros(nodes.size, dtype=np.bool_)
    if requirement.key == NAME_FIELD and requirement.operator in (IN, NOT_IN):
        mask[nodes.slots_of(requirement.values)] = True
        return mask if requirement.operator == IN else ~mask
    return mask
