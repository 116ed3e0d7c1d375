"""An OpenAI-compatible server that misbehaves in every way a collector must see through."""
