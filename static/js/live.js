// Keeps lists fresh: every few seconds, and only while somebody can see them, it says `refresh`
// on the body; what wants to be fresh listens by hx-trigger="refresh from:body".

const EVERY_MS = 4000;
// Nothing is replaced under a hand that is typing or a menu that is open.
const BUSY = "input:focus, textarea:focus, select:focus, dialog[open]";

function refresh() {
  if (document.hidden || document.querySelector(`.list :is(${BUSY}), dialog[open]`)) return;
  document.body.dispatchEvent(new CustomEvent("refresh"));
}

function retitle() {
  const number = Number(document.getElementById("review-count")?.dataset.count ?? 0);
  const plain = document.title.replace(/^\(\d+\+?\) /, "");
  document.title = number ? `(${number}) ${plain}` : plain;
}

// New rows slide in; what was there already stays still.
const rows = () => [...document.querySelectorAll("#queue .row")];
let known = new Set(rows().map((row) => row.id));
function slide() {
  for (const row of rows()) row.classList.toggle("slides", !known.has(row.id));
  known = new Set(rows().map((row) => row.id));
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
document.addEventListener("countdown:zero", refresh);
document.addEventListener("htmx:oobAfterSwap", retitle);
document.addEventListener("htmx:afterSettle", (event) => {
  retitle();
  if (event.target.id === "queue") slide();
});
// A decision moves the queue: show it at once, not at the next tick.
document.addEventListener("decided", refresh);
retitle();
