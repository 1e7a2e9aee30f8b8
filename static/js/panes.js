// Two panes on a desk, one page after the other on a phone: there, and with a modifier key, a row
// is an ordinary link, so htmx must not see the click.

const narrow = matchMedia("(max-width: 900px)");

document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest("a[hx-get]:not([data-inplace])");
    if (!link) return;
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    if (elsewhere || narrow.matches) event.stopPropagation();
  },
  true,
);

// The row of the plan that is open on the right is the current one.
function mark() {
  const opened = document.getElementById("detail")?.dataset.opened;
  for (const row of document.querySelectorAll("#queue .row")) {
    const link = row.querySelector("a[hx-get]");
    const current = opened ? row.id === opened : link.pathname === location.pathname;
    row.toggleAttribute("data-open", current);
    if (current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("htmx:pushedIntoHistory", () => {
  // From here on the address says what is open.
  document.getElementById("detail")?.removeAttribute("data-opened");
  mark();
});
document.addEventListener("htmx:afterSettle", mark);
