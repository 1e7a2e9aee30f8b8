// Times in the reader's zone, with UTC beside. The server writes UTC, which stays as it is without
// JavaScript and for readers who live by it.
//
// <time datetime="2026-03-14T09:36:41+00:00">14 Mar 09:36:41 UTC</time>
//   becomes `14 Mar 10:36:41 (09:36:41 UTC)`, once: nothing that a screen reader has begun moves.
// <time data-day datetime="2026-03-14">: a day that stays UTC's says so.
// [data-zones="… {zone} …"]: the sentence that replaces "Times are UTC."

const SHAPE = /^(?:(\d{1,2} .+?) )?(\d{2}:\d{2}(?::\d{2})?)(?: UTC)?$/;
const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
const days = new Intl.DateTimeFormat(language, { day: "numeric", month: "short" });
const two = (number) => String(number).padStart(2, "0");

function convert(element) {
  element.dataset.zoned = "";
  const at = new Date(element.dateTime);
  if (element.dataset.day !== undefined && at.getTimezoneOffset()) element.append(" UTC");
  const shape = SHAPE.exec(element.textContent.trim());
  if (!shape || Number.isNaN(at.getTime()) || !at.getTimezoneOffset()) return;
  const [, day, utc] = shape;
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()];
  const time = parts.slice(0, utc.split(":").length).map(two).join(":");
  const away = at.getDate() !== at.getUTCDate();
  const beside = document.createElement("span");
  beside.className = "utc";
  beside.textContent = ` (${day && away ? `${day} ` : ""}${utc} UTC)`;
  element.textContent = day || away ? `${days.format(at)} ${time}` : time;
  element.append(beside);
}

function say(element) {
  if (!new Date().getTimezoneOffset()) return;
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  element.textContent = element.dataset.zones.replace("{zone}", timeZone);
  delete element.dataset.zones;
}

function look() {
  document.querySelectorAll("time[datetime]:not([data-zoned])").forEach(convert);
  document.querySelectorAll("[data-zones]").forEach(say);
}

// At once after a swap, before anything is painted: no line of a page moves twice.
document.addEventListener("htmx:afterSwap", look);
document.addEventListener("htmx:oobAfterSwap", look);
look();
