"""The record of a replayed trace: decisions made again come out equal.

MUSTER_RERUNS says how many of them (60 if it does not); MUSTER_TRACE_NODES and MUSTER_TRACE_GANGS name the files of another
trace than the example of the documents, MUSTER_TRACE_LIMIT how many of its gangs.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from muster.cli.main import muster
from tests.simulation.asking import Simulated, code
from tests.simulation.test_rerun import again

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/replay"
RERUNS = int(os.environ.get("MUSTER_RERUNS", "60"))
AT_ONCE = 4


def replayed(cluster: Simulated) -> None:
    nodes = os.environ.get("MUSTER_TRACE_NODES", str(EXAMPLE / "nodes.csv"))
    gangs = os.environ.get("MUSTER_TRACE_GANGS", str(EXAMPLE / "gangs.csv"))
    limit = os.environ.get("MUSTER_TRACE_LIMIT", "60")
    server = ["--server", cluster.service.address, "--cluster", cluster.name]
    trace = ["replay", "--nodes", nodes, "--gangs", gangs, "--limit", limit]
    result = CliRunner().invoke(muster, [*server, *trace])
    assert result.exit_code == 0, result.output


@pytest.mark.timeout(1_800)
def test_decisions_of_a_replayed_trace_come_out_equal(cluster: Simulated) -> None:
    replayed(cluster)
    made = [each for each in cluster.list_decisions() if each.input_digest]
    step = max(1, len(made) // RERUNS)
    chosen = made[::step][:RERUNS]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        reruns = list(pool.map(lambda decision: again(cluster, decision), chosen))

    told = [
        f"{decision.id} {decision.unit.name} {code(decision)}: {list(rerun.differences)} {rerun.not_possible}"
        for decision, rerun in zip(chosen, reruns, strict=True)
        if not (rerun.equal and rerun.same_input)
    ]
    assert not told
    assert len(reruns) >= min(RERUNS, 60)
