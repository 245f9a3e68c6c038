"""The pages: what they show, to whom, what they leave out, and how little they send."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from belated import live, live_charts, live_shown
from belated.live import Experiment, Ledger
from belated.live.summary import without_reading
from belated.service import drawing, keys, reference, views
from belated.service.app import Service
from belated.service.forms import DECODERS
from belated.service.html import File
from belated.service.kept import Kept
from belated.service.routes import table
from live_support import Clock

ODD = '<b>x</b> & "y"/ü'
DAY = 86_400.0
MOST = 100_000  # bytes of an update


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop(ledger_url: str, clock: Clock) -> Ledger:
    return live.open(ledger_url, clock=clock, rng=np.random.default_rng(1), refresh=1)


@pytest.fixture
def client(shop: Ledger) -> Iterator[TestClient]:
    with TestClient(Service(lambda: shop), base_url="http://localhost") as client:
        yield client


def filled(
    shop: Ledger, clock: Clock, name: str, means: dict[str, float], *, days: int, a_day: int, **settings: Any
) -> Experiment:
    """An experiment whose outcomes come late: half of them after a day, or the next half a day later, and so on."""
    test = shop.create(name, list(means), **settings)
    rng = np.random.default_rng(2)
    due: list[tuple[float, str, float]] = []
    for _ in range(2 * days):
        clock.pass_(DAY / 2)
        test.tell_many([(id, reward) for at, id, reward in due if at <= clock.at])
        due = [each for each in due if each[0] > clock.at]
        for decision in test.ask_many(a_day // 2):
            reward = float(rng.random() < means[decision.arm])
            due.append((clock.at + DAY / 2 * rng.geometric(0.5), decision.id, reward))
    return test


def path(name: str) -> str:
    return "/experiments/" + "".join(f"%{byte:02X}" for byte in name.encode())


def text(page: str) -> str:
    """What a person reads."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


# --- What they show ---


def test_the_first_page_says_how_to_begin(client: TestClient) -> None:
    page = client.get("/").text
    assert "No experiment yet" in page
    assert "curl http://localhost/v1/experiments" in page
    assert "from belated.client import Client" in page
    assert 'id="new-experiment"' in page


def test_the_list_says_where_each_experiment_stands(client: TestClient, shop: Ledger, clock: Clock) -> None:
    filled(shop, clock, "letter", {"short": 0.6, "long": 0.2}, days=4, a_day=40)
    shop.create("new one", ["a", "b"])
    shop.create("old one", ["a", "b"]).archive()
    page = client.get("/").text
    assert re.search(r"letter running 160 \d+ % short (0\.\d+|> 0\.999)", text(page).replace("\xa0", " "))
    assert "new one running 0 – nothing known yet" in text(page)
    assert page.index("1 archived") < page.index("old one")
    assert page.count('<svg class="spark"') == 1


def test_a_page_says_it_in_words_numbers_and_pictures(client: TestClient, shop: Ledger, clock: Clock) -> None:
    test = filled(shop, clock, "letter", {"short": 0.6, "long": 0.2}, days=6, a_day=60)
    summary = test.summary()
    page = client.get("/experiments/letter").text
    assert f'aria-live="polite" aria-atomic="true">{summary.verdict}</p>' in page
    assert page.count("aria-live") == 1
    for arm in summary.arms:
        assert f"{arm.asked} {arm.observed} {arm.pending} {arm.successes:.0f}" in text(page)
    for chart in ("beliefs", "allocation", "success", "waits", "coming"):
        assert re.search(rf'id="chart-{chart}"><h3>[^<]*</h3><svg class="chart" role="img" aria-label="[^"]+"', page)
    assert f"some {summary.to_come.expected:.0f} are expected, half within" in text(page)


def test_before_the_first_decision_and_before_the_first_outcome(client: TestClient, shop: Ledger) -> None:
    test = shop.create("letter", ["short", "long"])
    page = client.get("/experiments/letter").text
    assert "No decision yet" in page
    assert "client.ask(&#34;letter&#34;)" in page
    assert '<svg class="chart"' not in page
    test.ask_many(30)
    test.pause("short")  # which is seen at once
    page = client.get("/experiments/letter").text
    assert "30 outcomes are pending. None has come yet" in page
    assert 'id="chart-allocation"' in page
    assert 'id="chart-waits"' not in page


