"""What every area of files shares: rules of paths, globs, text search, media types; and an area on the disk."""
