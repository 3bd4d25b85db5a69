// A request as it would be sent: its parts against the window, and the prefix that a cache keeps.

import { get, post } from "./api.js";
import { stackedBar } from "./charts.js";
import {
  badge,
  counted,
  failure,
  field,
  h,
  noun,
  number,
  panel,
  percent,
  select,
  show,
  table,
  words,
} from "./dom.js";

const EXAMPLE = JSON.stringify([{ role: "user", content: "Which database does billing use?" }], null, 2);
let previous = null;

export async function open(area) {
  const [{ conversations }, { plans }] = await Promise.all([
    get("/conversations", {}, { everywhere: true }),
    get("/plans", {}, { everywhere: true }),
  ]);
  const source = select(
    [
      ...conversations.map((each) => [each.session, each.title ?? each.session]),
      ["", "messages written here"],
    ],
    conversations[0]?.session ?? "",
    choose,
  );
  const messages = h("textarea", { value: EXAMPLE, spellcheck: "false" });
  const written = field("Messages as JSON", messages, "In the layout of any provider.");
  const system = h("input", { type: "text", autocomplete: "off" });
  const memory = select(
    [["", "no memory"], ...plans.filter((each) => !each.startsWith("scoped"))],
    "layered",
  );
  const provider = select(["openai", "anthropic", "plain"], "openai");
  const size = h("input", { type: "number", min: 1, value: 8000 });
  const reserve = h("input", { type: "number", min: 0, value: 1000 });
  const results = h("div");
  function choose() {
    written.hidden = source.value !== "";
  }

  async function run(event) {
    event?.preventDefault();
    try {
      const body = {
        provider: provider.value,
        window: Number(size.value),
        reserve: Number(reserve.value),
        cache: true,
      };
      if (memory.value) body.memory = memory.value;
      if (system.value) body.system = system.value;
      if (source.value) body.session = source.value;
      else body.messages = JSON.parse(messages.value);
      draw(results, await post("/request", body));
    } catch (error) {
      show(
        results,
        failure(
          error instanceof SyntaxError ? new Error(`The messages are no JSON: ${error.message}`) : error,
        ),
      );
    }
  }

  show(
    area,
    h("h1", null, "Request"),
    h(
      "form",
      { class: "panel", on: { submit: run } },
      h("div", { class: "row" }, field("Conversation", source), field("System", system)),
      written,
      h(
        "div",
        { class: "row" },
        field("Memory", memory),
        field("Provider", provider),
        field("Window", size),
        field("Reserve for the answer", reserve),
        h("button", { type: "submit", class: "primary" }, "Build"),
      ),
    ),
    results,
  );
  choose();
  await run();
}

function draw(area, made) {
  const list = made.arguments.messages ?? made.arguments.input ?? [];
  const rest = made.parts.reduce((sum, each) => sum + each.used, 0);
  const stable = made.costs.slice(0, made.stable).reduce((sum, each) => sum + each, 0);
  const kept = previous
    ? list.findIndex((each, place) => JSON.stringify(each) !== JSON.stringify(previous[place]))
    : 0;
  const same = kept < 0 ? list.length : kept;
  const usage = [
    ["Part", (each) => words(each.name)],
    ["Tokens", (each) => number(each.used), "num"],
    ["Whole", (each) => number(each.offered), "num"],
    ["Share", (each) => (each.share ? number(each.share) : "–"), "num"],
    ["Shown", (each) => number(each.shown), "num"],
    ["Left out", (each) => number(each.left_out), "num"],
    ["Why", (each) => each.why],
  ];
  show(
    area,
    h(
      "div",
      { class: "figures" },
      figure(number(made.tokens), `of ${counted(made.limit, "token")}`),
      figure(number(list.length), noun(list.length, "message")),
      figure(number(made.left_out.length), `${noun(made.left_out.length, "group")} left out`),
      figure(
        number(stable),
        `${noun(stable, "token")} of messages in the cache prefix (${percent(stable / (made.tokens || 1))})`,
      ),
    ),
    panel(
      "Window",
      stackedBar(
        [
          ...made.parts.map((each) => [each.name, each.used]),
          ...(made.tokens > rest ? [["other", made.tokens - rest]] : []),
          ["reserve", made.reserve],
        ],
        made.window,
        "tokens",
      ),
      table("Parts", made.parts, usage),
      made.notes.length > 0 &&
        h(
          "ul",
          { class: "notes" },
          made.notes.map((each) => h("li", null, each.text)),
        ),
    ),
    made.left_out.length > 0 &&
      panel(
        "Left out",
        table("Groups left out", made.left_out, [
          ["Group", (each) => each.label ?? each.id ?? each.group],
          ["Reason", (each) => badge(words(each.reason), "out")],
          ["Tokens", (each) => number(each.tokens), "num"],
          ["Short by", (each) => number(each.short_by), "num"],
        ]),
      ),
    panel(
      "Messages",
      previous &&
        h(
          "p",
          { class: "dim" },
          `The first ${number(same)} of ${number(list.length)} messages are those of the request before.`,
        ),
      made.arguments.system && message({ role: "system", content: made.arguments.system }, null, "reused"),
      list.map((each, place) => [
        place === made.stable && h("div", { class: "boundary" }, "the cache prefix ends here"),
        message(each, made.costs[place], place < made.stable ? "reused" : "anew"),
      ]),
    ),
  );
  previous = list;
}

const figure = (value, text) => h("div", { class: "figure" }, h("b", null, value), h("span", null, text));

const message = (each, cost, kind) =>
  h(
    "article",
    { class: `message ${kind}` },
    h(
      "header",
      null,
      badge(each.role ?? each.type ?? "item"),
      cost !== null && cost !== undefined && h("span", null, counted(cost, "token")),
    ),
    h(
      "pre",
      null,
      typeof each.content === "string" ? each.content : JSON.stringify(each.content ?? each, null, 2),
    ),
  );
