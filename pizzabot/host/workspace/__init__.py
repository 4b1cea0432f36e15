"""A thread's own files, versioned: rows in storage, content in blobs, each change a fact in the log (spec/12 §2.1)."""
