// Warns when half and when a fifth of the time to decide is left: in the title of the page, where
// a hidden tab shows it, and read out politely. The badges themselves are countdown.js's.
//
// <p id="warnings" role="status" data-half="Half left" data-half-said="Half of its time is left:" …>

const said = () => document.getElementById("warnings");
const NAMED = 3;
let crossed = [];

// Of the plan that is open, or of the most urgent row of a list.
function worst() {
  const stages = [...document.querySelectorAll("[data-warns] [data-window-ms]")]
    .map((element) => element.dataset.stageNow);
  return ["fifth", "half"].find((stage) => stages.includes(stage)) ?? "";
}

function retitle() {
  const words = said();
  if (!words) return;
  const count = document.title.match(/^\(\d+\+?\) /)?.[0] ?? "";
  let plain = document.title.slice(count.length);
  for (const prefix of [words.dataset.half, words.dataset.fifth]) {
    if (plain.startsWith(`${prefix} · `)) plain = plain.slice(prefix.length + 3);
  }
  const stage = worst();
  const title = `${count}${stage ? `${words.dataset[stage]} · ` : ""}${plain}`;
  if (document.title !== title) document.title = title;
}

function name(element) {
  const link = element.closest("[data-warns]")?.querySelector("a[href]");
  return (link ?? document.getElementById("plan-title"))?.textContent.trim() ?? "";
}

// Those that cross together are one announcement, the more urgent first.
function announce() {
  const region = said();
  for (const stage of ["fifth", "half"]) {
    const names = [...new Set(crossed.filter((c) => c.stage === stage).map((c) => c.name))];
    if (!names.length || !region) continue;
    const more = names.length > NAMED ? `, ${region.dataset.more}` : "";
    region.textContent = `${region.dataset[`${stage}Said`]} ${names.slice(0, NAMED).join(", ")}${more}`;
    break;
  }
  crossed = [];
}

document.addEventListener("countdown:stage", (event) => {
  retitle();
  if (!crossed.length) setTimeout(announce, 300);
  crossed.push({ stage: event.target.dataset.stageNow, name: name(event.target) });
});
// After the one that counts what waits: it puts its number in front of what stands here.
document.addEventListener("htmx:afterSettle", () => queueMicrotask(retitle));
document.addEventListener("htmx:oobAfterSwap", () => queueMicrotask(retitle));
retitle();
