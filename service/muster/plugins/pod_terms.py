"""Pod (anti-)affinity terms with all that they depend on filled in, and the selections of pods they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.pod import Affinity, PodAffinity, PodAffinityTerm
from muster.model.selectors import IN, NOT_IN, labels_match, requirements_of

TermKind = Literal["affinity", "anti_affinity", "preferred", "preferred_anti"]
TERM_KINDS: tuple[TermKind, ...] = ("affinity", "anti_affinity", "preferred", "preferred_anti")


@dataclass(frozen=True)
class Term:
    """Selects pods by labels in `namespaces` (None: all); `requirements` None selects nothing. Weight 0: required."""

    requirements: tuple[SelectorRequirement, ...] | None
    namespaces: frozenset[str] | None
    topology_key: str
    weight: int = 0

    def matches(self, signature: Signature) -> bool:
        if self.requirements is None:
            return False
        if self.namespaces is not None and signature.namespace not in self.namespaces:
            return False
        return labels_match(self.requirements, signature.labels)


@dataclass(frozen=True)
class Terms:
    """All terms of one signature, by kind."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_anti: tuple[Term, ...] = ()

    def of(self, kind: TermKind) -> tuple[Term, ...]:
        terms: tuple[Term, ...] = getattr(self, kind)
        return terms


class _Carried(NamedTuple):
    """Terms that running pods carry towards a signature, for as long as the same kinds of pods run."""

    carriers_version: int
    terms: tuple[Term, ...]


_NO_TERMS = Terms()
_CARRIED = "carried terms"
_MOST_CARRIED = 4_096


@dataclass(frozen=True)
class MatchingAll:
    """Selects pods that match every one of the terms."""

    terms: tuple[Term, ...]
    skips_leaving = False

    def selects(self, signature: Signature) -> bool:
        return all(term.matches(signature) for term in self.terms)


@dataclass(frozen=True)
class Carrying:
    """Selects pods that have the term themselves, so that it binds others."""

    kind: TermKind
    term: Term
    skips_leaving = False

    def selects(self, signature: Signature) -> bool:
        return signature.spec.affinity is not None and self.term in _term_set(self.kind, signature)


def terms_of(signature: Signature) -> Terms:
    """The signature's terms, resolved against its own namespace and labels."""
    return _NO_TERMS if signature.spec.affinity is None else _terms_of(signature)


@lru_cache(maxsize=16384)
def _terms_of(signature: Signature) -> Terms:
    affinity = signature.spec.affinity or Affinity()
    towards = affinity.pod_affinity or PodAffinity()
    away = affinity.pod_anti_affinity or PodAffinity()
    return Terms(
        affinity=tuple(_resolved(term, signature) for term in towards.required),
        anti_affinity=tuple(_resolved(term, signature) for term in away.required),
        preferred=tuple(_resolved(item.term, signature, item.weight) for item in towards.preferred),
        preferred_anti=tuple(_resolved(item.term, signature, item.weight) for item in away.preferred),
    )


@lru_cache(maxsize=16384)
def _term_set(kind: TermKind, signature: Signature) -> frozenset[Term]:
    return frozenset(terms_of(signature).of(kind))


def carried_terms(kind: TermKind, signature: Signature, snapshot: Snapshot) -> tuple[Term, ...]:
    """Terms of that kind of pods that run now which select the signature; each once, in a fixed order."""
    if not snapshot.pods.carriers:
        return ()
    known: dict[tuple[TermKind, int], _Carried] = snapshot.derived.setdefault(_CARRIED, {})
    place, version = (kind, signature.index), snapshot.pods.carriers_version
    carried = known.get(place)
    if carried is None or carried.carriers_version != version:
        if len(known) >= _MOST_CARRIED:
            known.clear()
        carried = known[place] = _Carried(version, _carried_now(kind, signature, snapshot))
    return carried.terms


def _carried_now(kind: TermKind, signature: Signature, snapshot: Snapshot) -> tuple[Term, ...]:
    found: dict[Term, None] = {}
    for index in sorted(snapshot.pods.carriers):
        found |= dict.fromkeys(_carried_towards(kind, snapshot.signatures[index], signature))
    return tuple(found)


@lru_cache(maxsize=65536)
def _carried_towards(kind: TermKind, carrier: Signature, signature: Signature) -> tuple[Term, ...]:
    return tuple(term for term in terms_of(carrier).of(kind) if term.matches(signature))


def _resolved(term: PodAffinityTerm, owner: Signature, weight: int = 0) -> Term:
    return Term(_requirements(term, owner), _namespaces(term, owner), term.topology_key, weight)


def _namespaces(term: PodAffinityTerm, owner: Signature) -> frozenset[str] | None:
    if term.namespace_selector is not None:
        return None
    return frozenset(term.namespaces or (owner.namespace,))


def _requirements(term: PodAffinityTerm, owner: Signature) -> tuple[SelectorRequirement, ...] | None:
    if term.label_selector is None:
        return None
    return (
        *requirements_of(term.label_selector),
        *own_values(term.match_label_keys, IN, owner),
        *own_values(term.mismatch_label_keys, NOT_IN, owner),
    )


def own_values(keys: Iterable[str], operator: str, owner: Signature) -> tuple[SelectorRequirement, ...]:
    """Requirements that compare with the owner's own labels; keys that it lacks ask for nothing."""
    return tuple(
        SelectorRequirement(key, operator, (owner.labels[key],)) for key in keys if key in owner.labels
    )


def selector_requirements(
    selector: LabelSelector | None, keys: Iterable[str], owner: Signature
) -> tuple[SelectorRequirement, ...] | None:
    """A selector together with the owner's own values of some keys; None selects nothing."""
    return None if selector is None else (*requirements_of(selector), *own_values(keys, IN, owner))
