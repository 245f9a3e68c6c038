"""The visitors' generator: bit for bit NumPy's."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from belated import kernels
from belated.visitors import compiled_visitors


@pytest.mark.parametrize("seed", range(20))
def test_the_numbers_are_those_of_numpy(seed: int) -> None:
    kernels.register_marked()

    @numba.njit(**kernels.OPTIONS)
    def fill(visitors: Any, out: np.ndarray) -> None:
        for place in range(len(out)):
            out[place] = visitors.random()

    generator, found = np.random.default_rng(seed), np.zeros(10_000)
    generator.random(seed)
    visitors = compiled_visitors(generator)
    fill(visitors, found)
    assert (found == generator.random(10_000)).all()
    assert (found != np.random.default_rng(seed + 1).random(10_000)).any()
