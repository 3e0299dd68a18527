import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from muster.rpc.codec import from_timestamp, to_timestamp
from muster.rpc.codec.times import duration_fault, nanos_fault, seconds_text, write_time


@pytest.mark.parametrize("us", [0, 1, 999_999, 1_000_000, 1_700_000_000_123_456, -1, -62_135_596_800_000_000])
def test_a_moment_survives_the_way_to_the_wire_and_back(us: int) -> None:
    assert from_timestamp(to_timestamp(us)) == us


def test_a_moment_before_the_epoch_has_its_nanoseconds_counted_forward() -> None:
    assert to_timestamp(-1) == Timestamp(seconds=-1, nanos=999_999_000)


def test_what_is_finer_than_a_microsecond_is_cut_off() -> None:
    assert from_timestamp(Timestamp(seconds=1, nanos=1_999)) == 1_000_001


def test_a_length_has_seconds_and_nanoseconds() -> None:
    length = Duration()

    write_time(1_500_000, length)

    assert length == Duration(seconds=1, nanos=500_000_000)


@pytest.mark.parametrize(
    ("us", "moment"),
    [
        (0, Timestamp()),
        (1_700_000_000_123_456, Timestamp(seconds=1_700_000_000, nanos=123_456_000)),
        (-1, Timestamp(seconds=-1, nanos=999_999_000)),
    ],
)
def test_what_is_written_takes_the_place_of_what_was_there(us: int, moment: Timestamp) -> None:
    written = Timestamp(seconds=7, nanos=7)

    write_time(us, written)

    assert written == moment


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (Duration(seconds=600), "600"),
        (Duration(seconds=600, nanos=1), "600.000000001"),
        (Duration(nanos=-500_000_000), "-0.5"),
        (Duration(seconds=2**63 - 1, nanos=999_999_999), "9223372036854775807.999999999"),
    ],
)
def test_a_length_is_told_with_all_its_digits(length: Duration, text: str) -> None:
    assert seconds_text(length) == text


@pytest.mark.parametrize(
    ("length", "fault"),
    [
        (Duration(seconds=1, nanos=999_999_999), None),
        (Duration(seconds=-1, nanos=-999_999_999), None),
        (Duration(seconds=1, nanos=-1), "have seconds and nanos of one sign, not 1 and -1"),
        (Duration(seconds=-1, nanos=1), "have seconds and nanos of one sign, not -1 and 1"),
        (Duration(nanos=1_000_000_000), "have nanos from -999999999 to 999999999, not 1000000000"),
        (Duration(nanos=-1_000_000_000), "have nanos from -999999999 to 999999999, not -1000000000"),
    ],
)
def test_seconds_and_nanos_that_do_not_go_together_are_no_length(length: Duration, fault: str | None) -> None:
    assert duration_fault(length) == fault


@pytest.mark.parametrize("nanos", [-1, 1_000_000_000, 2**31 - 1])
def test_nanos_of_no_second_are_no_moment(nanos: int) -> None:
    assert nanos_fault(Timestamp(seconds=5, nanos=nanos)) == f"have nanos from 0 to 999999999, not {nanos}"
