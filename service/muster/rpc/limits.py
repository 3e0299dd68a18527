"""What one server takes and gives; GetServerInfo tells it."""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.tree import MOST_GROUPS_A_UNIT, MOST_PODS_A_UNIT

MEBIBYTE = 1024 * 1024
MAX_REQUEST_BYTES = 64 * MEBIBYTE
MAX_RESPONSE_BYTES = 3 * MEBIBYTE
# What lists of a page may take, so that tokens, counts and tags still fit below MAX_RESPONSE_BYTES.
PAGE_BYTES = MAX_RESPONSE_BYTES - 64 * 1024
MAX_OBJECT_BYTES = MEBIBYTE
MAX_OBJECTS = 20_000
DEFAULT_PAGE_SIZE = 500
MAX_PAGE_SIZE = 5_000
MAX_PENDING_SHOWN = 500
MAX_GROUPS_PER_HIERARCHY = MOST_GROUPS_A_UNIT
MAX_PODS_PER_UNIT = MOST_PODS_A_UNIT
MAX_REQUEST_ID_LENGTH = 128
MAX_WAIT_SECONDS = 600
MAX_SIMULATE_SECONDS = 60.0
MAX_SIMULATED_UNITS = 1_000
WATCH_EVENTS = 200
WATCH_BYTES = MEBIBYTE
APPLY_STREAM_IN_WORK = 4


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """Limits that a server may be given otherwise: tests make them small."""

    unary_calls: int = 1_000
    watches: int = 2_000
    deadline_seconds: float = 30.0
    simulate_seconds: float = 60.0
    bookmark_seconds: float = 8.0
    watcher_seconds: float = 10.0
    # Clients may ping every 5 s, with or without calls; a little less, since their clocks are not ours.
    ping_seconds: float = 4.5
    kept_lists: int = 256
    kept_list_seconds: float = 300.0
