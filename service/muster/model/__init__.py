"""The domain model: frozen dataclasses of the standard library alone.

Objects are values: a change makes a new object, so a watch, a snapshot and a transaction can hold
the same one. Mappings inside objects are plain dicts that nobody mutates. Every kind can represent a
wrong object too (two policies, a bad quantity), because validation reads the model.
"""
