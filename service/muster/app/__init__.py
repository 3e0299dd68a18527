"""The running service: settings, the one place where its parts are put together, start and end of the process."""
