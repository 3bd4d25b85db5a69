// What became of each candidate of an assembly, and how two assemblies differ.

import { at, get } from "./api.js";
import { hue, hueOfPart, partsBar } from "./charts.js";
import { badge, button, counted, day, failure, fresh, h, number, select, short, show, words } from "./dom.js";

const PAGE = 50;

const REASONS = {
  over_budget: ["over budget", "No level of it fitted the tokens that were left for its section."],
  stopped: ["ranked below", "It ranks below the first that did not fit."],
  duplicate: ["duplicate", "The same text stands in the context already."],
  limit: ["limit", "Its section shows as many memories as the plan allows."],
  not_relevant: ["not relevant", "It has too little to do with the question."],
  said: ["in conversation", "It stands in the running conversation already."],
  alike: ["alike", "Its section shows as many of its subject as the plan allows."],
  evicted: ["evicted", "It left the context under pressure."],
};

export const idOf = (entry) => entry.id ?? entry.memory_id;

/** The words for why a candidate is in, or out. */
export const why = (entry) =>
  entry.reason
    ? (REASONS[entry.reason] ?? [words(entry.reason), ""])
    : [`in, ${entry.level}`, `It stands in the context at level ${entry.level}.`];

export const scoreText = (parts) =>
  Object.entries(parts)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .map(([name, value]) => `${words(name)} ${number(value, 2)}`)
    .join(", ");

/** What changes from one list of entries to another: entered, left, and other levels. */
export function changes(before, after) {
  const of = (entries) => new Map(entries.filter((each) => !each.reason).map((each) => [idOf(each), each]));
  const [first, second] = [of(before), of(after)];
  return {
    entered: [...second.values()].filter((each) => !first.has(idOf(each))),
    left: [...first.values()].filter((each) => !second.has(idOf(each))),
    altered: [...second.values()]
      .filter((each) => first.has(idOf(each)) && first.get(idOf(each)).level !== each.level)
      .map((each) => [first.get(idOf(each)), each]),
  };
}

/** The changes as a list with signs, and words for who can't see colours. */
export function changeList({ entered, left, altered }, { nothing = "Nothing changes.", link = false } = {}) {
  const name = (entry) =>
    link
      ? h("a", { href: `#/memories/${idOf(entry)}` }, entry.label || short(idOf(entry)))
      : h("span", { class: "label" }, entry.label || short(idOf(entry)));
  const line = (kind, sign, word, entry, note) =>
    h(
      "li",
      { class: kind },
      h("span", { class: "sign", "aria-hidden": "true" }, sign),
      h("span", { class: "hidden" }, `${word}: `),
      h("span", null, name(entry), " ", h("span", { class: "dim" }, note)),
    );
  const lines = [
    ...entered.map((each) =>
      line(
        "entered",
        "+",
        "enters",
        each,
        `${words(each.section)}, ${each.level}, ${counted(each.tokens, "token")}`,
      ),
    ),
    ...left.map((each) =>
      line("left", "−", "leaves", each, `${words(each.section)}, ${counted(each.tokens, "token")}`),
    ),
    ...altered.map(([before, after]) =>
      line("altered", "~", "changes", after, `${before.level} → ${after.level}`),
    ),
  ];
  return lines.length ? h("ul", { class: "changes" }, lines) : h("p", { class: "dim" }, nothing);
}

function detail(entry, whatIf) {
  const parts = Object.entries(entry.parts);
  const most = Math.max(...parts.map(([, value]) => Math.abs(value)), 0.01);
  const text = h("div", { class: "text" }, h("p", { class: "dim" }, "Loading the text…"));
  get(at`/memories/${idOf(entry).split("@")[0]}`).then(
    ({ memory }) => show(text, h("pre", null, memory.content)),
    (error) =>
      show(
        text,
        entry.kind === "message" ? h("p", { class: "dim" }, "A message of a conversation.") : failure(error),
      ),
  );
  return h(
    "div",
    { class: "detail" },
    h(
      "div",
      null,
      h("h4", null, "Score"),
      parts.length
        ? h(
            "table",
            { class: "parts-table" },
            h(
              "tbody",
              null,
              parts.map(([name, value]) =>
                h(
                  "tr",
                  null,
                  h("th", { scope: "row" }, words(name)),
                  h(
                    "td",
                    null,
                    h("span", {
                      class: `meter ${value < 0 ? "less" : hueOfPart(name)}`,
                      style: { width: `${(Math.abs(value) / most) * 100}%` },
                    }),
                  ),
                  h("td", { class: "num" }, number(value, 3)),
                ),
              ),
            ),
          )
        : h("p", { class: "dim" }, "It has no score: its section shows it whatever the question is."),
      h(
        "p",
        { class: "dim" },
        why(entry)[1],
        entry.short_by ? ` It is short by ${number(entry.short_by)} tokens.` : "",
      ),
    ),
    h(
      "div",
      null,
      h("h4", null, "Text"),
      text,
      h(
        "p",
        { class: "dim" },
        entry.kind !== "message" &&
          h("a", { href: `#/memories/${idOf(entry).split("@")[0]}` }, "Versions and lifecycle"),
      ),
      whatIf?.(entry),
    ),
  );
}

