"""Threads: created, read, shown as LangGraph's clients know them, deleted with everything that hangs on them."""
