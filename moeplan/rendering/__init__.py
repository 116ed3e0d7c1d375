"""From a plugin's rendering to a directory that can be deployed: scrutinised, labelled, explained, written whole."""