def test_a_window_is_drawn_and_what_it_took_for_failures_is_said(
    client: TestClient, shop: Ledger, clock: Clock
) -> None:
    test = filled(shop, clock, "letter", {"a": 0.6, "b": 0.4}, days=8, a_day=40, silence=live.Failure(after="1d"))
    page = client.get("/experiments/letter").text
    assert "is a failure after 1d" in text(page)
    assert f"{test.summary().arms[0].assumed} by silence" in page
    assert "Dotted: the end of the window" in page


def test_what_is_read_of_silence_is_drawn_and_said(client: TestClient, shop: Ledger, clock: Clock) -> None:
    arms: dict[str, Any] = {"means": {"a": 0.6, "b": 0.4}, "days": 8, "a_day": 40}
    summary = filled(shop, clock, "reads", silence=live.Failure(after="4d"), **arms).summary()
    page = client.get("/experiments/reads").text
    assert "is a failure after 4d; read until then" in text(page)
    assert re.search(r'id="chart-learned"><h3>[^<]*</h3><svg class="chart"', page)
    assert summary.learned is not None
    assert f"learned from {summary.learned.conversions:,}." in page
    assert f"{without_reading(summary)}." in text(page)
    for arm in summary.arms:
        assert f"{arm.successes:.0f} {arm.trials:,.0f} " in text(page)
    filled(shop, clock, "waits", silence=live.Failure(after="4d"), reading="wait", **arms)
    page = client.get("/experiments/waits").text
    assert not any(word in page for word in ("read until then", 'id="chart-learned"', 'id="waited"', "Counts as"))


def test_names_are_escaped_wherever_they_stand(client: TestClient, shop: Ledger) -> None:
    test = shop.create(ODD, ["<i>a</i>", "b\"'c"])
    test.tell(test.ask().id, 1)
    for address in ("/", path(ODD), path(ODD) + "?part=live"):
        page = client.get(address).text
        assert "<b>x" not in page
        assert "<i>a" not in page
        assert "\"'c" not in page
    (address,) = re.findall(r'href="(/experiments/[^"]+)"', client.get("/").text)
    assert ODD in text(client.get(address).text)


def test_with_many_arms_the_best_come_first_and_the_rest_is_folded(
    client: TestClient, shop: Ledger, clock: Clock
) -> None:
    names = {f"headline {place}": 0.9 if place == 150 else 0.1 for place in range(200)}
    test = filled(shop, clock, "headlines", names, days=4, a_day=400)
    page = client.get("/experiments/headlines").text
    top, rest = page.split('<details id="more">')
    assert top.count('<tr role="row" id="arm-') == live_shown.MOST == len(live_charts.LIGHT.arms)
    assert re.findall('<span class="name">([^<]*)', top)[0] == test.summary().leader == "headline 150"
    assert "The other 192 arms" in rest
    assert rest.count('<th scope="row">') == 192
    for part in ("live", "rest"):
        update = client.get(f"/experiments/headlines?part={part}")
        assert 10_000 < len(update.content) < MOST
        assert "<html" not in update.text
    assert '<th scope="row">headline 1<' not in client.get("/experiments/headlines?part=live").text


# --- Who sees what ---


def with_keys(shop: Ledger) -> dict[str, str]:
    """Keys, as the page's cookie holds them."""
    made = {"admin": keys.create(shop, "admin")[1], "reader": keys.create(shop, "reader")[1]}
    made["one"] = keys.create(shop, "reader", "letter")[1]
    return made


def seen(client: TestClient, address: str, key: str) -> Any:
    return client.get(address, headers={"Cookie": f"belated_key={key}"}, follow_redirects=False)


