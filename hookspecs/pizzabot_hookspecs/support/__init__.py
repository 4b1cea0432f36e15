"""What several plugins need, standard library only: `references`, `redaction`, `processes`, `paths`, `questions`."""
