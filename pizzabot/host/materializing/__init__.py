"""Materializers: run one for a bundle, check what it made, switch it in as a whole, keep the last good version."""
