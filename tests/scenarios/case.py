"""Cases: how they are read from files, and how one is run from its first step to its last.

A case runs against a server that nothing else uses, through the API alone. The first thing that is not as expected
ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.client.client import Client
from muster.client.errors import MusterError
from muster.client.manifests import ManifestError, object_of
from muster.v1.cluster_service_pb2 import ApplyRequest, DeleteRequest, DeleteTarget
from muster.v1.meta_pb2 import ObjectRef
from tests.scenarios.expectations import unmet
from tests.scenarios.observed import Observed
from tests.scenarios.rejections import Refusal, names, refusal_of
from tests.scenarios.short_form import manifest, repeated

REJECTED = "apply_rejected"
CATCH_UP_SECONDS = 30.0
STEPS = ("apply", "delete", "expect", "hold")


class CaseFailureError(AssertionError):
    """Something was not as the case expects; the message says what was seen."""


class CaseFormatError(ValueError):
    """A case file does not have the format."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file."""

    id: str
    area: str
    note: str
    steps: tuple[tuple[str, Any], ...]


def cases(path: Path) -> list[Case]:
    """The cases of a file in its order. Raises CaseFormatError."""
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [_case(item, path) for item in listed]


def _case(item: Mapping[str, Any], path: Path) -> Case:
    try:
        steps = tuple(next(iter(step.items())) for step in item["steps"])
        case = Case(item["id"], item["area"], item["note"], steps)
    except (KeyError, TypeError, AttributeError) as error:
        raise CaseFormatError(f"{path}: {item!r:.100} lacks {error}") from error
    unknown = [name for name, _ in steps if name not in STEPS]
    if unknown:
        raise CaseFormatError(f"{path}: {case.id} has unknown steps: {', '.join(unknown)}")
    return case


async def run(case: Case, address: str) -> None:
    """Runs a case against the fresh server at the address. Raises CaseFailureError."""
    async with Client(address) as client:
        observed = Observed()
        following = asyncio.create_task(observed.follow(client))
        running = asyncio.create_task(_run_steps(case, _Execution(client, observed)))
        try:
            await asyncio.wait({following, running}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise CaseFailureError(f"the watch ended: {following.exception()!r}")
            running.result()
        finally:
            following.cancel()
            running.cancel()
            await asyncio.gather(following, running, return_exceptions=True)


async def _run_steps(case: Case, execution: _Execution) -> None:
    await execution.begin()
    for number, (verb, content) in enumerate(case.steps, start=1):
        try:
            await execution.step(verb, content)
        except CaseFailureError as failure:
            raise CaseFailureError(f"step {number}, {verb}: {failure}") from failure
    execution.require_no_refusal()


class _Execution:
    """The verbs of a case, and the refusal that the next step must expect."""

    def __init__(self, client: Client, observed: Observed) -> None:
        self._client = client
        self._observed = observed
        self._refusal: Refusal | None = None

    async def begin(self) -> None:
        """Returns once the state at the start has been told."""
        if not await self._observed.reach(0, CATCH_UP_SECONDS):
            raise CaseFailureError("the watch does not tell the state at the start")

    async def step(self, verb: str, content: Any) -> None:
        if verb != "expect" or REJECTED not in content:
            self.require_no_refusal()
        match verb:
            case "apply":
                await self._apply(content)
            case "delete":
                await self._delete(content)
            case "expect":
                await self._expect(content)
            case _:
                await self._hold(content)

    def require_no_refusal(self) -> None:
        if self._refusal is not None:
            raise CaseFailureError(f"the apply before it was refused: {self._refusal.text}")

    async def _apply(self, shorts: list[Mapping[str, Any]]) -> None:
        try:
            objects = [object_of(manifest(single)) for short in shorts for single in repeated(short)]
            response = await self._client.apply(ApplyRequest(objects=objects))
        except (MusterError, ManifestError) as error:
            self._refusal = refusal_of(error)
            return
        await self._catch_up(response.revision)

    async def _delete(self, refs: list[Mapping[str, str]]) -> None:
        targets = [DeleteTarget(ref=ObjectRef(kind=each["kind"], name=each["name"])) for each in refs]
        try:
            response = await self._client.delete(DeleteRequest(refs=targets))
        except MusterError as error:
            raise CaseFailureError(f"the delete was refused: {refusal_of(error).text}") from error
        await self._catch_up(response.revision)

    async def _expect(self, content: Mapping[str, Any]) -> None:
        expected = {key: value for key, value in content.items() if key not in {"within_s", REJECTED}}
        if REJECTED in content:
            self._require_refusal(content[REJECTED]["field"])
        within = float(content.get("within_s", 10))
        if not await self._observed.becomes(lambda: not unmet(expected, self._observed), within):
            raise CaseFailureError(unmet(expected, self._observed))

    async def _hold(self, content: Mapping[str, Any]) -> None:
        expected = {key: value for key, value in content.items() if key != "for_s"}
        start = time.monotonic()
        seen = ""

        def broken() -> bool:
            nonlocal seen
            seen = unmet(expected, self._observed)
            return bool(seen)

        if await self._observed.becomes(broken, float(content.get("for_s", 2))):
            raise CaseFailureError(f"after {time.monotonic() - start:.1f} s {seen}")

    def _require_refusal(self, field: str) -> None:
        refusal, self._refusal = self._refusal, None
        if refusal is None:
            raise CaseFailureError(f"{REJECTED}: {field} should be refused, the apply was accepted")
        if not names(refusal, field):
            raise CaseFailureError(f"{REJECTED}: {field} should be refused, seen: {refusal.text}")

    async def _catch_up(self, revision: int) -> None:
        if not await self._observed.reach(revision, CATCH_UP_SECONDS):
            raise CaseFailureError(f"the watch stands at revision {self._observed.revision}, not {revision}")
