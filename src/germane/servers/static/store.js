// The store: its health, what it holds, metrics by day, decay and calibration, spaces.

import { all, can, get } from "./api.js";
import { curves, dayBars, stackedBar } from "./charts.js";
import {
  badge,
  counted,
  day,
  empty,
  facts,
  failure,
  field,
  h,
  number,
  panel,
  percent,
  select,
  show,
  table,
  words,
} from "./dom.js";

const SHAPES = [
  ["hyperbolic", "hue-0"],
  ["exponential", "hue-9"],
  ["none", "ideal"],
];
const FIGURES = [
  ["relevance", "share"],
  ["budget_use", "share"],
  ["recall_precision", "share"],
  ["fact_confirmation", "share"],
  ["refreshes_per_turn", "number"],
  ["memory_growth", "number"],
  ["cold_start", "seconds"],
];
const bytes = (value) =>
  value === null || value === undefined
    ? "–"
    : value < 1 << 20
      ? `${number(value / 1024)} KiB`
      : `${number(value / (1 << 20), 1)} MiB`;

export async function open(area) {
  const [stats, metrics, calibration, spaces] = await Promise.all([
    get("/stats"),
    get("/metrics"),
    get("/calibration"),
    all("/spaces", "spaces", { everywhere: true }),
  ]);
  const kinds = Object.entries(stats.by_kind).sort(([, a], [, b]) => b - a);
  const statuses = Object.entries(stats.by_status);
  const [health, decay] = [h("div"), h("div")];
  show(
    area,
    h("h1", null, "Store"),
    panel("Health", health),
    panel(
      "Contents",
      facts([
        ["Memories", number(stats.memories)],
        ["Tokens", number(stats.tokens)],
        ["Size", bytes(stats.bytes)],
        ["Location", h("span", { class: "mono" }, stats.location)],
        ["Schema", stats.schema_version],
        ["Language", stats.language],
        [
          "Embedding model",
          stats.embedding ? `${stats.embedding.name}, ${stats.embedding.dimension} dimensions` : "none",
        ],
        ["Vectors", `${number(stats.vectors)}${stats.pending ? `, ${number(stats.pending)} pending` : ""}`],
        ["Oldest", day(stats.oldest)],
        ["Newest", day(stats.newest)],
      ]),
      h("h3", null, "By kind"),
      stackedBar(kinds, stats.memories, "memories", inOrder(kinds)),
      h("h3", null, "By status"),
      stackedBar(statuses, stats.memories, "memories", inOrder(statuses)),
    ),
    panel(
      "Metrics of 30 days",
      table("Metrics", FIGURES, [
        ["Figure", ([name]) => words(name)],
        ["Value", ([name, kind]) => shown(metrics[name], kind), "num"],
      ]),
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          null,
          h("h3", null, "Memories added by day"),
          dayBars(
            "Memories added",
            metrics.per_day.map((each) => ({ date: each.date, value: each.added })),
          ),
        ),
        h(
          "div",
          null,
          h("h3", null, "Assemblies by day"),
          dayBars(
            "Assemblies",
            metrics.per_day.map((each) => ({ date: each.date, value: each.assemblies })),
          ),
        ),
      ),
      h("h3", null, "Relevance and budget use by day"),
      metrics.assemblies ? lines(metrics.per_day) : empty("No assembly is recorded."),
    ),
    h(
      "div",
      { class: "columns" },
      panel("Decay", decay),
      panel("Calibration of decisions", reliability(calibration)),
    ),
    panel(
      "Spaces",
      spaces.length === 0
        ? empty("The agent is a member of no space.")
        : spaces.map((each) => [
            h(
              "h3",
              null,
              each.name,
              " ",
              h("span", { class: "dim" }, `since ${day(each.created_at)}, admits ${each.admits ?? "nobody"}`),
            ),
            table(`Members of ${each.name}`, each.members, [
              ["Member", (one) => one.agent],
              ["Role", (one) => badge(one.role, one.role === "active" ? "good" : "")],
              ["Rights", (one) => one.rights],
              ["Joined", (one) => day(one.joined_at)],
            ]),
          ]),
    ),
  );
  await Promise.all([doctor(health), decays(decay, 1)]);
}

const inOrder = (entries) => (name) => `hue-${entries.findIndex(([each]) => each === name) % 12}`;

