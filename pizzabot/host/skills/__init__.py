"""Skills: one parser, one catalogue out of every source, who is ready, and what the agent may delegate to."""
