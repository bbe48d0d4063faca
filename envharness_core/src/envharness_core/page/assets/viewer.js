// One task: its story, its attempts, and its rollouts, step by step.
const ENDINGS = {
  completed: "the benchmark ended it",
  agent_limit: "the policy's steps, or its context, ran out",
  timeout: "time ran out",
  policy_error: "the policy broke down",
  provider_error: "the policy's model service failed",
  env_error: "the benchmark's world broke down",
  rules_error: "a layer broke",
  verifier_error: "the benchmark's verifier failed",
  cancelled: "it was cancelled",
};
const SPECIAL = {
  blocked: "blocked by a layer",
  malformed: "malformed call",
  transient_error: "passing failure",
  handoff: "next task begins",
  error: "error",
  step_reward_error: "step reward failed",
};
const REACHED = { resume: "the world went on after its end", notify: "the replay was declared complete" };

const won = (episode) => (episode.success === null ? "none" : episode.success ? "won" : "lost");
const wonWords = (episode) => (episode.success === null ? `excluded: ${episode.outcome}` : won(episode));

function taskView(task, place, current) {
  return [
    make("p", {}, make("a", { href: "#/" }, "← all tasks")),
    make("div", { class: "head" }, make("h1", {}, `Task ${task.task}`), pill(task.status, task.status)),
    make("div", { class: "story" }, make("h3", {}, "In short"), task.story.map((words) => make("p", {}, words))),
    task.diagnosis.length ? [make("h2", {}, "What the designer saw"), pairs(task.diagnosis)] : null,
    make("h2", {}, "What was tried"), make("p", { class: "small" }, task.gate),
    task.attempts.length
      ? make("ol", { class: "attempts" }, task.attempts.map((attempt) => attemptView(attempt, task, place)))
      : make("p", {}, "Nothing: no candidate came to a trial."),
    make("h2", {}, "What the policy did"),
    make("p", { class: "small" },
      `${task.episodes.length} of this task's ${task.played} rollouts are in this file. Choose one to play it back step by step.`),
    rolloutsView(task, place, current),
    make("section", { id: "viewer" }),
    folded("How this task's rollouts ended", streamsView(task.streams)),
    folded("Words used here", document.querySelector("#terms dl").cloneNode(true)),
  ];
}

function attemptView(attempt, task, place) {
  const kind = attempt.verdict.split(" ")[0];
  const gate = [
    ["Validation", attempt.validation],
    ["Confirmation", attempt.confirmation || "none: it didn't get that far"],
    ["Decision", attempt.decision],
    ["Reason", attempt.reason],
  ];
  const first = task.episodes.filter((episode) => attempt.streams.includes(episode.stream));
  return make("li", { class: `attempt ${kind}` },
    make("div", { class: "head" }, make("h3", {}, attempt.title), pill(kind, attempt.verdict)),
    attempt.layers.length ? [
      make("p", {}, attempt.layers.map((layer, index) => [index ? " + " : "", make("code", {}, layer.words)]),
        attempt.rationale ? ` — ${attempt.rationale}` : ""),
      folded("Exact config, innermost layer first", attempt.layers.map((layer) => [
        make("p", { class: "small" }, layer.use), make("pre", {}, layer.config),
        layer.long.map(([name, text]) => [make("p", { class: "small" }, name), make("pre", {}, text)])])),
    ] : make("p", {}, "No layer added."),
    pairs(gate),
    first.length ? make("div", { class: "rollouts" }, make("span", {}, "see a rollout"),
      make("div", {}, first.map((episode) => rolloutLink(task, episode, place, true)))) : null);
}

function rolloutLink(task, episode, place, long, current) {
  const name = long && episode.stream.startsWith("confirm") ? "confirmation " : long ? "validation " : "";
  const here = current !== undefined && task.episodes[current] === episode;
  return make("a", {
    href: `#/task/${place}/${task.episodes.indexOf(episode)}`, class: won(episode), title: episode.why,
    "aria-current": here ? "true" : null,
  }, `${name}#${episode.index} ${wonWords(episode)}, ${episode.steps} steps`);
}

function rolloutsView(task, place, current) {
  const shown = make("div", { class: "rollouts", id: "rollouts" });
  for (const { name, title, purpose } of task.streams) {
    const some = task.episodes.filter((episode) => episode.stream === name);
    some.sort((one, two) => one.index - two.index);
    if (some.length) shown.append(make("span", {}, title, make("small", {}, purpose)),
      make("div", {}, some.map((episode) => rolloutLink(task, episode, place, false, current))));
  }
  return shown;
}

function streamsView(streams) {
  const head = ["what for", "rollouts", "graded", "won", "outcomes"];
  return make("table", {}, make("thead", {}, make("tr", {}, head.map((words) => make("th", { scope: "col" }, words)))),
    make("tbody", {}, streams.map((stream) => make("tr", {}, make("th", { scope: "row" }, stream.title),
      [stream.played, stream.graded, stream.won].map((count) => make("td", {}, String(count))),
      make("td", {}, Object.entries(stream.outcomes).map(([name, count]) => `${count} ${name}`).join(", "))))));
}

