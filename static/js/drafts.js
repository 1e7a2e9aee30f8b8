// What somebody is typing outlives the page under it: a plan that was superseded, expired or
// decided elsewhere is replaced by what is true now, and the words, the caret and the focus stay.

const drafts = new Map();
const detail = () => document.getElementById("detail");
const intent = () => detail()?.querySelector("[data-intent]")?.dataset.intent;
const key = (field) => `${intent()} ${field.name}`;
const fields = () => [...(detail()?.querySelectorAll("textarea[name]") ?? [])];
let sent = false;
let held = null;

// How to find on the next page what had the focus on this one.
function mark(element) {
  if (!detail()?.contains(element)) return null;
  if (element.id) return `#${CSS.escape(element.id)}`;
  const name = element.getAttribute("name");
  const tag = element.localName;
  if (name && tag === "button") return `button[name="${CSS.escape(name)}"][value="${CSS.escape(element.value)}"]`;
  if (name) return `[name="${CSS.escape(name)}"]`;
  return element.hasAttribute("href") ? `a[href="${CSS.escape(element.getAttribute("href"))}"]` : null;
}

function keep() {
  for (const field of fields()) {
    // A comment that stood beside a decision went with it.
    if (field.value && !(sent && ["note", "comment"].includes(field.name))) drafts.set(key(field), field.value);
    else drafts.delete(key(field));
  }
  const element = document.activeElement;
  const within = detail()?.contains(element) && element !== detail();
  held = within && !sent ? { intent: intent(), mark: mark(element), start: element.selectionStart, end: element.selectionEnd } : null;
  sent = false;
}

function restore() {
  for (const field of fields()) {
    if (!field.value && drafts.has(key(field))) field.value = drafts.get(key(field));
  }
  if (held && held.intent === intent()) {
    const again = held.mark && detail().querySelector(held.mark);
    // What had the focus is gone: the reader goes on at what has become of it.
    const element = again || detail().querySelector("#over a, #plan-title, #refused-title");
    if (document.activeElement !== element) element?.focus({ preventScroll: true });
    if (again?.localName === "textarea") again.setSelectionRange(held.start, held.end);
  }
  held = null;
}

document.addEventListener("decided", () => { sent = true; });
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "detail" && event.detail.shouldSwap) keep();
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id !== "detail") return;
  restore();
  // It changed by itself, under the reader: a screen reader hears what has become of it.
  const said = document.getElementById("arrivals");
  const state = detail().querySelector("#state-title")?.textContent;
  if (said && state && event.detail.requestConfig?.elt.id === "plan") said.textContent = state;
});
