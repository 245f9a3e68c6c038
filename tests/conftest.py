"""Settings of the tests as a whole."""

from hypothesis import settings

# The same examples in every run: a failure can be repeated. `--hypothesis-profile=search` looks for new ones.
# No deadline: an example that takes long on a busy machine is no failure.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=20_000, deadline=None)
settings.load_profile("same")
