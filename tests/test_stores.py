"""The stores that tests ask for are real, empty and apart."""

import sqlalchemy


def _tables(url: str) -> list[str]:
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.begin() as connection:
            names = sqlalchemy.inspect(connection).get_table_names()
            connection.execute(sqlalchemy.text("CREATE TABLE left_behind (x INTEGER)"))
        return names
    finally:
        engine.dispose()


def test_a_store_is_empty_when_a_test_gets_it(store_url: str) -> None:
    assert _tables(store_url) == []


def test_a_store_is_empty_after_another_test_wrote_to_its_own(store_url: str) -> None:
    assert _tables(store_url) == []


def test_the_server_behind_a_postgresql_url_is_a_real_one(postgres_database: str) -> None:
    engine = sqlalchemy.create_engine(postgres_database)
    with engine.connect() as connection:
        version = connection.execute(sqlalchemy.text("SELECT version()")).scalar_one()
    engine.dispose()

    assert version.startswith("PostgreSQL ")
