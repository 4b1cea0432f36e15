"""Declarative bundles: which there are, what of them is in use, installing and deleting them (spec/01 §9, spec/04)."""
