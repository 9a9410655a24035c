"""From a spec to rows."""
