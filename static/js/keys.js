// Keys for people who empty a queue: j k move, Enter opens, / searches, g r and g a go, ? explains.
// They never fire while typing. The keys that decide belong to the plan's own module.

const TYPING = "input, textarea, select, [contenteditable]";
const GOES = { r: "/review/", p: "/replans/", u: "/unresolved/", a: "/audit/", s: "/settings/" };
// Long ago: a page younger than a second must not take its first key for the second of two.
let afterG = -Infinity;

function move(step) {
  const links = [...document.querySelectorAll("#queue .row a[href]")];
  if (!links.length) return;
  const here = links.indexOf(document.activeElement);
  const open = links.findIndex((link) => link.hasAttribute("aria-current"));
  const from = here >= 0 ? here : open;
  const next = links[Math.min(links.length - 1, Math.max(0, from + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function go(key) {
  const link = document.querySelector(`.top nav a[href="${GOES[key]}"]`);
  if (link) location.assign(link.href);
}

function press(event) {
  if (event.key === "j") return move(1);
  if (event.key === "k") return move(-1);
  if (event.key === "g") { afterG = event.timeStamp; return undefined; }
  if (event.key === "?") return document.getElementById("keys")?.showModal();
  if (event.key !== "/") return undefined;
  event.preventDefault();
  return document.querySelector("[data-search]")?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.(TYPING)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.timeStamp - afterG < 1000 && event.key in GOES) {
    afterG = -Infinity;
    // `g a` goes to the audit trail; the plan's own `a` must not hear it.
    event.stopImmediatePropagation();
    go(event.key);
    return;
  }
  press(event);
}, true);
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) document.getElementById("keys")?.showModal();
});
