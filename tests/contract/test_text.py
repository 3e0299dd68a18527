"""Text is stored as it is, whatever it would mean in a statement."""

import pytest
from sqlalchemy.exc import DataError

from muster.store.store import SqlStore
from tests.contract.ledger import Ledger, gang

ODD = 'it\'s "odd" \\ \\x41 {a,b} \x1f NULL; COMMIT; $1 %s \n\t\u00e9\U0001f680'


@pytest.mark.parametrize("size", [1, 3, 600], ids=["alone", "with others", "with many"])
@pytest.mark.parametrize("name", [ODD, "", "NULL", "'", '"', "\\", "\x1f"], ids=repr)
def test_names_come_back_as_they_were(ledger: Ledger, name: str, size: int) -> None:
    made = ledger.committed_add(gang(name, size))

    assert list(ledger.objects().values()) == made


def test_odd_names_are_found_again(ledger: Ledger) -> None:
    first, second, third = ledger.committed_add(gang(ODD, 3))

    ledger.committed_remove([first, third])

    assert list(ledger.objects().values()) == [second]


@pytest.mark.parametrize("size", [2, 600])
def test_text_that_postgresql_cannot_hold_is_refused(postgres_database: str, size: int) -> None:
    store = SqlStore(postgres_database)
    store.open()
    ledger = Ledger(store)

    with pytest.raises(DataError):
        ledger.committed_add(gang("a\0b", size))

    assert Ledger(store).objects() == {}
    store.close()
