// The address says what is shown: #/ the overview, #/task/3 a task, #/task/3/2/5 a step of one of its rollouts.
const overview = document.getElementById("overview");
const detail = document.getElementById("task");
let asked = 0;
let onTask = null;
let onEpisode = null;

async function route() {
  const mine = ++asked;
  const [kind, place, number, at] = location.hash.split("/").slice(1);
  const task = kind === "task" ? Number(place) : -1;
  if (!(task in places)) return showOverview();
  try {
    const told = onTask?.place === task ? onTask.told : await unpacked(places[task]);
    const listed = number === undefined ? undefined : told.episodes[Number(number)];
    const key = `${task}/${number}`;
    const episode = listed && (onEpisode?.key === key ? onEpisode.episode : await unpacked(listed.chunk));
    if (mine === asked) show(task, told, listed && { key, number: Number(number), episode, at: Number(at) || 0 });
  } catch (error) {
    detail.replaceChildren(make("p", { class: "note" }, `This part of the file can't be read: ${error}`));
    overview.hidden = true;
    detail.hidden = false;
  }
}

function showOverview() {
  const back = onTask;
  onTask = onEpisode = null;
  detail.hidden = true;
  overview.hidden = false;
  const link = back && rows.map((row) => row.querySelector("a")).find((item) => item.hash === `#/task/${back.place}`);
  link?.focus({ preventScroll: true });
  link?.scrollIntoView({ block: "center" });
}

function show(place, told, opened) {
  const fresh = onTask?.place !== place;
  const another = onEpisode?.key !== opened?.key;
  if (fresh || another) detail.replaceChildren(...taskView(told, place, opened?.number).flat(Infinity).filter(Boolean));
  onTask = { place, told };
  onEpisode = opened ?? null;
  overview.hidden = true;
  detail.hidden = false;
  if (opened) {
    opened.at = Math.max(0, Math.min(opened.at, opened.episode.steps.length + 1));
    const focused = document.activeElement?.id;
    document.getElementById("viewer").replaceChildren(...episodeView(opened.episode, opened.at, go).flat(Infinity));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (another) document.getElementById("viewer").scrollIntoView({ block: "start" });
  } else if (fresh) {
    scrollTo(0, 0);
    detail.focus({ preventScroll: true });
  }
}

function go(at) {
  location.hash = `#/task/${onEpisode.key}/${at}`;
}

addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!turn || !onEpisode || event.target.matches("input, pre") || event.altKey || event.ctrlKey || event.metaKey) return;
  const at = onEpisode.at + turn;
  if (at >= 0 && at <= onEpisode.episode.steps.length + 1) go(at);
});
route();
