"""The generator of the documentation site: hooks of mkdocs, and what they make pages from."""
