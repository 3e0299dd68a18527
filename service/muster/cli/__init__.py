"""The `muster` command: one client of the API, plus `serve` and `demo`, which start the service."""
