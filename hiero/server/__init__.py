"""Translation over HTTP: models in memory, JSON, and a page that shows how a translation was made."""
