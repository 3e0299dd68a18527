"""The durable store: SQLAlchemy Core on an embedded SQLite file or on PostgreSQL, behind `engine.ports.Store`.

Here SQL begins and ends. `tables` alone knows the names of columns, `sqlite` and `postgresql` alone know that the two
databases differ. What to write and when is the engine's to decide.
"""
