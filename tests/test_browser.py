"""The page in a real browser: Debian's Chromium, driven as a person would use it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from belated import live
from belated.client import Client
from belated.service import keys
from serving import Server, serving

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "CI" not in os.environ, reason="no chromium: apt-get install chromium to test the page"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        assert CHROMIUM, "the page is tested in Chromium: apt-get install chromium"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("browser")
    with serving(f"sqlite:///{folder}/ledger.db", folder, "--quiet") as server:
        yield server


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Opens pages, and at the end finds that none had an error or asked another host for anything."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open(url: str, **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page: Page = context.new_page()
        hurry(page)
        host = url.split("/")[2]

        def asked(request: Request) -> None:
            if request.url.split("/")[2] != host and not request.url.startswith(("data:", "blob:")):
                problems.append(f"asked {request.url}")

        page.on("request", asked)
        page.on("console", lambda message: problems.append(message.text) if is_error(message) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        return page

    yield open
    for context in contexts:
        context.close()
    assert problems == []


def hurry(page: Page) -> None:
    """Let it update itself more often than for people, by the one number that says how often."""
    script = (resources.files("belated.service") / "static/page.js").read_text()
    assert "const EVERY = 3000;" in script
    quick = script.replace("const EVERY = 3000;", "const EVERY = 300;").replace(
        "const SLOWEST = 30000;", "const SLOWEST = 600;"
    )
    page.route("**/static/page.js*", lambda route: route.fulfill(body=quick, content_type="text/javascript"))


def is_error(message: Any) -> bool:
    """Whether a console's line is an error, and not of a refusal that a test provokes."""
    return message.type == "error" and "status of 409" not in message.text