function episodeView(episode, at, go) {
  const last = episode.steps.length + 1;
  const names = ["Start", ...episode.steps.map((step, index) => `Step ${index + 1}`), "End"];
  const words = ["the task is told", ...episode.steps.map((step) => step.proposed ?? "no action"), wonWords(episode)];
  const steps = names.map((name, index) => make("li", {}, make("button",
    { type: "button", "aria-current": index === at ? "true" : null, on: { click: () => go(index) } },
    make("b", {}, index === 0 || index === last ? name : String(index)), make("span", {}, words[index].slice(0, 90),
      index > 0 && index < last && notable(episode.steps[index - 1]) ? make("small", {}, notable(episode.steps[index - 1])) : null))));
  const body = at === 0 ? startView(episode) : at === last ? endView(episode) : stepView(episode.steps[at - 1]);
  return [
    make("div", { class: "head" }, make("h2", {}, `${episode.title}, rollout ${episode.index}`),
      pill(won(episode) === "none" ? "warn" : won(episode), wonWords(episode)),
      make("span", { class: "small" }, `${episode.steps.length} steps; ${ENDINGS[episode.outcome] ?? episode.outcome}; in this file as ${episode.why}`)),
    make("div", { class: "viewer" }, make("ol", { class: "steps", "aria-label": "Steps" }, steps),
      make("article", { class: "step" },
        make("div", { class: "pager" },
          make("button", { type: "button", id: "previous", disabled: at === 0 ? "" : null, on: { click: () => go(at - 1) } }, "← Previous"),
          make("strong", { id: "where" }, at === 0 || at === last ? names[at] : `Step ${at} of ${last - 1}`),
          make("button", { type: "button", id: "next", disabled: at === last ? "" : null, on: { click: () => go(at + 1) } }, "Next →")),
        body)),
    make("p", { class: "small" }, "The arrow keys ← and → page too."),
  ];
}

function notable(step) {
  if (step.special.length) return SPECIAL[step.special[0][0]];
  return step.executed.length ? "" : "didn't reach the world";
}

function startView(episode) {
  if (!episode.start) return [make("p", {}, "The episode ended before it began."), make("pre", {}, episode.error)];
  const replayed = episode.start.executed;
  return [
    make("h3", {}, "What the policy was told"), make("pre", {}, episode.start.instruction),
    replayed.length ? [make("h3", {}, "What layers did before it began"), executedView(replayed)] : null,
    sidesView(episode.start), isEmpty(episode.start.info) ? null : infoView(episode.start.info),
  ];
}

function endView(episode) {
  return [
    make("h3", {}, "Verdict of the benchmark's verifier"),
    pairs([
      ["Verdict", episode.success === null ? "none: excluded, which says nothing about the policy" : won(episode)],
      ["Score", episode.score === null ? "none" : String(episode.score)],
      ["How it ended", `${episode.outcome}: ${ENDINGS[episode.outcome] ?? "unknown"}`],
      ["Time", seconds(episode.seconds)],
      ...Object.entries(episode.usage).map(([name, amount]) => [name, String(amount)]),
    ]),
    episode.error ? [make("h3", {}, "What went wrong"), make("pre", {}, episode.error)] : null,
    isEmpty(episode.metrics) ? null : infoView(episode.metrics, "Metrics"),
  ];
}

function stepView(step) {
  const flags = [
    step.terminated ? pill("", "the benchmark ended the episode") : null,
    step.truncated ? pill("warn", "a limit ended the episode") : null,
    step.masked ? pill("warn", "the world had ended; a layer went on") : null,
    pill(step.reward > 0 ? "won" : "", `reward ${step.reward}`),
    step.dense === null ? null : pill("", `step reward ${step.dense}`),
    step.dropped ? pill("warn", `${step.dropped} further actions of this reply weren't played`) : null,
  ];
  const said = step.text && step.text !== step.proposed;
  return [
    said ? [make("h3", {}, "What the policy said"), make("pre", { id: "said" }, step.text)] : null,
    make("div", { class: "flow" },
      make("div", {}, make("h3", {}, "Action that it proposed"), make("pre", { id: "proposed" }, step.proposed ?? "none")),
      make("div", {}, make("h3", {}, "What reached the world"), executedView(step.executed))),
    step.special.map(([key, words]) => make("p", { class: "note" }, make("b", {}, `${SPECIAL[key]}: `), words)),
    sidesView(step),
    make("p", { class: "head" }, flags),
    make("p", { class: "small" }, `The policy took ${seconds(step.seconds[0])}, the world and its layers ${seconds(step.seconds[1])}.`),
    isEmpty(step.usage) ? null : infoView(step.usage, "Usage"),
    isEmpty(step.info) ? null : infoView(step.info),
  ];
}

function executedView(executed) {
  if (!executed.length) return make("pre", { id: "executed" }, "nothing: the world wasn't touched");
  return make("pre", { id: "executed" }, executed.map((event) => event.words || `(${REACHED[event.kind]})`).join("\n"));
}

function sidesView(step) {
  const same = step.world === "same";
  const left = same ? step.shown : step.world;
  const marked = (runs) => runs.map(([text, differs]) => (differs ? make("mark", {}, text) : text));
  const world = step.reached ? "What the world showed" : "What the world showed last (it wasn't touched)";
  return [
    make("div", { class: "sides" },
      make("div", {}, make("h3", {}, world), make("pre", { id: "world" }, left ? marked(left) : "nothing was written down")),
      make("div", {}, make("h3", {}, "What the policy was shown"), make("pre", { id: "seen" }, marked(step.shown)))),
    make("p", { class: "small" }, same ? "Both are the same." : left ? "Differences are marked." : ""),
    step.data.every(isEmpty) ? null : folded("Observation as data",
      step.data.length === 1 ? make("pre", {}, JSON.stringify(step.data[0], null, 1))
        : make("div", { class: "sides" }, step.data.map((data) => make("pre", {}, JSON.stringify(data, null, 1))))),
  ];
}

function infoView(info, title = "Further info") {
  return folded(title, make("pre", {}, JSON.stringify(info, null, 1)));
}
