"""What is packed unpacks to the same column, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.store import columns

INTEGERS = st.lists(st.one_of(st.integers(0, 2**63 - 1), st.just(7)))
WORDS = st.lists(st.sampled_from(["", "a", "ab", "node-1", "ü", '"']))
NAMES = st.lists(st.one_of(st.text(max_size=8), st.from_regex(r"gang-[0-9]{1,3}", fullmatch=True)))
UIDS = st.lists(
    st.one_of(
        st.uuids().map(str),
        st.uuids().map(lambda uid: str(uid).upper()),
        st.text(max_size=4),
        st.text("-0123456789abcdef", min_size=36, max_size=36),
    )
)


@given(INTEGERS)
def test_integers(column: list[int]) -> None:
    assert columns.unpack_integers(columns.pack_integers(column), len(column)) == column


@given(st.lists(st.one_of(st.none(), st.integers(0, 9))))
def test_optional_integers(column: list[int | None]) -> None:
    assert columns.unpack_optionals(columns.pack_optionals(column), len(column)) == column


@given(WORDS)
def test_words(column: list[str]) -> None:
    assert columns.unpack_words(columns.pack_words(column), len(column)) == column


@given(NAMES)
def test_names(column: list[str]) -> None:
    assert columns.unpack_names(columns.pack_names(column)) == column


@given(UIDS)
def test_uids(column: list[str]) -> None:
    assert columns.unpack_uids(columns.pack_uids(column)) == column


@given(st.lists(st.uuids().map(str), min_size=1))
def test_uuids_take_sixteen_bytes_each(column: list[str]) -> None:
    packed = columns.pack_uids(column)

    assert isinstance(packed, bytes)
    assert len(packed) == 16 * len(column)
    assert columns.unpack_uids(packed) == column


@pytest.mark.parametrize(
    ("names", "packed"),
    [
        (["gang-1", "gang-2"], ("gang-", ["1", "2"])),
        (["gang-1", "other", "gang-2"], ("", ["gang-1", "other", "gang-2"])),
        (["gang-1", "gang-1\0gang-1", "gang-1"], ("gang-1", ["", "\0gang-1", ""])),
        (["alone"], ("alone", [""])),
    ],
    ids=["first and last", "another between", "a mark in a name", "one"],
)
def test_names_are_packed_by_the_longest_beginning_of_all(
    names: list[str], packed: tuple[str, list[str]]
) -> None:
    assert columns.pack_names(names) == packed


@pytest.mark.parametrize(
    "changed",
    [
        ("0f8fad5b-d9cb-469f-a165-70867728950e-1", "0f8fad5b-d9cb-469f-a165-708677289"),
        ("0F8FAD5B-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("0f8fad5b-d9cb-469f-a165-70867728950\0", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("0f8fad5b-d9cb-469f-a165-7086772895--", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("", ""),
    ],
    ids=["too long and too short", "capitals", "a mark", "too many hyphens", "none"],
)
def test_uids_of_another_form_stay_texts(changed: tuple[str, ...]) -> None:
    assert columns.pack_uids(changed) == list(changed)
    assert columns.pack_uids(()) == []


@given(st.lists(st.uuids().map(str), max_size=2 * columns.FEW), st.integers(0, 2 * columns.FEW))
def test_what_identifies_few_pods_is_kept_as_it_is_and_read_like_that_of_many(
    uids: list[str], count: int
) -> None:
    names, packs = [f"gang-{number}" for number in range(count)], columns.Packs()

    packed_names, packed_uids = packs.names.of(names), packs.uids.of(uids)

    assert columns.unpack_names(packed_names) == names
    assert columns.unpack_uids(packed_uids) == uids
    assert (packed_names == ("", names)) == (count <= columns.FEW)
    assert isinstance(packed_uids, list) == (len(uids) <= columns.FEW)
