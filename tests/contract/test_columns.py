"""What is packed unpacks to the same column, whatever it holds."""

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
