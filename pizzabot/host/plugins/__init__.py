"""What plugins offer becomes objects of this host: contexts, settings with their secrets, creation off the loop."""
