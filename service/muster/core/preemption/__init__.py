"""Preemption of whole units (KEP-5710): who must leave so that a unit fits that would not fit otherwise."""
