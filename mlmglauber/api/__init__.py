"""The functions of the package for Python: models, chains, measures and records, without a command line."""
