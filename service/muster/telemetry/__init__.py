"""Metrics, spans and logs. Listens to the engine and the RPC layer, decides nothing of theirs."""
