"""The site: its template, what can be found by looking, and taking that back into the file."""
