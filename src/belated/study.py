"""A study of one's own, from a TOML file or from the command line, in one grammar.

    means = [0.5, 0.4, 0.3]                    # or a range, "0.25..0.75", with arms = 20
    delay = "geometric:0.01"                   # or {law = "geometric", p = 0.01}, or a list, one law an arm
    rounds = 10000
    policies = ["thompson", "ucb1", {name = "thompson", prior = [2, 2]}]
    replications = 200
    seed = 1

A law or policy is written `name`, `name:value,value` or `name:key=value,key=value`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belated import delays, policies
from belated.inputs import Between, InvalidInput, listed, nearest
from belated.law import Law
from belated.policies import Policy
from belated.scenario import Scenario

DEFAULTS: dict[str, Any] = {
    "policies": ["thompson", "ucb1", "elimination", "split"],
    "replications": 100,
    "seed": 1,
}
LAWS_WITHIN = ("success", "failure", "before", "after", "inner")  # parameters that are laws themselves
KEYS = (
    "means", "arms", "delay", "best_delay", "rewards", "instance", "rounds", "policies", "replications", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class Study:
    """All that `simulate` needs."""

    scenario: Scenario
    policies: tuple[Policy, ...]
    replications: int
    seed: int


def read_toml(path: Path) -> dict[str, Any]:
    """The keys of a study file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InvalidInput(str(path), "is not a text file") from None
    except ValueError as error:  # a number of thousands of digits is not a TOMLDecodeError
        raise InvalidInput(str(path), f"is not TOML: {error}") from None
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None


def study(given: dict[str, Any]) -> Study:
    """The study that these keys describe.

    >>> study({"means": [.5, .4], "delay": "fixed:20", "rounds": 100}).scenario.delay
    Fixed(rounds=20)
    """
    for key in given:
        if key not in KEYS:
            raise nearest("study", "key", key, KEYS)
    for key in ("means", "delay", "rounds"):
        if key not in given:
            raise InvalidInput(key, f"is needed, in the study file or as --{'arms' if key == 'means' else key}")
    asked = {**DEFAULTS, **given}
    means = asked["means"]
    if isinstance(means, str):
        means = value(means, "means")
    scenario = Scenario(
        means=means,
        delay=laws(asked["delay"]),
        rounds=asked["rounds"],
        arms=asked.get("arms"),
        rewards=asked.get("rewards", "bernoulli"),
        best_delay=_best_delay(asked["best_delay"]) if "best_delay" in asked else None,
        instance=asked.get("instance"),
    )
    if not isinstance(asked["policies"], list):
        raise InvalidInput("policies", f"must be a list, got {asked['policies']!r}")
    chosen = tuple(policy(each) for each in asked["policies"])
    return Study(scenario, chosen, asked["replications"], asked["seed"])


def _best_delay(written: Any) -> Law:
    try:
        return law(written)
    except InvalidInput as error:
        raise InvalidInput(f"best_{error.field}", error.message) from None


def arms(text: str) -> dict[str, Any]:
    """The keys that `--arms` stands for: `.5,.4,.3`, or `20x0.25..0.75` for twenty drawn from a range.

    >>> arms("20x0.25..0.75")
    {'arms': 20, 'means': Between(low=0.25, high=0.75)}
    """
    count, times, spread = text.partition("x")
    if times:
        if not count.strip().isdecimal():
            raise InvalidInput(
                "arms", f"must be means, such as .5,.4, or a count and a range, such as 20x0.25..0.75, got {text!r}"
            )
        return {"arms": int(count), "means": value(spread, "means")}
    return {"means": [value(part, "means") for part in text.split(",") if part.strip()]}


def instance(written: str, delay: Sequence[str]) -> tuple[list[float], Law | list[Law]]:
    """The means and laws of one instance, for a bound: arms as in `arms`, and one law or one for each arm.

    >>> instance(".45,.4", ["pareto:1,0.5"])
    ([0.45, 0.4], [Pareto(alpha=1), Pareto(alpha=0.5)])
    """
    means = arms(written)["means"]
    if isinstance(means, Between):
        raise InvalidInput("arms", f"must be means, for a bound is of one instance, got {written!r}")
    return means, laws(delay[0] if len(delay) == 1 else list(delay))


