"""The visitors' uniforms for compiled code: PCG64 in line, a third of the cost of calling NumPy's.

The numbers are those of `numpy.random.PCG64`, bit for bit: a linear congruential generator of 128 bits, of which the
upper half, rotated, and the lower one are folded into 64 (PCG XSL-RR; O'Neill 2014).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from belated.marks import compiled

LOW_32, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
MULTIPLIER_HIGH, MULTIPLIER_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
ROTATION, SIZE, UNUSED = np.uint64(58), np.uint64(64), np.uint64(11)


@compiled
def high_product(x: np.uint64, y: np.uint64) -> np.uint64:
    """The upper 64 bits of the product of two numbers of 64 bits, by halves."""
    low, high = x & LOW_32, x >> HALF
    other_low, other_high = y & LOW_32, y >> HALF
    first, second = low * other_high, high * other_low
    middle = ((low * other_low) >> HALF) + (first & LOW_32) + (second & LOW_32)
    return high * other_high + (first >> HALF) + (second >> HALF) + (middle >> HALF)


class CompiledVisitors(NamedTuple):
    """The state of the generator and its increment, the upper half of each first."""

    words: np.ndarray

    def random(self) -> float:
        """Uniform on [0, 1), with 53 bits, as `Generator.random` has it."""
        words = self.words
        low = words[1] * MULTIPLIER_LOW + words[3]
        high = (
            high_product(words[1], MULTIPLIER_LOW) + words[1] * MULTIPLIER_HIGH + words[0] * MULTIPLIER_LOW + words[2]
        )
        if low < words[3]:  # the sum has carried
            high += np.uint64(1)
        words[0], words[1] = high, low
        folded, by = high ^ low, high >> ROTATION
        turned = (folded >> by) | (folded << ((SIZE - by) & (SIZE - np.uint64(1))))
        return np.int64(turned >> UNUSED) * 2.0**-53


def compiled_visitors(generator: Generator) -> CompiledVisitors:
    """What the generator would draw from now on."""
    state = generator.bit_generator.state["state"]
    halves = [part for number in (state["state"], state["inc"]) for part in divmod(number, 2**64)]
    return CompiledVisitors(np.array(halves, np.uint64))
