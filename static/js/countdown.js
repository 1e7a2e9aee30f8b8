// Counts down to decide_by by a monotonic clock: the wall clock of this machine may be wrong, and
// a clock that is set back would keep a dead button alive. The server's check is the rule anyway.
//
// <time data-decide-in-ms="462000" [data-window-ms="600000"] [data-disables="decision"]>7:42</time>
//   data-disables: id of the form whose buttons go at zero. Inside it, [data-at-zero] is shown then.
//   It says `countdown:soon` when the last minute begins, and `countdown:zero`.
//   data-window-ms inside [data-warns]: shows the [data-stage] of half and of a fifth.
//   A sibling <circle data-ring pathLength="100"> inside .clock shows the share that is left.

const SOON_MS = 60_000;
const deadlines = new WeakMap();
const stages = new Map();

function deadline(element) {
  if (!deadlines.has(element)) {
    deadlines.set(element, performance.now() + Number(element.dataset.decideInMs));
  }
  return deadlines.get(element);
}

// The same words as the `left` filter of the templates.
export function words(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))}`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function ring(element, left) {
  const circle = element.closest(".clock")?.querySelector("[data-ring]");
  if (!circle || !element.dataset.windowMs) return;
  const share = Math.min(100, Math.max(0, (100 * left) / Number(element.dataset.windowMs)));
  circle.setAttribute("stroke-dasharray", `${share.toFixed(1)} 100`);
}

// Half and a fifth of the window: the badge beside it, and an event when one is crossed here.
function warn(element, left) {
  const place = element.closest("[data-warns]");
  if (!place || !element.dataset.windowMs) return;
  const share = left / Number(element.dataset.windowMs);
  const stage = share <= 0.2 ? "fifth" : share <= 0.5 ? "half" : "";
  // A list is replaced every few seconds: what is known of a row outlives its element.
  const key = place.id || element.closest("[data-plan]")?.dataset.plan;
  const before = stages.get(key);
  if (before === stage && element.dataset.stageNow === stage) return;
  element.dataset.stageNow = stage;
  for (const badge of place.querySelectorAll("[data-stage]")) badge.hidden = badge.dataset.stage !== stage;
  stages.set(key, stage);
  if (before !== undefined && before !== stage && stage) element.dispatchEvent(new CustomEvent("countdown:stage", { bubbles: true }));
}

function close(element) {
  element.dataset.over = "";
  const form = document.getElementById(element.dataset.disables ?? "");
  if (form) {
    form.querySelectorAll("button").forEach((button) => { button.disabled = button.hidden = true; });
    form.querySelectorAll("[data-at-zero]").forEach((notice) => { notice.hidden = false; });
  }
  element.dispatchEvent(new CustomEvent("countdown:zero", { bubbles: true }));
}

function hurry(element, soon) {
  element.classList.toggle("soon", soon);
  if (soon) element.dispatchEvent(new CustomEvent("countdown:soon", { bubbles: true }));
}

// A machine that slept has a clock that slept, too: the server's answer sets it right.
function correct(event) {
  const left = event.detail.xhr?.getResponseHeader("Decide-In-Ms");
  if (!left || event.detail.elt.id !== "plan") return;
  for (const element of event.detail.elt.querySelectorAll("[data-decide-in-ms]")) {
    deadlines.set(element, performance.now() + Number(left));
  }
}

function tick() {
  for (const element of document.querySelectorAll("[data-decide-in-ms]")) {
    const left = deadline(element) - performance.now();
    const text = words(left);
    if (element.textContent !== text) element.textContent = text;
    if (left < SOON_MS !== element.classList.contains("soon")) hurry(element, left < SOON_MS);
    ring(element, left);
    warn(element, left);
    if (left <= 0 && element.dataset.over === undefined) close(element);
  }
}

document.addEventListener("htmx:load", tick);
document.addEventListener("htmx:afterRequest", correct);
setInterval(tick, 250);
tick();