def laws(written: Any) -> Law | list[Law]:
    """One law, or one an arm. A law of one parameter may list values: `pareto:1,0.5` is a law for each of two arms."""
    if isinstance(written, list):
        return [law(each) for each in written]
    if isinstance(written, str):
        name, _, rest = written.partition(":")
        values = rest.split(",")
        if name in delays.LAWS and len(delays.keys(name)) == 1 and len(values) > 1 and "=" not in rest:
            return [law(f"{name}:{each}") for each in values]
    return law(written)


def law(written: Any) -> Law:
    """A law from `name:value,…`, or from a table with `law` and its parameters."""
    if isinstance(written, Law):
        return written
    if isinstance(written, str):
        name, parameters = _parse("delay", written, delays.keys)
    elif isinstance(written, dict):
        parameters = dict(written)
        name = str(parameters.pop("law", ""))
        if not name:
            raise InvalidInput("delay.law", f"is needed, got {written!r}")
    else:
        raise InvalidInput("delay", f'must be a law, such as "geometric:0.01", got {written!r}')
    for key, given in parameters.items():
        if key == "laws":
            parameters[key] = [law(each) for each in listed("delay.laws", given)]
        elif key in LAWS_WITHIN:
            parameters[key] = law(given)
        elif isinstance(given, str):
            parameters[key] = value(given, f"delay.{key}")
    return delays.named(name, **parameters)


def policy(written: Any) -> Policy:
    """A policy from `name:key=value,…`, or from a table with `name` and its parameters."""
    if isinstance(written, Policy):
        return written
    if isinstance(written, str):
        name, parameters = _parse("policies", written, policies.keys)
    elif isinstance(written, dict):
        parameters = dict(written)
        name = str(parameters.pop("name", ""))
        if not name:
            raise InvalidInput("policies.name", f"is needed, got {written!r}")
    else:
        raise InvalidInput("policies", f'must be names, such as "thompson", got {written!r}')
    for key, given in parameters.items():
        if key == "delay":
            made = laws(given)
            parameters[key] = tuple(made) if isinstance(made, list) else made
        elif key == "base":
            parameters[key] = policy(given)
        elif isinstance(given, list):
            parameters[key] = tuple(given)
        elif isinstance(given, str):
            parameters[key] = value(given, f"policies.{key}")
    return policies.named(name, **parameters)


def value(text: str, field: str) -> Any:
    """A number, a range `low..high`, or true or false.

    >>> value("0.25..0.75", "means")
    Between(low=0.25, high=0.75)
    """
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    low, dots, high = text.partition("..")
    try:
        if dots:
            return Between(float(low), float(high))
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except InvalidInput as error:
        raise InvalidInput(field, error.message) from None
    except ValueError:
        raise InvalidInput(field, f"must be a number or a range such as 0.25..0.75, got {text!r}") from None


def _parse(kind: str, text: str, keys: Any) -> tuple[str, dict[str, Any]]:
    """Split `name:value,key=value,…`; what has no key belongs to the next parameter, or to the list before it."""
    name, colon, rest = text.strip().partition(":")
    names = keys(name)
    parameters: dict[str, Any] = {}
    for part in rest.split(",") if colon else []:
        key, equals, given = part.partition("=")
        key = key.strip()
        last = next(reversed(parameters), None)
        if equals:
            parameters[key] = given
        elif last in LAWS_WITHIN and "=" in rest:  # of the law within, as in success=uniform:1,5
            parameters[last] = f"{parameters[last]},{part}"
        elif last is not None and parameters and "=" in rest:
            before, field = parameters[last], f"{kind}.{last}"
            parameters[last] = [*(before if isinstance(before, list) else [value(before, field)]), value(part, field)]
        elif len(parameters) < len(names):
            parameters[names[len(parameters)]] = part
        else:
            raise InvalidInput(kind, f"{name} takes {', '.join(names) or 'no parameters'}, got {text!r}")
    return name, parameters
