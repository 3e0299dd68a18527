"""The gRPC face of the service: thin servicers over `engine.api.SchedulingEngine`, and all that guards them."""
