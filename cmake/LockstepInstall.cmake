# Install rules live here; see docs/architecture.md.
