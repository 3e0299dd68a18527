"""What reflection finds by name: all that protobuf's own pool does, and methods.

Tools ask for `package.Service.Method` when they describe or call one; the pool knows such names only by their service.
"""

from __future__ import annotations

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor


class Symbols:
    """As much of a descriptor pool as reflection asks for."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:
        """The file that declares a message, an enum, a service, an extension or a method. Raises KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service, _, method = symbol.rpartition(".")
            found = self._pool.FindServiceByName(service)
            if method not in found.methods_by_name:
                raise
            return found.file

    def FindFileByName(self, name: str) -> FileDescriptor:
        return self._pool.FindFileByName(name)

    def FindMessageTypeByName(self, name: str) -> Descriptor:
        return self._pool.FindMessageTypeByName(name)

    def FindExtensionByNumber(self, message: Descriptor, number: int) -> FieldDescriptor:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Descriptor) -> list[FieldDescriptor]:
        return self._pool.FindAllExtensions(message)
