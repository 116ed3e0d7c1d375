"""Facts as data: what is known of a runtime, each with its source, and the judge that holds manifests against it."""
