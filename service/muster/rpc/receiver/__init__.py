"""Speaking gRPC in a process of its own, so that what it costs is not taken from the loop that decides."""
