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

function fold() {
  const plan = document.getElementById("plan");
  if (!plan || plan.dataset.gated !== undefined) return;
  plan.dataset.gated = "";
  for (const details of plan.querySelectorAll("details[data-gate]")) {
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

// Folding is heard as a toggle, too: only what is open counts as opened.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "detail") remember();
});
document.addEventListener("htmx:load", fold);
document.addEventListener("htmx:afterSettle", fold);
// A request switches the buttons off and on again; the gate has the last word.
document.addEventListener("htmx:afterRequest", () => {
  const plan = document.getElementById("plan");
  if (plan) judge(plan);
});
fold();
