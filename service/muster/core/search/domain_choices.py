"""Which children of groups that can spare some are taken and which are given up, while the domain search tries.

A choice is an unconstrained group that is placed child by child. States are values: going back is forgetting one.
"""

from __future__ import annotations

from dataclasses import dataclass

REQUIRED = -1
"""The choice that a part belongs to if it must be placed."""
State = tuple[tuple[int, int], ...]
"""Per choice, how many children are taken and how many are given up."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`need` of `children`; itself a child of the choice `parent`."""

    need: int
    children: int
    parent: int


def is_open(choices: tuple[Choice, ...], state: State, choice: int) -> bool:
    """Whether the choice, and all that it belongs to, still wants children and can get them."""
    while choice != REQUIRED:
        taken, lost = state[choice]
        known = choices[choice]
        if taken >= known.need or known.children - lost < known.need:
            return False
        choice = known.parent
    return True


def take(choices: tuple[Choice, ...], state: State, choice: int) -> State | None:
    """The state with one more child taken; None if pods were placed in vain."""
    while choice != REQUIRED:
        taken, lost = state[choice]
        state = (*state[:choice], (taken + 1, lost), *state[choice + 1 :])
        if taken + 1 < choices[choice].need:
            break
        choice = choices[choice].parent
    return None if _in_vain(choices, state) else state


def give_up(choices: tuple[Choice, ...], state: State, choice: int) -> State | None:
    """The state with one child less; None if it cannot be spared or pods were placed in vain."""
    while choice != REQUIRED:
        taken, lost = state[choice]
        state = (*state[:choice], (taken, lost + 1), *state[choice + 1 :])
        known = choices[choice]
        if known.children - lost - 1 >= known.need:
            return None if _in_vain(choices, state) else state
        choice = known.parent
    return None


def _in_vain(choices: tuple[Choice, ...], state: State) -> bool:
    """Whether a choice that will not be met has taken children: leaving those out from the start is as good."""
    return any(
        0 < taken < known.need and not is_open(choices, state, index)
        for index, (known, (taken, _)) in enumerate(zip(choices, state, strict=True))
    )
