"""stub"""
from __future__ import annotations
from typing import Any
import numpy as np

def kaplan_meier(waits: Any, ages: Any, waits_counts: Any=None, ages_counts: Any=None) -> Any:
    times, inverse = np.unique(waits, return_inverse=True)
    events = np.bincount(inverse, weights=waits_counts)
    all_t = np.concatenate([waits, ages]); all_c = np.concatenate([np.ones(len(waits)) if waits_counts is None else waits_counts, np.ones(len(ages)) if ages_counts is None else ages_counts])
    risk = np.array([all_c[all_t >= t].sum() for t in times])
    return times, 1 - np.cumprod(1 - events / risk)

def at(curve: Any, t: Any) -> Any:
    i = np.searchsorted(curve[0], t, side="right")
    return np.concatenate([[0.0], curve[1]])[i]

def still_to_come(curve: Any, ages: Any, counts: Any, within: float=np.inf) -> float:
    F = at(curve, ages); G = at(curve, ages + within)
    return float(np.sum(np.where(F < 1, counts * (G - F) / np.where(F<1, 1 - F, 1), 0)))

def time_of_share(curve: Any, ages: Any, counts: Any, share: float) -> float|None:
    whole = still_to_come(curve, ages, counts)
    if whole <= 0: return None
    lo, hi = 0.0, float(curve[0][-1])
    for _ in range(50):
        mid = (lo+hi)/2
        if still_to_come(curve, ages, counts, mid) >= share * whole: hi = mid
        else: lo = mid
    return hi

def law(waits: Any, ages: Any, unit: int, wc: Any=None, ac: Any=None) -> Any:
    from belated.delays import Observed
    if not len(waits): return None
    t, l = kaplan_meier(np.ceil(np.asarray(waits)/unit), np.floor(np.asarray(ages,float)/unit), wc, ac)
    return Observed(t.tolist(), np.clip(l,0,1).tolist())
