"""The live engine over HTTP, and its page."""
