"""Files that messages refer to by `attachment://<id>` (spec/01 §6, spec/03 §3)."""
