// Keeps the page true while somebody looks at it. A stream (htmx's sse extension) says that
// something happened; the page then reads the rows. Without a stream it asks every few seconds.
//
// On the body it says `refresh` (look at everything), `look-queue` and `look-plan`: what wants to
// be fresh listens by hx-trigger="refresh from:body, look-queue from:body".

const POLL_MS = 4000;
// Two beats of the server were missed: the line is dead, whatever the browser believes.
const SILENT_MS = 40_000;
const AGAIN_MS = 1000;
const LONGEST_MS = 30_000;
// However much happens, a list stays still for so long.
const STILL_MS = 1500;
// Lines of the strip leave by time alone.
const STRIP_MS = 20_000;

const place = document.getElementById("live");
let source = null;
let failures = 0;
let again = 0;
let spread = 0;
// The page knows everything up to this moment; it was asked for when its clock began.
let knownAt = 0;
let heardAt = 0;

const say = (name) => document.body.dispatchEvent(new CustomEvent(name));
const state = (word) => { if (place) place.dataset.state = word; };
const isLive = () => place?.dataset.state === "live";

function refresh() {
  if (document.hidden) return;
  say("refresh");
}

// One look for many hints, and not all desks at once.
function later(name) {
  let timer = 0;
  let looked = -Infinity;
  return () => {
    if (timer) return;
    const still = Math.max(0, looked + STILL_MS - performance.now());
    timer = setTimeout(() => {
      timer = 0;
      looked = performance.now();
      if (!document.hidden) say(name);
    }, still + Math.random() * spread);
  };
}
const lookAtQueue = later("look-queue");
const lookAtPlan = later("look-plan");
const lookAround = later("refresh");

const HEARD = {
  open() {
    failures = 0;
    state("live");
  },
  beat() {},
  queue(words) {
    spread = Number(words) || 0;
    lookAtQueue();
  },
  plan(intent) {
    const open = document.querySelector("#detail [data-intent]")?.dataset.intent;
    if (intent === "*" || intent === open) lookAtPlan();
  },
  // The session has ended: whatever is asked for now leads to the sign-in.
  over() {
    drop("polling");
    failures += 4;
    retry();
    refresh();
  },
};

function hear(event) {
  heardAt = knownAt = performance.now();
  HEARD[event.type](event.data);
}

function drop(word) {
  source?.close();
  source = null;
  place?.querySelector("[sse-connect]")?.remove();
  state(word);
}

function connect() {
  clearTimeout(again);
  if (!place || document.hidden || source) return;
  heardAt = performance.now();
  const line = document.createElement("i");
  line.setAttribute("hx-ext", "sse");
  line.setAttribute("sse-connect", `${place.dataset.url}?age=${Math.ceil(heardAt - knownAt)}`);
  place.append(line);
  htmx.process(line);
}

// A server that was restarted must not be met by every desk at the same moment.
function retry() {
  clearTimeout(again);
  const wait = Math.min(LONGEST_MS, AGAIN_MS * 2 ** failures);
  failures += 1;
  again = setTimeout(connect, wait * (0.5 + Math.random()));
}

// A server that answers again is asked for a stream soon, not when the patience of its absence ends.
let away = false;
function answered(event) {
  if (!event.detail.successful) {
    away = true;
    return;
  }
  if (!away || source || document.hidden) return;
  away = false;
  failures = 0;
  retry();
}

function lose() {
  if (!source) return;
  drop("polling");
  retry();
}

if (place) {
  // The extension opens it, and closes it with its element; when, is decided here.
  htmx.createEventSource = (url) => {
    source = new EventSource(url);
    Object.keys(HEARD).forEach((name) => source.addEventListener(name, hear));
    return source;
  };
  document.addEventListener("htmx:sseError", lose);
  document.addEventListener("htmx:afterRequest", answered);
}

function turn() {
  if (document.hidden) {
    clearTimeout(again);
    drop("paused");
    return;
  }
  if (!source) state("polling");
  failures = 0;
  refresh();
  knownAt = performance.now();
  connect();
}

setInterval(() => { if (!isLive()) refresh(); }, POLL_MS);
setInterval(() => { if (performance.now() - heardAt > SILENT_MS) lose(); }, 5000);
setInterval(() => {
  if (isLive() && !document.hidden && document.querySelector("#tray li")) say("look-strip");
}, STRIP_MS);
document.addEventListener("visibilitychange", turn);
addEventListener("online", turn);
addEventListener("pagehide", () => drop("paused"));
addEventListener("pageshow", (event) => { if (event.persisted) turn(); });
document.addEventListener("countdown:zero", lookAround);
document.addEventListener("countdown:soon", lookAtQueue);
// A decision moves the queue: show it at once, not when it is told.
document.addEventListener("decided", refresh);
if (!document.hidden) connect();
