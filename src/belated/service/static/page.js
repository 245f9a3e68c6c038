// Keeps a page up to date, and sends what its buttons and forms ask. Without it every page can still be read.
"use strict";

const EVERY = 3000; // ms between updates
const SLOWEST = 30000; // while the service cannot be reached
const tags = new Map(); // of each part, what was last seen of it
let pause = EVERY;
let timer = 0;
let running = false;

// --- Updates: only what has changed is touched, so focus, scroll and what is open stay as they are ---

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
    return;
  }
  if (old.nodeName === "svg") {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (!("keep" in old.dataset)) fill(old, fresh); // what is kept has its own updates, or none
}

function fill(old, fresh) {
  const known = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const same = place && !place.id && place.nodeName === wanted.nodeName ? place : null;
    const match = wanted.id ? known.get(wanted.id) : same;
    if (!match || match.nodeName !== wanted.nodeName) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    morph(match, wanted);
  }
  while (place) {
    const following = place.nextSibling;
    place.remove();
    place = following;
  }
}

async function refresh(region) {
  const part = region.dataset.part;
  const url = new URL(location.pathname, location.origin);
  url.searchParams.set("part", part);
  const tag = tags.get(part) || region.dataset.tag;
  const answer = await fetch(url, {
    headers: tag ? { "If-None-Match": tag } : {},
    cache: "no-store",
    signal: AbortSignal.timeout(20000),
  });
  if (answer.status === 401) location.reload(); // which leads to the login
  const text = await answer.text();
  if (answer.status === 304) return;
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(text, "text/html");
  const focused = document.activeElement;
  fill(region, page.body);
  tags.set(part, answer.headers.get("ETag"));
  if (focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

async function update() {
  clearTimeout(timer);
  if (document.hidden || running) return;
  running = true;
  try {
    for (const region of document.querySelectorAll("[data-part]")) {
      if (!region.closest("details:not([open])")) await refresh(region);
    }
    pause = EVERY;
    say("live", "Live");
  } catch {
    pause = Math.min(2 * pause, SLOWEST);
    say("lost", "Not reachable, trying again");
  }
  running = false;
  timer = setTimeout(update, pause);
}

function say(state, text) {
  const link = document.getElementById("link");
  if (link.dataset.state === state) return;
  link.dataset.state = state;
  link.textContent = text;
}

// --- Changes: each is asked once more in a dialog, sent to the API, and its refusal shown in the API's words ---

const CHANGES = {
  stopped: ["Stop", "It decides nothing more. Outcomes are still heard, and it can be resumed."],
  running: ["Resume", "It decides again."],
  archived: ["Archive", "This is for good: it can be read and exported, but takes neither decisions nor outcomes."],
  paused: ["Pause", "It gets no more decisions until it is activated. Its outcomes are still heard."],
  active: ["Activate", "It gets decisions again."],
  retired: ["Retire", "This is for good: it gets no more decisions. Its outcomes are still heard."],
};

function confirmed(button) {
  const { to, arm } = button.dataset;
  const [verb, says] = CHANGES[to];
  const form = document.getElementById("confirm-form");
  const yes = document.getElementById("confirm-yes");
  document.getElementById("confirm-title").textContent = `${verb} “${arm || document.querySelector("h1").textContent}”?`;
  document.getElementById("confirm-text").textContent = says;
  yes.textContent = verb;
  yes.classList.toggle("final", to === "archived" || to === "retired");
  form.dataset.method = "PATCH";
  form.dataset.url = document.body.dataset.experiment + (arm ? `/arms/${encodeURIComponent(arm)}` : "");
  form.dataset.status = to;
  show("confirm");
}

function show(id) {
  const dialog = document.getElementById(id);
  dialog.querySelector(".problem").textContent = "";
  dialog.showModal();
}

function experiment(given) {
  const readable = given.get("silence") === "failure" && given.get("policy") === "thompson";
  return {
    name: given.get("name"),
    arms: given.get("arms").split("\n").map((line) => line.trim()).filter(Boolean),
    silence: given.get("silence") === "failure" ? { after: given.get("after").trim() } : "pending",
    reading: readable ? given.get("reading") : "wait",
    policy: given.get("policy"),
    sticky: given.has("sticky"),
    floor: Number(given.get("floor")) / 100,
  };
}

const BODIES = {
  "confirm-form": (form) => ({ status: form.dataset.status }),
  "add-arm-form": (form) => ({ name: new FormData(form).get("name") }),
  "create-form": (form) => experiment(new FormData(form)),
};

async function send(form) {
  const problem = form.querySelector(".problem");
  const yes = form.querySelector("button.main");
  const body = BODIES[form.id](form);
  const url = form.id === "add-arm-form" ? `${document.body.dataset.experiment}/arms` : form.dataset.url;
  problem.textContent = "";
  yes.disabled = true;
  try {
    const answer = await fetch(url, {
      method: form.dataset.method || "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) {
      problem.textContent = told.detail || `The service answered ${answer.status}.`;
      mark(form, told.field);
      return;
    }
    if (form.id === "create-form") location.assign(`/experiments/${encodeURIComponent(body.name)}`);
    form.closest("dialog").close();
    if (form.id !== "confirm-form") form.reset();
    update();
  } catch {
    problem.textContent = "The service cannot be reached. Nothing may have changed: look before you try again.";
  } finally {
    yes.disabled = false;
  }
}

function mark(form, field) {
  const names = String(field || "").split(/[.[]/);
  for (const each of form.querySelectorAll("input, textarea, select")) {
    each.removeAttribute("aria-invalid");
    if (names.includes(each.name) && each.type !== "radio") {
      each.setAttribute("aria-invalid", "true");
      each.focus();
    }
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.to) confirmed(button);
  if (button.dataset.open) show(button.dataset.open);
  if ("close" in button.dataset) button.closest("dialog").close();
});
document.addEventListener("submit", (event) => {
  if (!(event.target.id in BODIES)) return;
  event.preventDefault();
  send(event.target);
});
document.addEventListener("toggle", (event) => event.target.open && event.target.id === "more" && update(), true);

// --- Start ---

const next = document.body.dataset.next;
if (next) {
  // A link from another site comes without the cookie; from here it goes with it.
  fetch(next, { redirect: "manual" }).then((answer) => answer.ok && location.replace(next), () => {});
} else if (document.querySelector("[data-part]")) {
  document.addEventListener("visibilitychange", update);
  update();
}
