"""The bounded search that follows a failed greedy placement (KEP-4671): what it asks is in `problem`, its door `search`."""
