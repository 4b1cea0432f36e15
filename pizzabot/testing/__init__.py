"""What plugin authors test with. Names are imported on first use, so that the pytest plugin costs nothing."""