def test_without_a_key_a_page_leads_to_the_login_and_from_there_back(client: TestClient, shop: Ledger) -> None:
    shop.create("letter", ["a", "b"])
    made = with_keys(shop)
    refused = client.get("/experiments/letter?a=b", follow_redirects=False)
    assert (refused.status_code, refused.headers["location"]) == (303, "/login?next=%2Fexperiments%2Fletter%3Fa%3Db")
    assert 'name="next" value="/experiments/letter?a=b"' in client.get(refused.headers["location"]).text
    assert client.get("/experiments/letter?part=live", follow_redirects=False).status_code == 401
    form = {"key": made["reader"], "next": "/experiments/letter?a=b"}
    entered = client.post("/login", data=form, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/experiments/letter?a=b")
    cookie = entered.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in cookie
    assert client.get("/experiments/letter").status_code == 200
    left = client.post("/logout", follow_redirects=False)
    assert 'belated_key=""' in left.headers["set-cookie"]
    assert client.get("/", follow_redirects=False).status_code == 303


def test_over_https_the_cookie_goes_no_other_way(shop: Ledger) -> None:
    with TestClient(Service(lambda: shop), base_url="https://localhost") as client:
        shop.create("letter", ["a", "b"])
        form = {"key": with_keys(shop)["admin"]}
        assert "secure" in client.post("/login", data=form, follow_redirects=False).headers["set-cookie"].lower()


def test_a_wrong_key_is_refused_in_words(client: TestClient, shop: Ledger) -> None:
    keys.create(shop, "admin")
    answer = client.post("/login", data={"key": "belated_wrong", "next": "/"})
    assert answer.status_code == 401
    assert "unknown or revoked" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "/\tx", "x", ""])
def test_the_login_leads_nowhere_else(client: TestClient, shop: Ledger, elsewhere: str) -> None:
    key = keys.create(shop, "admin")[1]
    answer = client.post("/login", data={"key": key, "next": elsewhere}, follow_redirects=False)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("address", ["/login", "/logout"])
