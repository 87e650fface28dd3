"""From YAML to a typed configuration and a model."""