/** All candidates as a table that can be filtered; `whatIf` adds controls to the details of one. */
export function candidates(entries, { whatIf } = {}) {
  const state = { which: "all", section: "", text: "", shown: PAGE };
  const inside = entries.filter((each) => !each.reason);
  // What only lacked tokens is the nearest to being in.
  const far = (entry) => (entry.reason === "over_budget" ? 0 : 1);
  const outside = entries.filter((each) => each.reason).sort((a, b) => far(a) - far(b) || b.score - a.score);
  const ordered = [...inside, ...outside];
  const most = Math.max(
    ...entries.map((each) => Object.values(each.parts).reduce((sum, value) => sum + Math.max(value, 0), 0)),
    0,
  );
  const body = h("tbody");
  const more = h("div", { class: "more" });

  function row(entry) {
    const id = fresh("detail");
    const [name, text] = why(entry);
    const below = h("tr", { class: "below", id, hidden: true }, h("td", { colspan: "4" }));
    const toggle = button(
      [
        h("span", { class: "chevron", "aria-hidden": "true" }),
        h("span", { class: "label" }, entry.label || short(idOf(entry))),
      ],
      () => {
        const opens = below.hidden;
        below.hidden = !opens;
        toggle.setAttribute("aria-expanded", String(opens));
        if (opens && !below.firstChild.firstChild) show(below.firstChild, detail(entry, whatIf));
      },
      { class: "expander", "aria-expanded": "false", "aria-controls": id },
    );
    const meta = [
      words(entry.section),
      entry.kind !== entry.section && entry.kind,
      entry.scope && entry.scope !== "global" && entry.scope,
      entry.created_at && day(entry.created_at),
      short(idOf(entry)),
    ].filter(Boolean);
    return [
      h(
        "tr",
        { class: entry.reason ? "out" : "in" },
        h(
          "th",
          { scope: "row" },
          toggle,
          h("div", { class: "meta" }, h("span", { class: `swatch ${hue(entry.section)}` }), meta.join(" · ")),
        ),
        h(
          "td",
          { title: text },
          badge(name, entry.reason ? "out" : "in"),
          entry.short_by > 0 && h("span", { class: "short" }, `short by ${number(entry.short_by)}`),
        ),
        h("td", { class: "num", "data-label": "tokens" }, entry.tokens ? number(entry.tokens) : "–"),
        h(
          "td",
          { class: "score", "data-label": "score" },
          Object.keys(entry.parts).length
            ? [
                h("span", { class: "num" }, number(entry.score, 2)),
                partsBar(entry.parts, most),
                h("span", { class: "hidden" }, scoreText(entry.parts)),
              ]
            : h("span", { class: "dim" }, "always"),
        ),
      ),
      below,
    ];
  }

  function draw() {
    const found = ordered.filter(
      (each) =>
        (state.which === "all" || (state.which === "in") === !each.reason) &&
        (!state.section || each.section === state.section) &&
        (!state.text ||
          `${each.label} ${each.kind} ${each.scope} ${idOf(each)}`.toLowerCase().includes(state.text)),
    );
    show(body, found.slice(0, state.shown).map(row));
    show(
      more,
      found.length > state.shown &&
        button(
          `Show ${number(Math.min(PAGE, found.length - state.shown))} more of ${number(found.length)}`,
          () => {
            state.shown += PAGE;
            draw();
          },
        ),
      found.length === 0 && h("p", { class: "empty" }, "No candidate is like this."),
    );
  }

  const set = (name) => (value) => {
    state[name] = value;
    state.shown = PAGE;
    draw();
  };
  const group = fresh("which");
  const choice = (value, text) =>
    h(
      "label",
      null,
      h("input", {
        type: "radio",
        name: group,
        value,
        checked: value === state.which,
        on: { change: () => set("which")(value) },
      }),
      h("span", null, text),
    );
  const sections = [...new Set(entries.map((each) => each.section))];
  draw();
  return h(
    "div",
    { class: "candidates" },
    h(
      "div",
      { class: "tools" },
      h(
        "fieldset",
        { class: "segmented" },
        h("legend", { class: "hidden" }, "Show"),
        choice("all", `All ${number(entries.length)}`),
        choice("in", `In ${number(inside.length)}`),
        choice("out", `Out ${number(outside.length)}`),
      ),
      select([["", "all sections"], ...sections.map((each) => [each, words(each)])], "", set("section"), {
        "aria-label": "Section",
      }),
      h("input", {
        type: "search",
        placeholder: "Filter by text",
        "aria-label": "Filter candidates by text",
        on: { input: (event) => set("text")(event.target.value.toLowerCase()) },
      }),
    ),
    h(
      "table",
      { class: "entries" },
      h("caption", { class: "hidden" }, "Candidates"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Memory"),
          h("th", { scope: "col" }, "Fate"),
          h("th", { scope: "col", class: "num" }, "Tokens"),
          h("th", { scope: "col" }, "Score"),
        ),
      ),
      body,
    ),
    more,
  );
}

/** Entries with a label: the ledger has no text, so the memories that stood in the context are asked for. */
export async function labelled(entries) {
  const shown = entries.filter((each) => !each.reason).slice(0, 60);
  const found = await Promise.allSettled(shown.map((each) => get(at`/memories/${idOf(each)}`)));
  const labels = new Map(
    found.flatMap((each, place) =>
      each.status === "fulfilled"
        ? [[idOf(shown[place]), each.value.renditions.micro?.text ?? each.value.memory.content.slice(0, 80)]]
        : [],
    ),
  );
  return entries.map((each) => ({
    scope: "",
    ...each,
    label: labels.get(idOf(each)) ?? `${each.kind} ${short(idOf(each))}`,
  }));
}
