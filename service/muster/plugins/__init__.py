"""Filters, scores and the placement scorer, one file a plugin, and the profiles that choose among them."""
