"""How far the search gets on questions of medium size: `python tests/bench/search_families.py [--seeds N]`.

A line a family: how many that have a placement were placed, how many that have none were proved to, and CPU
milliseconds of the whole decision. What became of pinched ones is known where the extra `exact` is installed; else
those left open show in the last column. A placement that is found is checked, and so is a proof as far as it can be.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from muster.core.decide import decide  # noqa: E402
from muster.core.decision import Decision, SearchEnd, Status  # noqa: E402
from muster.core.observer import NullObserver  # noqa: E402
from muster.core.pod_placement import placer_of  # noqa: E402
from muster.core.search.packing import Budget, Verdict  # noqa: E402
from muster.core.search.problem import compile_problem  # noqa: E402
from muster.core.tree import Unit  # noqa: E402
from muster.plugins.exact_search import ExactSearch, exact_search_is_installed  # noqa: E402
from tests.bench.families import FAMILIES, Ending, built, layout_of  # noqa: E402
from tests.bench.place import Place  # noqa: E402
from tests.bench.row import Measured, Row  # noqa: E402
from tests.dsl import Cluster  # noqa: E402

SEEDS = 20
FEW_SEEDS = 3
JUDGING = 4_000_000
"""Steps that the exact solver may take for a question that the search left open: half a minute."""


@dataclass(frozen=True)
class Outcome:
    """feasible: None where nobody knows."""

    family: str
    seed: int
    ending: Ending
    feasible: bool | None
    placed: bool
    proved: bool
    greedy: bool
    steps: int
    ms: float

    @property
    def is_wrong(self) -> bool:
        return (self.placed and self.feasible is False) or (self.proved and self.feasible is True)


def main(arguments: Sequence[str]) -> int:
    """Print a line per family; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description="Asks the search questions of medium size, made from seeds.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many of each family and ending")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", choices=FAMILIES, help="one family alone")
    parser.add_argument("--each", action="store_true", help="print a line a question too")
    options = parser.parse_args(arguments)
    say(
        row(
            "FAMILY", ("FEASIBLE", "PLACED", "GREEDY", "INFEASIBLE", "PROVED", "OPEN", "MEDIAN", "P95", "MAX")
        )
    )
    outcomes: list[Outcome] = []
    for family in [options.only] if options.only else FAMILIES:
        of_family = list(outcomes_of(family, range(options.first, options.first + options.seeds)))
        for outcome in of_family if options.each else ():
            say(f"  {outcome}")
        say(line(family, of_family))
        outcomes += of_family
    say(line("all", outcomes))
    return 1 if any(outcome.is_wrong for outcome in outcomes) else 0


def outcomes_of(family: str, seeds: range) -> Iterator[Outcome]:
    """What became of each seed and ending."""
    for seed in seeds:
        for ending in Ending:
            cluster, plan = built(layout_of(family, seed, ending))
            unit, _ = cluster.unit(plan)
            start = time.process_time()
            decision = decide(cluster.snapshot, unit, cluster.profile, NullObserver())
            seconds = time.process_time() - start
            placed = decision.result is not None and decision.result.status is Status.SUCCESS
            yield Outcome(
                family=family,
                seed=seed,
                ending=ending,
                feasible=truth(ending, decision, cluster, unit),
                placed=placed,
                proved=decision.search.end is SearchEnd.EXHAUSTED or is_gated(unit),
                greedy=placed and decision.search.end is SearchEnd.NOT_NEEDED,
                steps=decision.search.steps,
                ms=seconds * 1e3,
            )


def truth(ending: Ending, decision: Decision, cluster: Cluster, unit: Unit) -> bool | None:
    """Whether a placement exists."""
    if ending is not Ending.PINCHED:
        return ending is Ending.PLANTED
    if decision.result is not None and decision.result.status is Status.SUCCESS:
        return True
    if not exact_search_is_installed():
        return False if decision.search.end is SearchEnd.EXHAUSTED else None
    problem = compile_problem(
        cluster.snapshot, unit, cluster.profile, placer_of(cluster.snapshot, cluster.profile)
    )
    verdict = ExactSearch().place(problem, cluster.snapshot.nodes, Budget(JUDGING)).packing.verdict
    return None if verdict is Verdict.UNKNOWN else verdict is Verdict.FOUND


def is_gated(unit: Unit) -> bool:
    """Whether the unit lacks members, so that the service would not even try it."""
    able = sum(child.admissible for child in unit.root.children)
    return bool(unit.root.children) and able < unit.root.minimum


def line(name: str, outcomes: Sequence[Outcome]) -> str:
    """One row of the table."""
    feasible = [outcome for outcome in outcomes if outcome.feasible]
    infeasible = [outcome for outcome in outcomes if outcome.feasible is False]
    times = sorted(outcome.ms for outcome in outcomes)
    counts = (
        len(feasible),
        sum(outcome.placed for outcome in feasible),
        sum(outcome.greedy for outcome in feasible),
        len(infeasible),
        sum(outcome.proved for outcome in infeasible),
        sum(outcome.feasible is None for outcome in outcomes),
    )
    figures = (statistics.median(times), times[len(times) * 95 // 100], times[-1])
    wrong = sum(outcome.is_wrong for outcome in outcomes)
    text = row(name, (*map(str, counts), *(f"{figure:.1f}" for figure in figures)))
    return f"{text}   {wrong} WRONG" if wrong else text


def row(name: str, cells: Sequence[str]) -> str:
    """Cells to the right of a name."""
    return f"{name:18}" + "".join(f"{cell:>11}" for cell in cells)


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)  # noqa: T201


def left_open(_: Place) -> Measured:
    """Percent of questions that were neither placed nor proved to have no placement, beside greedy placement alone."""
    outcomes = [outcome for family in FAMILIES for outcome in outcomes_of(family, range(1, FEW_SEEDS + 1))]
    assert not any(outcome.is_wrong for outcome in outcomes)
    unanswered = sum(not (outcome.placed or outcome.proved) for outcome in outcomes)
    not_greedy = sum(not outcome.greedy for outcome in outcomes)
    seconds = sum(outcome.ms for outcome in outcomes) / 1e3
    return Measured(100 * unanswered / len(outcomes), seconds, 100 * not_greedy / len(outcomes))


ROWS = (Row("search/left-open", "%", left_open, "greedy placement alone"),)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
