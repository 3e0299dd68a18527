"""Services that all tests of the console share, since they only look: one with a cluster, one that wants tokens."""

from collections.abc import Iterator

import pytest

from tests.console.served import Served, service
from tests.console.world import CLUSTER, write_racks, write_trace, write_waiting

TOKEN = "look-token"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that wants a token of whoever reads."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tokens").write_text(f"eyes, {TOKEN}, reader\n", encoding="utf-8")
    with service(folder, "--token-file", str(folder / "tokens")) as running:
        yield running


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose cluster was replayed, has racks, a tree that runs and one that waits."""
    folder = tmp_path_factory.mktemp("console")
    with service(folder) as running:
        running.command("--cluster", CLUSTER, "replay", *write_trace(folder))
        running.command("--cluster", CLUSTER, "apply", "-f", str(write_racks(folder)))
        running.command("--cluster", CLUSTER, "schedule", "compositepodgroup/training", "--wait", "30s")
        running.command("--cluster", CLUSTER, "apply", "-f", str(write_waiting(folder)))
        running.command("--cluster", CLUSTER, "schedule", "podgroup/web", "--wait", "30s")
        yield running
