"""The conformance checks: what ``contract`` runs, and the suites of the testing kit."""
