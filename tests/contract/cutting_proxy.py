"""A unix socket in front of PostgreSQL's that can cut a connection around its COMMIT."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from enum import Enum
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
SIZE = 1 << 20


class Cut(Enum):
    """When the next COMMIT loses its connection, as seen from the server."""

    BEFORE_COMMIT = "before"
    AFTER_COMMIT = "after"


class CuttingProxy:
    """Listens in `directory`, which takes the place of the server's in a URL."""

    def __init__(self, upstream: Path) -> None:
        # A path of pytest's own may be longer than a socket's may be.
        self.directory = Path(tempfile.mkdtemp(prefix="muster-cut-"))
        self._cut: Cut | None = None
        self.is_down = False
        self._upstream = upstream
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.directory / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_next_commit(self, cut: Cut) -> None:
        self._cut = cut

    @property
    def has_cut(self) -> bool:
        """Whether nothing is left to be cut."""
        return self._cut is None

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self.directory)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._upstream / SOCKET))
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        with client, server:
            self._forward(client, server)
            back.join()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while sent := client.recv(SIZE):
                if self._cut is not None and b"COMMIT\0" in sent:
                    self._sever(client, server, sent)
                    break
                server.sendall(sent)
        _end(client, server)

    def _sever(self, client: socket.socket, server: socket.socket, sent: bytes) -> None:
        # The answer to COMMIT goes nowhere, because the client's side is closed first.
        _end(client)
        if self._cut is Cut.AFTER_COMMIT:
            server.sendall(sent)
        self._cut = None


def _copy(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while answer := server.recv(SIZE):
            client.sendall(answer)
    _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
