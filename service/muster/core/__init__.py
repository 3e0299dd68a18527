"""The pure scheduler: a snapshot and a tree of groups in, a decision out. No clock, SQL, RPC or logging."""
