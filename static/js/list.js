// The list stays under the hand: a fresh one keeps the rows in view where they were, the focus on
// its row, and says what has come. New rows slide in.

// Nothing is replaced under a hand that is typing in it or has one key left to press.
const BUSY = "#queue :is(input, textarea, select):focus, dialog[open], .bar.armed";
const rows = () => [...document.querySelectorAll("#queue .row")];
const links = () => [...document.querySelectorAll("#queue .row > a[href]")];
const said = document.getElementById("arrivals");
let known = new Set(rows().map((row) => row.id));
let owed = false;
let kept = null;

function scroller() {
  const list = document.querySelector(".list");
  return list && list.scrollHeight > list.clientHeight && getComputedStyle(list).overflowY === "auto"
    ? list
    : document.scrollingElement;
}

const top = (row) => row.getBoundingClientRect().top;

// What somebody has unfolded stays so.
const unfolded = (where) => [...document.querySelectorAll(`${where} details[id][open]`)].map((details) => details.id);
const unfold = (ids) => ids.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));

function keep() {
  const box = scroller();
  const edge = box === document.scrollingElement ? 0 : box.getBoundingClientRect().top;
  const under = rows().findIndex((row) => row.matches(":hover, :focus-within"));
  // Who reads from the top, and points at nothing, wants to see what comes first now.
  const from = under >= 0 ? under : box.scrollTop > 0 ? rows().findIndex((row) => top(row) >= edge) : -1;
  kept = {
    box,
    places: from >= 0 ? rows().slice(from).map((row) => [row.id, top(row)]) : [],
    focused: links().indexOf(document.activeElement),
    folds: unfolded("#queue"),
  };
}

function restore() {
  if (!kept) return;
  unfold(kept.folds);
  const still = kept.places.find(([id]) => document.getElementById(id));
  if (still) kept.box.scrollTop += top(document.getElementById(still[0])) - still[1];
  const now = links();
  // Its row has left: the next one has moved up to its place.
  if (kept.focused >= 0 && now.length && !now.includes(document.activeElement)) {
    now[Math.min(kept.focused, now.length - 1)].focus({ preventScroll: true });
  }
  kept = null;
}

function retitle() {
  const number = Number(document.getElementById("review-count")?.dataset.count ?? 0);
  const plain = document.title.replace(/^\(\d+\+?\) /, "");
  const wanted = number ? `(${number}) ${plain}` : plain;
  if (document.title !== wanted) document.title = wanted;
}

function arrive() {
  const come = rows().filter((row) => !known.has(row.id));
  for (const row of rows()) row.classList.toggle("slides", come.includes(row));
  known = new Set(rows().map((row) => row.id));
  if (!said || !come.length) return;
  const first = come[0].querySelector("a")?.textContent.trim() ?? "";
  said.textContent = `${come.length === 1 ? said.dataset.one : said.dataset.many} ${first}`;
}

// While one key is left to press, only the plan itself may change under it.
const BARRED = { queue: BUSY, tray: ".bar.armed" };
const barred = (id) => Object.hasOwn(BARRED, id) && document.querySelector(BARRED[id]) !== null;
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!barred(event.detail.elt.id)) return;
  event.preventDefault();
  owed = true;
});
function pay() {
  if (!owed || document.querySelector(BUSY)) return;
  owed = false;
  document.body.dispatchEvent(new CustomEvent("look-queue"));
}
document.addEventListener("focusout", () => setTimeout(pay, 300));
document.addEventListener("disarmed", () => setTimeout(pay, 300));

// What says the same as the list that is there replaces nothing; the times count down by
// themselves, and are set right now and then.
const RIGHT_MS = 30_000;
const texts = new Map();
function isOld(id, answer) {
  const now = answer.replace(/<time[^>]*>[^<]*<\/time>/g, "").replace(/name="csrfmiddlewaretoken" value="[^"]*"/g, "");
  const before = texts.get(id);
  if (before?.text === now && performance.now() - before.at < RIGHT_MS) return true;
  texts.set(id, { text: now, at: performance.now() });
  return false;
}

let strip = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  const { shouldSwap, serverResponse, target } = event.detail;
  if (!shouldSwap || !Object.hasOwn(BARRED, target.id)) return;
  if (barred(target.id)) {
    event.detail.shouldSwap = false;
    owed = true;
  } else if (isOld(target.id, serverResponse)) event.detail.shouldSwap = false;
  else if (target.id === "queue") keep();
  else strip = unfolded("#tray");
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id === "tray") unfold(strip);
});
document.addEventListener("htmx:afterSwap", () => {
  restore();
  retitle();
});
document.addEventListener("htmx:oobAfterSwap", retitle);
document.addEventListener("htmx:afterSettle", (event) => {
  retitle();
  if (event.target.id === "queue") arrive();
});
retitle();
