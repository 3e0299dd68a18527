"""The server of a service that has a receiver: starts the process, tells it what to serve, and starts another if it dies."""

from __future__ import annotations

import asyncio
import logging
import socket
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from muster.engine.child_process import command_of
from muster.rpc.addresses import Address, AddressError
from muster.rpc.call_server import MethodHandler, Options
from muster.rpc.receiver.relayed_calls import Method, RelayedCalls, method_of
from muster.rpc.receiver.wire import Service, Wire, Word

STOP_SECONDS = 1.0
"""On top of what calls in work are given, before a receiver that does not stop is killed."""
AGAIN_SECONDS = 0.5
MOST_AGAIN_SECONDS = 8.0
"""Between tries to start a receiver in the place of one that died, from one to the next twice as long."""
_ANSWERS = ("listening", "started")
_LOG = logging.getLogger(__name__)


class ReceiverLostError(Exception):
    """The process ended before it answered."""

    def __str__(self) -> str:
        return "the receiver ended"


class _Link:
    """One receiver, and what it is asked. `ended` is set once it cannot be talked to any more."""

    def __init__(self, process: Process, methods: Mapping[str, Method]) -> None:
        self.process = process
        self.ended = asyncio.Event()
        self.wire = Wire(self._hear, self._end)
        self._calls = RelayedCalls(methods, self.wire.say)
        self._asked: asyncio.Future[Word] | None = None

    async def ask(self, *word: object) -> Word:
        """Say it, and return the answer. Raises ReceiverLostError."""
        asked: asyncio.Future[Word] = asyncio.get_running_loop().create_future()
        self._asked = asked
        if self.ended.is_set():
            raise ReceiverLostError
        self.wire.say(word)
        return await asked

    async def reap(self) -> None:
        """Kill what is left of the process."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    def _hear(self, word: Word) -> None:
        if word[0] in _ANSWERS:
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(word)
        else:
            self._calls.hear(word)

    def _end(self) -> None:
        self.ended.set()
        self._calls.leave_all()
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(ReceiverLostError())


class RemoteServer:
    """See CallServer. Calls that a receiver has when it dies are cancelled; their callers see a lost connection.

    `on_restart` is called for every try to have another one.
    """

    def __init__(self, options: Options, on_restart: Callable[[], None]) -> None:
        self.is_serving = False
        self._on_restart = on_restart
        self._options = [(name, value) for name, value in options]
        self._methods: dict[str, Method] = {}
        self._services: list[Service] = []
        self._addresses: list[Address] = []
        self._link: _Link | None = None
        self._keeping: asyncio.Task[None] | None = None

    def register(
        self, service: str, handlers: Mapping[str, MethodHandler], known: Collection[str] = ()
    ) -> None:
        """See CallServer."""
        kinds = {
            method: (bool(handler.request_streaming), bool(handler.response_streaming))
            for method, handler in handlers.items()
        }
        self._services.append((service, kinds, [method for method in handlers if method in known]))
        self._methods.update({f"/{service}/{name}": method_of(handler) for name, handler in handlers.items()})

    async def listen(self, address: Address) -> int:
        """See CallServer."""
        port = await self._listened(self._link or await self._begun(), address)
        # Another receiver must be where this one was, not on any port.
        self._addresses.append(address if address.path else address._replace(text=address.called(port)))
        return port

    async def start(self) -> None:
        """See CallServer."""
        link = self._link or await self._begun()
        await link.ask("start")
        self.is_serving = True
        self._keeping = asyncio.create_task(self._keep(link), name="receiver")

    async def stop(self, seconds: float) -> None:
        """See CallServer."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        self.is_serving = False
        link, self._link = self._link, None
        if link is None:
            return
        link.wire.say(("stop", seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + STOP_SECONDS):
                await link.ended.wait()
        await link.reap()

    async def _begun(self) -> _Link:
        """A process that knows what to serve."""
        ours, theirs = socket.socketpair()
        command = command_of("muster.rpc.receiver.process", theirs.fileno())
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, pass_fds=(theirs.fileno(),)
            )
        link = _Link(process, self._methods)
        await asyncio.get_running_loop().create_unix_connection(lambda: link.wire, sock=ours)
        link.wire.say(("serve", self._options, self._services))
        self._link = link
        return link

    async def _listened(self, link: _Link, address: Address) -> int:
        credentials = None if address.credentials is None else tuple(address.credentials)
        try:
            _, port, why_not = await link.ask("listen", address.text, credentials, address.mode)
        except ReceiverLostError as error:
            raise AddressError(f"cannot listen on {address.text}: {error}") from error
        if why_not:
            raise AddressError(why_not)
        return int(port)

    async def _keep(self, link: _Link) -> None:
        """Have another process in the place of each one that ends, on the same addresses."""
        while True:
            await link.ended.wait()
            self.is_serving = False
            await link.reap()
            _LOG.error("the receiver ended", extra={"status": link.process.returncode})
            link = await self._replaced()
            self.is_serving = True
            _LOG.info("a new receiver serves")

    async def _replaced(self) -> _Link:
        pause = AGAIN_SECONDS
        while True:
            self._on_restart()
            try:
                link = await self._begun()
                for address in self._addresses:
                    await self._listened(link, address)
                await link.ask("start")
            except (AddressError, ReceiverLostError, OSError) as error:
                _LOG.error("no new receiver serves yet", extra={"reason": f"{error}"})
                if self._link is not None:
                    await self._link.reap()
                await asyncio.sleep(pause)
                pause = min(2 * pause, MOST_AGAIN_SECONDS)
            else:
                return link
