// The keys that decide. `a` arms first and scrolls the bar into view, the second `a` confirms; any
// swap disarms, and keys are deaf for 400 ms after it: a plan that slid in is never hit by a press
// that was meant for the one before, nor by the second half of a double click. Keys never fire
// while typing.

const TYPING = "input, textarea, select, [contenteditable]";
const DEAF_MS = 400;
// Whoever comes back to an armed bar later must not approve with the first press.
const ARMED_MS = 10_000;
let deafUntil = 0;
let muteUntil = 0;
let clicksFrom = 0;
let shown = "";
let tires = 0;

const bar = () => document.getElementById("decision");
const digest = () => bar()?.querySelector("[name=shown_digest]")?.value ?? "";

// One thing at a time is said about the key that was pressed; nothing: what Approve does.
function say(word) {
  for (const hint of bar()?.querySelectorAll("[data-key-hint]") ?? []) hint.hidden = hint.dataset.keyHint !== word;
}

function disarm() {
  clearTimeout(tires);
  const form = bar();
  if (!form?.classList.contains("armed")) return;
  form.classList.remove("armed");
  say("");
  form.dispatchEvent(new CustomEvent("disarmed", { bubbles: true }));
}

function calm() {
  disarm();
  say("");
}

function arm() {
  bar().classList.add("armed");
  say("arm");
  tires = setTimeout(disarm, ARMED_MS);
}

// `j` and `k` move the mark in the list while another plan is open.
function elsewhere() {
  const row = document.activeElement?.closest("#queue .row");
  return Boolean(row && !row.hasAttribute("data-open"));
}

// Back to the one plan that the keys decide on, at its sentence.
function comeBack() {
  document.getElementById("plan-title")?.focus();
  say("elsewhere");
}

// What Approve cannot do without: the note that a policy demands, the value that is typed.
const lacking = () => [...bar().elements].find((field) => field.required && !field.value.trim());

// The second half of a double press is not the first letter of a note.
function write(field) {
  muteUntil = performance.now() + DEAF_MS;
  field.focus();
  say(field.name);
}

function approve() {
  const button = bar()?.querySelector("[data-approve]");
  // In a narrow window the list stands alone: what is not shown is not decided.
  if (!button?.checkVisibility() || button.hidden) return;
  bar().scrollIntoView({ block: "nearest" });
  const armed = bar().classList.contains("armed");
  calm();
  if (elsewhere()) comeBack();
  else if (button.disabled) document.querySelector("#plan details[data-gate]:not([data-opened]) summary")?.focus();
  else if (lacking()) write(lacking());
  else if (armed) button.click();
  else arm();
}

// Both need a note: write it first, then Enter on the button that has the focus.
function refuse(verdict) {
  const form = bar();
  const button = form?.querySelector(`button[value=${verdict}]`);
  if (!button || button.hidden) return;
  const note = form.querySelector("[name=note]");
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
  if (modified || event.repeat || event.isComposing || event.defaultPrevented) return;
  if (event.target.closest?.(TYPING)) {
    if (event.key === "a" && performance.now() < muteUntil) event.preventDefault();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (performance.now() < deafUntil || !Object.hasOwn(KEYS, event.key)) return;
  if (event.key !== "a") calm();
  if (event.key !== "Escape") event.preventDefault();
  KEYS[event.key]();
});

// Whoever goes on to another row has left this plan.
document.addEventListener("focusin", () => {
  if (elsewhere()) calm();
});
document.addEventListener("input", (event) => {
  if (event.target.name === "note" && event.target.value.trim()) say("");
});

// A click that was on its way when the plan changed under it decides nothing.
document.addEventListener("click", (event) => {
  if (performance.now() >= clicksFrom || !event.target.closest?.("#decision button")) return;
  event.preventDefault();
  event.stopPropagation();
}, true);

document.addEventListener("htmx:beforeSwap", () => { shown = digest(); });
document.addEventListener("htmx:afterSwap", (event) => {
  const now = performance.now();
  deafUntil = now + DEAF_MS;
  if (event.detail.target?.id === "detail" && digest() !== shown) clicksFrom = now + DEAF_MS;
  disarm();
});
// The next plan begins at its sentence, for the eye and for a screen reader.
document.addEventListener("decided", () => {
  requestAnimationFrame(() => document.getElementById("plan-title")?.focus({ preventScroll: true }));
});
