// What the page does beyond being read: it keeps itself up to date, tells times relative to now, and shows a plan
// without leaving. Without this script everything is there, too, at the cost of a reload.
"use strict";

// become changes one element into another and touches nothing that is the same, so that the focus, the selection and
// opened details stay. Children with ids are recognised by them.
function become(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (name === "open" && from.nodeName === "DETAILS") continue;
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  if (from.isEqualNode(to)) return;
  const wanted = new Set([...to.children].map((c) => c.id));
  for (const child of [...from.children]) {
    if (child.id && !wanted.has(child.id)) child.remove();
  }
  const known = new Map([...from.children].filter((c) => c.id).map((c) => [c.id, c]));
  let place = from.firstChild;
  for (const child of [...to.childNodes]) {
    if (child.id && known.has(child.id)) {
      const old = known.get(child.id);
      if (old !== place) from.insertBefore(old, place);
      place = old.nextSibling;
      become(old, child);
    } else if (place && !child.id && !place.id) {
      const old = place;
      place = old.nextSibling;
      become(old, child);
    } else {
      from.insertBefore(child, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

async function page(address, options) {
  const answer = await fetch(address, { cache: "no-store", ...options });
  if (!(answer.headers.get("Content-Type") || "").startsWith("text/html")) throw new Error(await answer.text());
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Times that are near are told relative to now.
function tellTimes() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const seconds = Math.round((Date.parse(time.dateTime) - now) / 1000);
    const text = relative(seconds);
    if (text && time.textContent !== text) time.textContent = text;
  }
}

function relative(seconds) {
  const n = Math.abs(seconds);
  if (n >= 86400) return "";
  if (n < 1) return "now";
  const [count, unit] = n < 60 ? [n, "s"] : n < 3600 ? [Math.floor(n / 60), "min"] : [Math.floor(n / 3600), "h"];
  return seconds < 0 ? `${count}\u00a0${unit} ago` : `in ${count}\u00a0${unit}`;
}

// The page is asked for again when the stream says that something has changed, never twice at once, and not while
// nobody looks.
let fetching = false;
let stale = false;

async function refresh() {
  if (fetching || document.hidden) {
    stale = true;
    return;
  }
  fetching = true;
  stale = false;
  try {
    const next = await page(location.href);
    const focused = document.activeElement;
    for (const region of document.querySelectorAll("[data-live]")) {
      const to = next.getElementById(region.id);
      if (to) become(region, document.importNode(to, true));
    }
    // What has moved has lost the focus.
    if (focused !== document.activeElement && focused.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
    tellTimes();
    trace();
  } catch (error) {
    console.warn("refresh:", error);
  } finally {
    fetching = false;
  }
  if (stale && !document.hidden) refresh();
}

function live() {
  const address = document.body.dataset.events;
  const status = document.getElementById("live");
  if (!address || !status) return;
  const say = (on, text) => {
    status.hidden = false;
    status.classList.toggle("on", on);
    const label = status.querySelector(".text");
    if (label.textContent !== text) label.textContent = text;
  };
  let events = null;
  const connect = () => {
    events = new EventSource(address);
    events.addEventListener("open", () => say(true, "Live"));
    events.addEventListener("error", () => say(false, "Not connected"));
    events.addEventListener("changed", refresh);
  };
  // A browser has few connections to one server: pages at which nobody looks leave them to others. The first message of a stream
  // tells of what came between.
  document.addEventListener("visibilitychange", () => {
    if (events) events.close();
    events = null;
    if (!document.hidden) connect();
  });
  window.addEventListener("pagehide", () => events?.close());
  if (!document.hidden) connect();
  window.addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
}

function planInPlace() {
  const form = document.getElementById("plan-form");
  const place = document.getElementById("plan");
  if (!form || !place) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      const next = await page(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const plan = next.getElementById("plan");
      if (!plan) throw new Error(next.querySelector("main").textContent.trim());
      place.replaceChildren(...document.importNode(plan, true).childNodes);
    } catch (error) {
      const problem = document.createElement("p");
      problem.className = "error";
      problem.textContent = String(error.message || error);
      place.replaceChildren(problem);
    } finally {
      button.removeAttribute("aria-busy");
    }
    const title = document.getElementById("plan-title");
    if (title) title.focus();
  });
}

// In a graph, what a node waits for is traced while the pointer is on the node, or else while it has the focus: the nodes
// that hold it up, those that hold up these, and so on, with the edges between.
let pointed = null;

// The node that Tab goes to. From there the arrow keys go on, so that there is one stop, however many nodes there are.
let stop = null;

function nodeAt(element) {
  return element instanceof Element ? element.closest(".graph .node") : null;
}

function words(element, name) {
  return (element.getAttribute(name) || "").split(" ").filter(Boolean);
}

function trace() {
  const picture = document.querySelector("#graph-picture .graph");
  if (!picture) return;
  const node = (pointed && document.getElementById(pointed)) || nodeAt(document.activeElement);
  const traced = new Set(node ? [node.id] : []);
  for (const id of traced) {
    for (const awaited of words(document.getElementById(id), "data-waits")) traced.add(awaited);
  }
  picture.classList.toggle("tracing", traced.size > 1);
  for (const each of picture.querySelectorAll(".node")) each.classList.toggle("traced", traced.has(each.id));
  for (const edge of picture.querySelectorAll(".edge")) {
    edge.classList.toggle("traced", traced.size > 1 && words(edge, "data-waits").some((id) => traced.has(id)));
    edge.classList.toggle("near", traced.size === 1 && [edge.dataset.from, edge.dataset.to].includes(node.id));
  }
  const nodes = [...picture.querySelectorAll(".node")];
  if (!nodes.some((each) => each.id === stop)) stop = nodes[0]?.id;
  for (const each of nodes) each.setAttribute("tabindex", each.id === stop ? "0" : "-1");
  tell(node, [...traced].slice(1));
}

// nearest returns the node next to another one in a direction: what is aside counts more than what is ahead.
function nearest(node, [x, y]) {
  const middle = (of) => {
    const r = of.getBoundingClientRect();
    return [r.x + r.width / 2, r.y + r.height / 2];
  };
  const [fromX, fromY] = middle(node);
  let found = null;
  let least = Infinity;
  for (const each of node.closest(".graph").querySelectorAll(".node")) {
    const [toX, toY] = middle(each);
    const ahead = (toX - fromX) * x + (toY - fromY) * y;
    const aside = Math.abs((toX - fromX) * y) + Math.abs((toY - fromY) * x);
    if (ahead > 1 && ahead + 3 * aside < least) [found, least] = [each, ahead + 3 * aside];
  }
  return found;
}

const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

document.addEventListener("keydown", (event) => {
  const node = nodeAt(event.target);
  const direction = directions[event.key];
  if (!node || !direction || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  nearest(node, direction)?.focus();
});

// tell says below the picture what the table has about a node, and which others it waits for.
function tell(node, awaited) {
  const place = document.getElementById("graph-detail");
  const paragraph = (name, ...parts) => {
    const p = document.createElement("p");
    p.className = name;
    p.append(...parts);
    return p;
  };
  const cell = (id, selector) => document.getElementById(`row-${id}`)?.querySelector(selector);
  const copy = (id, selector) => [...(cell(id, selector)?.childNodes || [])].map((n) => n.cloneNode(true));
  if (!node) {
    place.replaceChildren(paragraph("note", place.dataset.note));
    return;
  }
  const name = document.createElement("strong");
  name.append(...copy(node.id, "th"));
  const facts = ["State", "Versions", "Group"].map((label) => copy(node.id, `[data-label=${label}]`)).filter((c) => c.length);
  const what = paragraph("what", name, ...facts.map((parts) => {
    const fact = document.createElement("span");
    fact.append(...parts);
    return fact;
  }));
  const lines = [what];
  if (cell(node.id, ".why")?.textContent) lines.push(paragraph("why", ...copy(node.id, ".why")));
  if (awaited.length) {
    const chain = awaited.flatMap((id, i) => [i ? ", " : "", ...copy(id, "th"), " (", cell(id, "[data-label=State]")?.textContent.trim() || "", ")"]);
    lines.push(paragraph("chain", "Waits for ", ...chain));
  }
  place.replaceChildren(...lines);
}

document.addEventListener("pointerover", (event) => {
  const id = nodeAt(event.target)?.id || null;
  if (id === pointed) return;
  pointed = id;
  trace();
});
document.addEventListener("focusin", (event) => {
  stop = nodeAt(event.target)?.id || stop;
  trace();
});
document.addEventListener("focusout", () => setTimeout(trace));

// Slash goes to the search, as in many places.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.getElementById("find").focus();
});

tellTimes();
setInterval(tellTimes, 1000);
live();
planInPlace();
trace();
