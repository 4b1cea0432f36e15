"""The use cases of the host, one folder each: plain Python against the contract, no framework, no engine, no SQL."""
