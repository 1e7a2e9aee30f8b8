// Counts down to decide_by by a monotonic clock: the wall clock of this machine may be wrong, and
// a clock that is set back would keep a dead button alive. The server's check is the rule anyway.
//
// <time data-decide-in-ms="462000" [data-window-ms="600000"] [data-disables="decision"]>7:42</time>
//   data-disables: id of the form whose buttons go at zero. Inside it, [data-at-zero] is shown then.
//   A sibling <circle data-ring pathLength="100"> inside .clock shows the share that is left.

const deadlines = new WeakMap();

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

function close(element) {
  element.dataset.over = "";
  const form = document.getElementById(element.dataset.disables ?? "");
  if (form) {
    form.querySelectorAll("button").forEach((button) => { button.disabled = true; });
    form.querySelectorAll("[data-at-zero]").forEach((notice) => { notice.hidden = false; });
  }
  element.dispatchEvent(new CustomEvent("countdown:zero", { bubbles: true }));
}

function tick() {
  for (const element of document.querySelectorAll("[data-decide-in-ms]")) {
    const left = deadline(element) - performance.now();
    const text = words(left);
    if (element.textContent !== text) element.textContent = text;
    element.classList.toggle("soon", left < 60_000);
    ring(element, left);
    if (left <= 0 && element.dataset.over === undefined) close(element);
  }
}

document.addEventListener("htmx:load", tick);
setInterval(tick, 250);
tick();