def fits(page: Page) -> bool:
    """Whether nothing stands out at the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_create_decide_tell_watch_and_stop(server: Server, visit: Visit) -> None:
    page = visit(server.url)
    page.get_by_role("button", name="New experiment").click()
    page.get_by_label("Name").fill("button <b>&</b>")
    page.get_by_label("Arms, one a line").fill("red\ngreen")
    page.get_by_label("it is a failure, after a time").check()
    page.get_by_label("That time").fill("7d")
    page.get_by_label("Until then, a decision counts").select_option("not at all")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("button <b>&</b>")
    expect(page.locator("#verdict")).to_contain_text("nothing is known yet", ignore_case=True)

    with Client(server.url) as client:
        assert client.summary("button <b>&</b>")["reading"] == "wait"
        decisions = [client.ask("button <b>&</b>") for _ in range(20)]
        for decision in decisions[:10]:
            client.tell(decision.id, 1)
    expect(page.locator("#facts")).to_contain_text("20", timeout=20_000)  # without a reload
    expect(page.locator("#chart-density svg, #charts svg").first).to_be_visible(timeout=20_000)

    page.get_by_role("button", name="Add an arm").click()
    page.locator("#add-arm-name").fill("red")
    page.locator("#add-arm-yes").click()
    expect(page.locator("#add-arm .problem")).to_contain_text("there is, or was, an arm named 'red'")
    page.locator("#add-arm-name").fill("blue")
    page.locator("#add-arm-yes").click()
    expect(page.locator("tr[data-arm=blue]")).to_be_visible(timeout=20_000)

    page.locator("tr[data-arm=blue]").get_by_role("button", name="Pause").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("tr[data-arm=blue]")).to_contain_text("paused", timeout=20_000)

    page.locator("#stop").click()
    expect(page.locator("#confirm")).to_be_visible()
    page.get_by_role("button", name="Cancel").first.click()
    page.locator("#stop").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#resume")).to_be_visible(timeout=20_000)
    with Client(server.url) as client, pytest.raises(live.Stopped):
        client.ask("button <b>&</b>")


@pytest.fixture(scope="module")
def looked_at(server: Server) -> str:
    """The address of an experiment with arms, decisions and outcomes."""
    with Client(server.url) as client:
        client.create("look", [f"arm {place}" for place in range(12)])
        for _ in range(60):
            client.tell(client.ask("look").id, 1)
    return "/experiments/look"


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_contrast_and_width(width: int, server: Server, looked_at: str, visit: Visit) -> None:
    for path in ("/", looked_at, "/docs", "/login"):
        page = visit(server.url + path, color_scheme="light", viewport={"width": width, "height": 800})
        assert violations(page) == [], path
        assert fits(page), path
        page.emulate_media(color_scheme="dark")  # of which nothing but contrast depends
        assert violations(page, runOnly=["color-contrast"]) == [], path


def violations(page: Page, **options: Any) -> list[tuple[str, str]]:
    """What is hard to perceive on a page, each with the first place where it is so."""
    found = Axe().run(page, options=options)["violations"]
    return [(each["id"], each["nodes"][0]["html"][:120]) for each in found]


def test_what_is_hard_to_read_is_found(server: Server, visit: Visit) -> None:
    """The control: in dark, soft words without their colour for dark."""
    page = visit(server.url, color_scheme="light")
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.style.setProperty('--soft', '#444')")
    assert [id for id, _ in violations(page, runOnly=["color-contrast"])] == ["color-contrast"]


def test_by_keyboard_alone(server: Server, visit: Visit) -> None:
    with Client(server.url) as client:
        client.create("keyboard", ["red", "green"])
    page = visit(f"{server.url}/experiments/keyboard")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "stop":
            break
    page.keyboard.press("Enter")
    expect(page.locator("#confirm")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "stop"


def test_without_scripts_it_reads(server: Server, visit: Visit) -> None:
    with Client(server.url) as client:
        client.create("plain", ["red", "green"])
        client.tell(client.ask("plain").id, 1)
    page = visit(f"{server.url}/experiments/plain", java_script_enabled=False)
    expect(page.locator("tr[data-arm=red]")).to_be_visible()
    expect(page.locator("#verdict")).to_contain_text("leads")


def test_an_update_keeps_focus_and_is_small(server: Server, visit: Visit) -> None:
    with Client(server.url) as client:
        client.create("many", [f"arm {place}" for place in range(200)])
        for _ in range(300):
            client.tell(client.ask("many").id, 1)
        page = visit(f"{server.url}/experiments/many")
        sizes: list[int] = []
        page.on(
            "response", lambda answer: sizes.append(len(answer.body())) if "part=" in answer.url and answer.ok else None
        )
        page.locator("#archive").focus()
        asked = client.summary("many")["asked"]
        client.tell(client.ask("many").id, 1)
        expect(page.locator("#facts")).to_contain_text(str(asked + 1), timeout=20_000)
        assert page.evaluate("document.activeElement.id") == "archive"
    assert sizes
    assert max(sizes) < 100_000


def test_a_server_that_goes_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    page = browser.new_page()
    hurry(page)
    with serving(ledger, tmp_path, "--quiet") as server:
        port = server.port
        page.goto(server.url)
        expect(page.locator("#link")).to_have_attribute("data-state", "live", timeout=20_000)
    expect(page.locator("#link")).to_have_attribute("data-state", "lost", timeout=30_000)
    with serving(ledger, tmp_path, "--quiet", port=port):
        expect(page.locator("#link")).to_have_attribute("data-state", "live", timeout=60_000)
    page.close()


def test_a_key_is_asked_for_and_roles_see_what_they_may(browser: Browser, visit: Visit, tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with live.open(ledger) as shop:
        shop.create("checkout", ["red", "green"])
        secrets = {role: keys.create(shop, role)[1] for role in ("reader", "admin")}
    with serving(ledger, tmp_path, "--quiet") as server:
        for role, buttons in (("reader", 0), ("admin", 1)):
            page = visit(f"{server.url}/experiments/checkout")
            expect(page).to_have_url(f"{server.url}/login?next=%2Fexperiments%2Fcheckout")
            page.get_by_label("Key").fill(secrets[role])
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("checkout")
            expect(page.locator("#stop")).to_have_count(buttons)
            cookie = page.context.cookies()[0]
            assert cookie["httpOnly"]
            assert cookie["sameSite"] == "Strict"
            assert secrets[role] not in page.content()
            assert page.evaluate("document.cookie") == ""
