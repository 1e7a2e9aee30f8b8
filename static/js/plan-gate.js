// What must be opened is folded up, and Approve stays off until each of it was opened, and until the
// look that a policy asks for is over. Without JavaScript long values are there in full, changes
// have a box to tick, and the server says how long to look: its check is the rule anyway.

let looked = 0;

function over() {
  return document.querySelector("#decision [data-decide-in-ms]")?.dataset.over !== undefined;
}

const dwelling = () => performance.now() < looked;

function judge(plan) {
  const closed = plan.querySelectorAll("details[data-gate]:not([data-opened])").length;
  const approve = plan.querySelector("[data-approve]");
  if (!approve) return;
  approve.disabled = closed > 0 || dwelling() || over();
  plan.querySelector("[data-gate-hint]").hidden = closed === 0;
  plan.querySelector("[data-dwell-hint]").hidden = closed > 0 || !dwelling();
  plan.querySelector("[data-consequence]").hidden = closed > 0 || dwelling();
}

function count() {
  const plan = document.getElementById("plan");
  const left = plan?.querySelector("[data-dwell-left]");
  if (!left || !plan.querySelector("[data-dwell-ms]")) return;
  left.textContent = Math.ceil(Math.max(0, looked - performance.now()) / 1000);
  judge(plan);
  if (dwelling()) setTimeout(count, 250);
}

// What was read stays read for as long as the very same thing is to be decided.
let read = { digest: "", texts: [] };
const digest = () => document.querySelector("#decision [name=shown_digest]")?.value ?? "";
function remember() {
  const opened = [...document.querySelectorAll("#plan details[data-opened]")];
  read = { digest: digest(), texts: opened.map((details) => details.textContent) };
}
function recall(details) {
  if (!read.digest || read.digest !== digest() || !read.texts.includes(details.textContent)) return;
  details.dataset.opened = "";
  details.open = true;
  const box = details.querySelector("[name=opened]");
  if (box) box.checked = true;
}

function fold() {
  const plan = document.getElementById("plan");
  if (!plan || plan.dataset.gated !== undefined) return;
  plan.dataset.gated = "";
  for (const details of plan.querySelectorAll("details[data-gate]")) {
    recall(details);
    if (details.dataset.opened === undefined) details.open = false;
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      details.dataset.opened = "";
      const box = details.querySelector("[name=opened]");
      if (box) box.checked = true;
      judge(plan);
    });
  }
  looked = performance.now() + Number(plan.querySelector("[data-dwell-ms]")?.dataset.dwellMs ?? 0);
  judge(plan);
  count();
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "detail") remember();
});
// Folding is heard as a toggle, too: only what is open counts as opened.
document.addEventListener("htmx:load", fold);
document.addEventListener("htmx:afterSettle", fold);
// A request switches the buttons off and on again; the gate has the last word.
document.addEventListener("htmx:afterRequest", () => {
  const plan = document.getElementById("plan");
  if (plan) judge(plan);
});
fold();
