// The playground: a context for a question, and why each candidate is in it or not.

import { can, get, post } from "./api.js";
import { candidates, changeList, changes, idOf } from "./candidates.js";
import { stackedBar } from "./charts.js";
import {
  announce,
  button,
  counted,
  failure,
  field,
  h,
  number,
  panel,
  percent,
  select,
  short,
  show,
  words,
} from "./dom.js";

const [LEAST, MOST, USUAL, STEP] = [100, 32000, 2000, 100];
const SLOPE = Math.log(MOST / LEAST);

// The slider is logarithmic, in 1,000 steps.
const toSlider = (tokens) => Math.round((Math.log(Math.max(tokens, LEAST) / LEAST) / SLOPE) * 1000);
const fromSlider = (place) => {
  const tokens = LEAST * Math.exp((place / 1000) * SLOPE);
  return Number(tokens.toPrecision(2));
};

export async function open(area, { query }) {
  const [{ plans }, { frames }] = await Promise.all([
    get("/plans", {}, { everywhere: true }),
    get("/frames", {}, { everywhere: true }),
  ]);
  const state = {
    question: query.get("q") ?? "",
    budget: Number(query.get("budget")) || USUAL,
    plan: query.get("plan") ?? "layered",
    frame: query.get("frame") ?? "",
    pins: query.getAll("pin"),
    without: query.getAll("without"),
  };
  const results = h("div", { class: "results", "aria-busy": "false" });
  const labels = new Map();
  let base = null;
  let under = null;
  let waiting = 0;

  const body = (more = {}) => {
    const made = {
      query: state.question,
      budget: state.budget,
      plan: state.plan,
      pins: state.pins,
      without: state.without,
      ...more,
    };
    if (state.frame) made.frame = state.frame;
    return made;
  };

  function remember() {
    const given = new URLSearchParams({ q: state.question, budget: state.budget, plan: state.plan });
    if (state.frame) given.set("frame", state.frame);
    state.pins.forEach((id) => given.append("pin", id));
    state.without.forEach((id) => given.append("without", id));
    history.replaceState(null, "", `#/playground?${given}`);
  }

  async function run() {
    under?.abort();
    under = new AbortController();
    const { signal } = under;
    results.setAttribute("aria-busy", "true");
    remember();
    const started = performance.now();
    try {
      const [context, next] = await Promise.all([
        post("/assemble", body({ trace: true }), { signal }),
        post("/explain", body({ budget: state.budget + STEP }), { signal }).catch((error) => {
          if (error.name === "AbortError") throw error;
          return null;
        }),
      ]);
      base = context;
      context.trace.entries.forEach((each) => labels.set(idOf(each), each.label));
      draw(context, next, performance.now() - started);
      announce(`${counted(context.items.length, "memory")} in ${counted(context.tokens, "token")}.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      const needed = error.body?.needed;
      show(
        results,
        failure(error),
        needed &&
          button(
            `Use ${counted(needed, "token")}`,
            () => {
              setBudget(needed);
              run();
            },
            { class: "primary" },
          ),
      );
    }
    results.setAttribute("aria-busy", "false");
  }

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(run, 180);
  }

  function draw(context, next, milliseconds) {
    const { trace } = context;
    const sections = trace.sections.filter((each) => each.included || each.excluded || each.used);
    const overhead = Math.max(context.tokens - sections.reduce((sum, each) => sum + each.used, 0), 0);
    const parts = [
      ...sections.map((each) => [each.name, each.used, each.share > 0 && `share ${number(each.share)}`]),
      ...(overhead ? [["headings", overhead]] : []),
    ];
    const out = trace.entries.length - context.items.length;
    show(
      results,
      h(
        "div",
        { class: "figures" },
        figure(number(context.tokens), `of ${counted(trace.budget, "token")}`),
        figure(percent(trace.budget ? context.tokens / trace.budget : 0), "of the budget"),
        figure(number(context.items.length), "in"),
        figure(number(out), "left out"),
        figure(`${number(milliseconds)} ms`, "for two contexts"),
      ),
      panel("Sections", stackedBar(parts, trace.budget, "tokens"), understood(trace), notes(trace)),
      panel(
        `With the next ${STEP} tokens`,
        next
          ? changeList(changes(trace.entries, next.trace.entries), {
              nothing: `${STEP} more tokens would change nothing.`,
            })
          : h("p", { class: "dim" }, "It can't be said for this budget."),
      ),
      panel("Candidates", candidates(trace.entries, { whatIf })),
      panel(
        "Context",
        h(
          "div",
          { class: "tools" },
          can("write") && button("Record in the ledger", record),
          h("span", { class: "dim", id: "recorded" }),
        ),
        h("pre", { class: "context", tabindex: "0" }, context.text || "Nothing."),
      ),
    );
  }

  const figure = (value, text) => h("div", { class: "figure" }, h("b", null, value), h("span", null, text));

  function understood({ question, frame, frame_confidence: sure, plan, counter }) {
    const when =
      question.when &&
      [question.when.since ?? question.when.start, question.when.until ?? question.when.end]
        .map((each) => (each ? each.slice(0, 10) : "any"))
        .join(" to ");
    return h(
      "p",
      { class: "dim line" },
      question.terms.length > 0 && ["Looked for ", h("b", null, question.terms.join(", ")), ". "],
      when && `Time: ${when}. `,
      `Plan ${plan}`,
      frame && `, frame ${frame}${sure < 1 ? ` (${percent(sure)} sure)` : ""}`,
      `, counted by ${counter}.`,
    );
  }

  const notes = ({ notes: found, empty_reason: none }) =>
    (found.length > 0 || none) &&
    h(
      "ul",
      { class: "notes" },
      none && h("li", null, `Nothing is shown: ${words(none)}.`),
      found.map((each) => h("li", null, each.text)),
    );

  async function record(event) {
    event.target.disabled = true;
    const { ref } = await post("/assemble", body({ record: true }));
    show(
      document.getElementById("recorded"),
      "Recorded as ",
      h("a", { href: `#/ledger/${ref}` }, short(ref)),
      ".",
    );
  }

  /** The controls of one candidate: what if it were pinned, or left out. */
  function whatIf(entry) {
    const id = idOf(entry).split("@")[0];
    const answer = h("div", { class: "what-if", role: "status" });
    const keep = (list) => {
      state.pins = state.pins.filter((each) => each !== id);
      state.without = state.without.filter((each) => each !== id);
      state[list].push(id);
      chips();
      run();
    };
    const attempt = (list, verb) => async () => {
      const other = list === "pins" ? "without" : "pins";
      show(answer, h("p", { class: "dim" }, "Assembling…"));
      try {
        const made = await post(
          "/explain",
          body({
            [list]: [...state[list].filter((each) => each !== id), id],
            [other]: state[other].filter((each) => each !== id),
          }),
        );
        const difference = made.tokens - base.tokens;
        show(
          answer,
          h(
            "p",
            null,
            `If it is ${verb}, the context has `,
            h("b", null, counted(made.tokens, "token")),
            ` (${difference < 0 ? "−" : "+"}${number(Math.abs(difference))}).`,
          ),
          changeList(changes(base.trace.entries, made.trace.entries)),
          button(list === "pins" ? "Keep it pinned" : "Keep it excluded", () => keep(list)),
        );
      } catch (error) {
        show(answer, failure(error));
      }
    };
    if (entry.kind === "message") return null;
    return h(
      "div",
      null,
      h("h4", null, "What if"),
      h(
        "div",
        { class: "tools" },
        button("it is pinned?", attempt("pins", "pinned")),
        button("it is excluded?", attempt("without", "excluded")),
      ),
      answer,
    );
  }

  const chosen = h("div", { class: "chips" });
  function chips() {
    const chip = (list, word) => (id) =>
      h(
        "span",
        { class: "chip" },
        `${word} `,
        h("b", null, labels.get(id) || short(id)),
        button(
          "×",
          () => {
            state[list] = state[list].filter((each) => each !== id);
            chips();
            run();
          },
          { "aria-label": `No longer ${word}: ${labels.get(id) || short(id)}` },
        ),
      );
    show(chosen, state.pins.map(chip("pins", "pinned")), state.without.map(chip("without", "excluded")));
  }

  const slider = h("input", {
    type: "range",
    min: 0,
    max: 1000,
    value: toSlider(state.budget),
    "aria-label": "Budget slider",
    "aria-valuetext": counted(state.budget, "token"),
    on: {
      input: () => {
        setBudget(fromSlider(Number(slider.value)), false);
        later();
      },
    },
  });
  const exact = h("input", {
    type: "number",
    min: 1,
    step: 1,
    value: state.budget,
    id: "budget",
    on: {
      input: () => {
        if (exact.value) {
          setBudget(Math.max(1, Math.floor(Number(exact.value))), true, false);
          later();
        }
      },
    },
  });
  function setBudget(tokens, moves = true, writes = true) {
    state.budget = tokens;
    if (writes) exact.value = tokens;
    if (moves) slider.value = toSlider(tokens);
    slider.setAttribute("aria-valuetext", counted(tokens, "token"));
  }

  const question = h("input", {
    type: "text",
    id: "question",
    value: state.question,
    autocomplete: "off",
    placeholder: "What does the agent need to know?",
    on: {
      input: () => {
        state.question = question.value;
        later();
      },
    },
  });
  show(
    area,
    h("h1", null, "Playground"),
    h(
      "form",
      {
        class: "panel ask",
        on: {
          submit: (event) => {
            event.preventDefault();
            run();
          },
        },
      },
      field("Question", question),
      h(
        "div",
        { class: "field budget" },
        h("label", { for: "budget" }, "Budget in tokens"),
        h("div", { class: "pair" }, slider, exact),
      ),
      h(
        "div",
        { class: "row" },
        field(
          "Plan",
          select(plans, state.plan, (value) => {
            state.plan = value;
            run();
          }),
        ),
        field(
          "Frame",
          select(
            [["", "default (task)"], ["auto", "auto: by the question"], ...frames.map((each) => each.name)],
            state.frame,
            (value) => {
              state.frame = value;
              run();
            },
          ),
        ),
        h("button", { type: "submit", class: "primary" }, "Assemble"),
      ),
      chosen,
    ),
    results,
  );
  chips();
  await run();
  chips();
}
