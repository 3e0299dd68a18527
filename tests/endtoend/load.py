"""Clients that give gangs and single pods and take them away again, and keep account of what was acknowledged.

A call that gets no answer is repeated under its request id until it gets one, as the client library does.
"""

from __future__ import annotations

import random
import threading

import grpc

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.service import Service, gang, member

KEPT = 4
MOST = 10
PAUSE_SECONDS = 0.02
DOWN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}
Request = pb.ApplyRequest | pb.DeleteRequest
Response = pb.ApplyResponse | pb.DeleteResponse


def single(name: str) -> Object:
    """A pod of no group."""
    made = member(name, "")
    made.pod.spec.ClearField("scheduling_group")
    return made


class Account:
    """What one client knows: pods that must be there, pods that must not, requests and their answers."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.absent: set[str] = set()
        self.groups: set[str] = set()
        self.answered: list[tuple[Request, Response]] = []


class LoadClient(threading.Thread):
    """Gives units one after the other until told to stop: up to MOST, then all but the last KEPT go, as at the end."""

    def __init__(self, service: Service, name: str, seed: int) -> None:
        super().__init__(name=name)
        self._service = service
        self._random = random.Random(seed)
        self._account = Account()
        self._lock = threading.Lock()
        self._given = 0
        self._units: list[list[str]] = []
        self._leaving: set[str] = set()
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def account(self) -> Account:
        """A copy of what is known at this moment."""
        with self._lock:
            copy = Account()
            copy.present, copy.absent = set(self._account.present), set(self._account.absent)
            copy.groups, copy.answered = set(self._account.groups), list(self._account.answered)
            return copy

    def leaving(self) -> set[str]:
        """All pods whose delete was ever begun."""
        with self._lock:
            return set(self._leaving)

    def stop(self) -> None:
        """Finish the unit in work and end. Raises what ended the client before."""
        self._stopping.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._give(f"{self.name}-{self._given}")
                if len(self._units) > MOST:
                    self._take_all_but_the_last_away()
            self._take_all_but_the_last_away()
        except BaseException as error:  # noqa: BLE001 - raised again by `stop`
            self.failure = error

    def _give(self, name: str) -> None:
        size = self._random.randint(4, 8)
        objects = gang(name, size) if self._random.random() < 0.7 else [single(name)]
        pods = [item.pod.metadata.name for item in objects if item.HasField("pod")]
        request = pb.ApplyRequest(objects=objects, request_id=f"apply-{name}")
        response = self._answered("Apply", request)
        with self._lock:
            self._account.present.update(pods)
            self._account.groups.update([name] if len(pods) > 1 else [])
            self._account.answered.append((request, response))
        self._units.append(pods)
        self._given += 1

    def _take_all_but_the_last_away(self) -> None:
        while len(self._units) > KEPT:
            self._take_away(self._units.pop(0))

    def _take_away(self, pods: list[str]) -> None:
        request = pb.DeleteRequest(request_id=f"delete-{pods[0]}")
        for name in pods:
            request.refs.add(ref=ObjectRef(kind="Pod", name=name))
        with self._lock:
            self._account.present.difference_update(pods)
            self._leaving.update(pods)
        response = self._answered("Delete", request)
        with self._lock:
            self._account.absent.update(pods)
            self._account.answered.append((request, response))

    def _answered(self, method: str, request: Request) -> Response:
        """The answer, whatever it takes."""
        while True:
            try:
                answer: Response = getattr(self._service.cluster, method)(request, timeout=20)
            except grpc.RpcError as error:
                if getattr(error, "code", lambda: None)() not in DOWN:
                    raise
            except ValueError:
                pass  # the channel of the killed process is closed
            else:
                return answer
            self._stopping.wait(PAUSE_SECONDS)