const shown = (value, kind) =>
  value === null
    ? "–"
    : kind === "share"
      ? percent(value, 1)
      : kind === "seconds"
        ? `${number(value, 2)} s`
        : number(value, 2);

async function doctor(area) {
  if (!can("admin")) return show(area, h("p", { class: "dim" }, "This needs a key with the right admin."));
  try {
    const { findings } = await get("/doctor", {}, { everywhere: true });
    return show(
      area,
      findings.length === 0
        ? h("p", null, badge("sound", "good"), " Nothing is wrong with the store.")
        : table("Findings", findings, [
            ["Finding", (each) => each.text ?? each.message ?? each.problem ?? each.code],
            ["Remedy", (each) => each.remedy ?? "–"],
          ]),
    );
  } catch (error) {
    return show(area, failure(error));
  }
}

function lines(days) {
  const last = Math.max(days.length - 1, 1);
  const ticks = [0, Math.floor(last / 2), last].map((place) => [place, days[place]?.date.slice(5) ?? ""]);
  const of = (name) => days.map((each, place) => [place, each[name]]);
  return curves(
    "Relevance and budget use by day, from 0 to 1",
    [
      { label: "relevance", points: of("relevance"), kind: "hue-0", dots: true },
      { label: "budget use", points: of("budget_use"), kind: "hue-9", dots: true },
      { label: "recall precision", points: of("recall_precision"), kind: "hue-6", dots: true },
    ],
    {
      x: [0, last],
      y: [0, 1],
      xTicks: ticks,
      yTicks: [
        [0, "0"],
        [0.5, "0.5"],
        [1, "1"],
      ],
    },
  );
}

async function decays(area, hours) {
  const made = await Promise.all(
    SHAPES.map(([shape]) => get("/decay", { shape, hours }, { everywhere: true })),
  );
  const most = hours * 8;
  const form = field(
    "Age that halves the weight",
    select(
      [
        ["1", "1 hour"],
        ["24", "1 day"],
        ["168", "1 week"],
        ["720", "30 days"],
      ],
      String(hours),
      (value) => decays(area, Number(value)),
    ),
  );
  show(
    area,
    form,
    h("p", { class: "dim line" }, "The weight of a memory in a working set by its age."),
    curves(
      `Weight by age up to ${counted(most, "hour")}: one half at ${counted(hours, "hour")} by the ` +
        "hyperbolic and the exponential curve",
      made.map(({ shape, points }, place) => ({
        label: shape,
        kind: SHAPES[place][1],
        points: points.map((each) => [each.age_hours, each.weight]),
      })),
      {
        x: [0, most],
        y: [0, 1],
        xTicks: [0, 2, 4, 6, 8].map((each) => [each * hours, number(each * hours)]),
        yTicks: [
          [0, "0"],
          [0.5, "0.5"],
          [1, "1"],
        ],
        xTitle: "age in hours",
      },
    ),
  );
}

const inWords = ({ count, confidence, success }) =>
  `${counted(count, "decision")} with confidence ${number(confidence, 2)} succeeded in ${percent(success)}`;

function reliability({ count, brier, bias, success, advice, bins }) {
  if (count === 0) return [h("p", null, advice)];
  const most = Math.max(...bins.map((each) => each.count));
  return [
    h("p", null, advice),
    facts([
      ["Decisions", number(count)],
      ["Brier score", number(brier, 3)],
      ["Bias", number(bias, 3)],
      ["Came true", percent(success)],
    ]),
    curves(
      `Success by confidence: ${bins.map(inWords).join("; ")}`,
      [
        {
          label: "as good as expected",
          points: [
            [0, 0],
            [1, 1],
          ],
          kind: "ideal",
        },
        { label: "success", points: bins.map((each) => [each.confidence, each.success]), kind: "hue-0" },
        {
          points: bins.map((each) => [
            each.confidence,
            each.success,
            3 + 6 * Math.sqrt(each.count / most),
            counted(each.count, "decision"),
          ]),
          kind: "hue-0",
          dots: true,
        },
      ],
      {
        x: [0, 1],
        y: [0, 1],
        xTicks: [
          [0, "0"],
          [0.5, "0.5"],
          [1, "1"],
        ],
        yTicks: [
          [0, "0"],
          [0.5, "0.5"],
          [1, "1"],
        ],
        xTitle: "confidence",
      },
    ),
  ];
}
