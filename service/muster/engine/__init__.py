"""The imperative shell: keeps the state, queues units, has them decided, commits."""
