"""The live engine."""
