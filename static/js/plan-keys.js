// The keys that decide. `a` arms first and scrolls the bar into view, the second `a` confirms; any
// swap disarms, and keys are deaf for 400 ms after it: a plan that slid in is never hit by a press
// that was meant for the one before. Keys never fire while typing.

const TYPING = "input, textarea, select, [contenteditable]";
const DEAF_MS = 400;
let deafUntil = 0;

const bar = () => document.getElementById("decision");

function disarm() {
  const form = bar();
  if (!form) return;
  form.classList.remove("armed");
  form.querySelector("[data-arm-hint]").hidden = true;
}

function approve() {
  const button = bar()?.querySelector("[data-approve]");
  if (!button) return;
  bar().scrollIntoView({ block: "nearest" });
  if (button.disabled) {
    document.querySelector("#plan details[data-gate]:not([data-opened]) summary")?.focus();
    return;
  }
  if (bar().classList.contains("armed")) {
    disarm();
    button.click();
    return;
  }
  bar().classList.add("armed");
  bar().querySelector("[data-arm-hint]").hidden = false;
}

// Both need a note: write it first, then Enter on the button that has the focus.
function refuse(verdict) {
  const form = bar();
  if (!form) return;
  const note = form.querySelector("[name=note]");
  const button = form.querySelector(`button[value=${verdict}]`);
  (note.value.trim() ? button : note).focus();
}

function evidence() {
  const section = document.getElementById("evidence");
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}

const KEYS = {
  a: approve,
  r: () => refuse("reject"),
  c: () => refuse("request_changes"),
  e: evidence,
  Escape: disarm,
};

document.addEventListener("keydown", (event) => {
  const modified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (modified || event.repeat || event.defaultPrevented || event.target.closest(TYPING)) return;
  if (performance.now() < deafUntil || document.querySelector("dialog[open]")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  if (event.key !== "a") disarm();
  if (event.key !== "Escape") event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("htmx:afterSwap", () => {
  deafUntil = performance.now() + DEAF_MS;
  disarm();
});
// The next plan begins at its sentence, for the eye and for a screen reader.
document.addEventListener("decided", () => {
  requestAnimationFrame(() => document.getElementById("plan-title")?.focus({ preventScroll: true }));
});
