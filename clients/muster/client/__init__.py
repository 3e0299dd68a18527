"""The client library of Muster: typed calls, retries, watches that resume, and Kubernetes manifests.

Needs the generated stubs in `muster.v1` and nothing of the service. The names are found where they are written:
`client.Client`, `errors.MusterError`, `manifests.read_manifests`, `manifest_writer.write_manifests`.
"""
