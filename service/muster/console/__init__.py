"""The web console: pages that show what the API tells, in a browser, for eyes."""
