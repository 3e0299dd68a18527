"""Extension points: what a plugin may decide, who asks it when, and what its answer makes the caller do.

Plugins are frozen dataclasses, so that a profile can be compared, hashed and sent to a worker process. All they
read is in the snapshot; they neither change nor keep anything, and answer for all nodes at once, in integers.
Resources are not a plugin: that a pod must fit is part of placement itself (`core.local_keys`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from muster.core.arrays import Amount, Amount_co, BoolArray, IntArray, Slots
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot

if TYPE_CHECKING:
    # A solver answers problems, which are made for a profile.
    from muster.core.search.solver import Solver

MAX_SCORE = 100


class NodeFilter(Protocol):
    """Says which nodes may hold a pod whatever runs on them.

    Called once per shape of pod and version of the nodes. A pod that no node of its domain admits is
    UnschedulableAndUnresolvable: taking pods away would not help. Reads the signature's spec, not its labels.
    """

    @property
    def code(self) -> str:
        """Code of the reason that refused nodes are counted under."""
        ...

    @property
    def message(self) -> str:
        """The reason in words, to follow a number of nodes."""
        ...

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        """True per slot for nodes that it admits; None if it admits all."""
        ...


class PodFilter(Protocol):
    """Says which nodes may hold a pod given the pods that run there now.

    Called only for signatures that it concerns, anew after every change. A pod that only such filters keep out is
    Unschedulable: preemption may help.
    Of the pods that run `concerns` reads only which signatures carry terms (`BoundPods.carriers`), and is asked again
    when those change.
    """

    @property
    def code(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def reads_one_node(self) -> bool:
        """True if a node's verdict depends on that node's pods alone; equal pods may then be placed as a batch."""
        ...

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        """Whether it could refuse such a pod anything at all, by the pods that run now or by its own spec."""
        ...

    def mask(self, signature: Signature, snapshot: Snapshot) -> BoolArray:
        """True per slot for nodes that it admits."""
        ...

    def excludes_itself(self, signature: Signature) -> bool:
        """Whether two such pods can never share a node; asked only if `reads_one_node`."""
        ...


class NodeScore(Protocol):
    """Ranks nodes whatever runs on them, 0 to MAX_SCORE. Called once per shape of pod and version of the nodes."""

    def score(self, signature: Signature, nodes: NodeTable) -> IntArray | None:
        """Score per slot; None if all are equal."""
        ...


class Offer(Protocol[Amount_co]):
    """Amounts of one node, or of many, as they would be with the pod in question placed. Scaled down if huge."""

    def allocatable(self, resource: str) -> Amount_co: ...

    def left(self, resource: str) -> Amount_co:
        """What would be free; negative where the pod does not fit, which the caller will discard."""
        ...


class FitScore(Protocol):
    """Ranks nodes by what would be left on them, 0 to MAX_SCORE, each by its own amounts alone.

    One formula serves one node in plain integers and all nodes in arrays, and must give the same for both.
    """

    def score(self, offer: Offer[Amount]) -> Amount: ...


class PodScore(Protocol):
    """Ranks nodes by the pods that run anywhere. Called only for signatures that it concerns, for each pod anew.

    `concerns` as of filters.
    """

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool: ...

    def score(self, signature: Signature, snapshot: Snapshot, slots: Slots) -> IntArray:
        """Score 0 to MAX_SCORE for each of the slots, which are the nodes that all filters admit."""
        ...


class PlacementView(NamedTuple):
    """A group placed in a candidate domain, for the scorer.

    placed: pods of the subtree, bound ones included. used, allocatable: sums over the domain per requested
    resource, with the group in place.
    """

    placed: int
    used: tuple[int, ...]
    allocatable: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PlacementViews:
    """C candidates in columns. placed: [C]. used, allocatable: one [C] per requested resource."""

    placed: IntArray
    used: tuple[IntArray, ...]
    allocatable: tuple[IntArray, ...]

    def __getitem__(self, place: int) -> PlacementView:
        return PlacementView(
            int(self.placed[place]),
            tuple(int(amounts[place]) for amounts in self.used),
            tuple(int(amounts[place]) for amounts in self.allocatable),
        )


class PlacementScorer(Protocol):
    """Ranks the candidate domains in which a group was placed (KEP-6012). The highest wins, then the first name."""

    def score(self, view: PlacementView) -> tuple[Fraction | int, ...]: ...

    def sort_key(self, view: PlacementView) -> tuple[Any, ...]:
        """Sorts as the score does, the best first: what costs less to make and to compare than fractions."""
        ...

    def ranks(self, views: PlacementViews) -> IntArray:
        """[C] numbers from 0 on, equal for equal scores and higher for higher ones."""
        ...

    def describe(self, view: PlacementView) -> str:
        """What the score is made of, in a few words."""
        ...


ScoreT_co = TypeVar("ScoreT_co", bound="NodeScore | FitScore | PodScore", covariant=True)


@dataclass(frozen=True, slots=True)
class Weighted(Generic[ScoreT_co]):
    """A score plugin and by how much its score is multiplied."""

    plugin: ScoreT_co
    weight: int = 1


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What follows a failed greedy placement (semantics 5.5).

    node_budget: steps that the search may take; 0: greedy only. solver: None for the bounded search.
    """

    node_budget: int = 0
    solver: Solver | None = None


@dataclass(frozen=True, slots=True)
class PreemptionSettings:
    """How hard preemption looks for the least disruption (semantics 5.6).

    move_budget: steps that placing the unit anew and improving on its victims may take; with 0 its pods stay where they
    fit with everybody gone. root_candidates: how many domains of a constrained root are compared.
    eviction_timeout_seconds: how long a unit waits for its victims beyond their grace.
    """

    move_budget: int = 0
    root_candidates: int = 1
    eviction_timeout_seconds: int = 60


@dataclass(frozen=True, slots=True)
class ReservationSettings:
    """Whether room is kept for a unit that others keep from starting (semantics 7).

    after_seconds: how long it has to wait first; None: never.
    """

    after_seconds: int | None = None


@dataclass(frozen=True)
class Profile:
    """How pods of one scheduler name are placed: enabled plugins in the order in which they are asked."""

    name: str
    placement_scorer: PlacementScorer
    node_filters: tuple[NodeFilter, ...] = ()
    pod_filters: tuple[PodFilter, ...] = ()
    node_scores: tuple[Weighted[NodeScore], ...] = ()
    fit_scores: tuple[Weighted[FitScore], ...] = ()
    pod_scores: tuple[Weighted[PodScore], ...] = ()
    search: SearchSettings = SearchSettings()
    preemption: PreemptionSettings = PreemptionSettings()
    reservation: ReservationSettings = field(default=ReservationSettings(), repr=False)
    """Not in the digest of a decision's input: what is kept from a unit is, and nothing else of it bears on a decision."""

    def __hash__(self) -> int:
        """By name, since it is looked up for every decision; equality compares all."""
        return hash(self.name)
