// Long values are folded up, and Approve stays off until each of them was opened. Without
// JavaScript they are simply there in full.

function over() {
  return document.querySelector("#decision [data-decide-in-ms]")?.dataset.over !== undefined;
}

function judge(plan) {
  const closed = plan.querySelectorAll("details[data-gate]:not([data-opened])").length;
  const approve = plan.querySelector("[data-approve]");
  if (!approve) return;
  approve.disabled = closed > 0 || over();
  const hint = plan.querySelector("[data-gate-hint]");
  hint.hidden = closed === 0;
  plan.querySelector("[data-consequence]").hidden = closed > 0;
}

function fold() {
  const plan = document.getElementById("plan");
  if (!plan || plan.dataset.gated !== undefined) return;
  plan.dataset.gated = "";
  for (const details of plan.querySelectorAll("details[data-gate]")) {
    details.open = false;
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      details.dataset.opened = "";
      judge(plan);
    });
  }
  judge(plan);
}

// Folding is heard as a toggle, too: only what is open counts as opened.
document.addEventListener("htmx:load", fold);
document.addEventListener("htmx:afterSettle", fold);
// A request switches the buttons off and on again; the gate has the last word.
document.addEventListener("htmx:afterRequest", () => {
  const plan = document.getElementById("plan");
  if (plan) judge(plan);
});
fold();