def test_a_form_of_another_site_is_refused(client: TestClient, shop: Ledger, address: str) -> None:
    key = keys.create(shop, "admin")[1]
    answer = client.post(address, data={"key": key}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_buttons_are_for_those_who_may_press_them(client: TestClient, shop: Ledger) -> None:
    test = shop.create("letter", ["a", "b"])
    shop.create("other", ["a", "b"])
    made = with_keys(shop)
    page = seen(client, "/experiments/letter", made["admin"]).text
    assert all(word in page for word in ('data-to="stopped"', 'data-to="archived"', 'data-to="paused" data-arm="a"'))
    assert 'id="create-form"' in seen(client, "/", made["admin"]).text
    for key in (made["reader"], made["one"]):
        page = seen(client, "/experiments/letter", key).text
        assert "data-to=" not in page
        assert "<dialog" not in page
        assert 'id="create-form"' not in seen(client, "/", key).text
    test.retire("a")
    test.stop()
    page = seen(client, "/experiments/letter", made["admin"]).text  # a change is seen at once
    assert 'data-to="running"' in page
    assert 'data-arm="a" aria' not in page
    test.archive()
    assert "data-to=" not in seen(client, "/experiments/letter", made["admin"]).text


def test_a_key_for_one_experiment_shows_that_one(client: TestClient, shop: Ledger) -> None:
    shop.create("letter", ["a", "b"])
    shop.create("other", ["a", "b"])
    made = with_keys(shop)
    assert "other" in seen(client, "/", made["reader"]).text
    for part in ("/", "/?part=live"):
        page = seen(client, part, made["one"]).text
        assert "letter" in page
        assert "other" not in page
    refused = seen(client, "/experiments/other", made["one"])
    assert refused.status_code == 404
    assert "<h1>There is no such thing</h1>" in refused.text


# --- How they are sent ---


def test_an_update_is_sent_only_if_something_has_changed(client: TestClient, shop: Ledger, clock: Clock) -> None:
    test = filled(shop, clock, "letter", {"short": 0.6, "long": 0.2}, days=2, a_day=20)
    whole = client.get("/experiments/letter")
    first = client.get("/experiments/letter?part=live")
    tag = first.headers["etag"]
    assert f'data-tag="{html.escape(tag).replace("&quot;", "&#34;")}"' in whole.text
    same = client.get("/experiments/letter?part=live", headers={"If-None-Match": tag})
    assert (same.status_code, same.content) == (304, b"")
    test.stop()
    changed = client.get("/experiments/letter?part=live", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_what_is_long_is_sent_packed(client: TestClient, shop: Ledger, clock: Clock) -> None:
    filled(shop, clock, "letter", {"short": 0.6, "long": 0.2}, days=2, a_day=20)
    packed = client.get("/experiments/letter", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(packed.content) / 3
    assert "content-encoding" not in client.get("/experiments/letter", headers={"Accept-Encoding": "identity"}).headers


def test_nothing_in_a_page_is_inline_or_from_elsewhere(client: TestClient, shop: Ledger, clock: Clock) -> None:
    filled(shop, clock, "letter", {"short": 0.6, "long": 0.2}, days=4, a_day=40, silence=live.Failure(after="1d"))
    for address in ("/", "/experiments/letter", "/docs", "/login", "/experiments/none"):
        answer = client.get(address)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", answer.text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", answer.text))
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', answer.text)
        ids = re.findall(r'\sid="([^"]*)"', answer.text)
        assert len(ids) == len(set(ids))


def test_static_files_are_kept_by_their_content(client: TestClient) -> None:
    for name, file in File.all().items():
        answer = client.get(f"/static/{name}?v={file.tag}")
        assert answer.content == file.data
        assert answer.headers["content-type"].startswith(file.type)
        assert "immutable" in answer.headers["cache-control"]
        tag = {"If-None-Match": answer.headers["etag"]}
        assert client.get(f"/static/{name}", headers=tag).status_code == 304
        assert client.get(f"/static/{name}?v=old").headers["cache-control"] == "no-cache"
    assert client.get("/static/..%2Fpages.py").status_code == 404
    assert set(File.all()) == {"page.css", "page.js", "icon.svg"}


def test_the_reference_has_every_address_with_an_example(client: TestClient) -> None:
    page = client.get("/docs").text
    for route in table():
        assert f"<code>{route.path}</code>" in page
        if route.form is not None:
            DECODERS[route.form].decode(json.dumps(reference.EXAMPLES[route.answer.__name__]))
    assert "curl http://localhost/v1/experiments/checkout/decisions" in text(page)


# --- What they are made of ---


def test_charts_from_rows_and_from_totals_by_time_agree(
    shop: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop:
        test = filled(shop, clock, "letter", {"a": 0.6, "b": 0.2}, days=10, a_day=80)
        shown = views.view(test, shop)
        rows = views.drawing(shown, shop)
        monkeypatch.setattr(views, "EXACT", 0)
        sums = views.drawing(shown, shop)
    assert rows.history is not None
    assert rows.history == sums.history
    assert sum(map(sum, rows.history.asked.values())) == 800
    assert rows.coming is not None
    assert sums.coming is not None
    assert rows.coming[1][-1] == pytest.approx(shown.summary.to_come.expected, rel=0.1)
    assert sums.coming[1][-1] == pytest.approx(shown.summary.to_come.expected, rel=0.1)
    for name, steps in rows.waits.items():
        assert steps.levels[-1] == pytest.approx(sums.waits[name].levels[-1], abs=0.02)


def test_a_chart_can_be_made_without_a_page(shop: Ledger, clock: Clock) -> None:
    with shop:
        shown = views.view(filled(shop, clock, "letter", {"a": 0.6, "b": 0.2}, days=4, a_day=40), shop)
        data = views.drawing(shown, shop)
    assert data.history is not None
    colours = {"0": 0, "1": 1}
    for chart in (
        live_charts.posteriors(data.beliefs),
        live_charts.allocation(data.history, colours),
        live_charts.success(data.history, colours),
        live_charts.waits(data.waits, colours),
    ):
        picture = live_charts.svg(chart, live_charts.LIGHT, 'what "it" is')
        assert 'aria-label="what &quot;it&quot; is"' in picture
        assert live_charts.LIGHT.arms[1] in picture
        assert "var(" not in picture


def test_what_cannot_be_drawn_is_left_out_and_logged(
    shop: Ledger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    pen = drawing.Pen()
    try:
        with shop:
            shown = views.view(filled(shop, clock, "letter", {"a": 0.6, "b": 0.2}, days=2, a_day=20), shop)
            data = views.drawing(shown, shop)
        assert pen.drawn(data._replace(beliefs="nonsense")) == {}  # type: ignore[arg-type]
        assert "charts could not be drawn" in caplog.text
        assert pen._process is not None
        pen._process.kill()
        pen._process.wait()
        assert pen.drawn(data) == {}
        assert "beliefs" in pen.drawn(data)  # by another process
    finally:
        pen.close()


def test_what_many_ask_for_is_made_once() -> None:
    made: list[int] = []

    async def make() -> int:
        await asyncio.sleep(0.01)
        made.append(1)
        return len(made)

    async def ask() -> None:
        kept: Kept[int] = Kept(60.0)
        assert await asyncio.gather(*(kept.current("a", make) for _ in range(5))) == [1] * 5
        assert await kept.settled("b", make) == 1  # not so soon again
        assert await kept.current("b", make) == 2  # of what has changed nothing old is shown

    asyncio.run(ask())
