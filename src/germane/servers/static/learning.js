// What was learned from conversations: runs with each decision and its quotations.
// And what is known of a name.

import { at, can, get, post } from "./api.js";
import {
  badge,
  button,
  counted,
  day,
  empty,
  facts,
  failure,
  field,
  h,
  moment,
  number,
  pagedList,
  panel,
  short,
  show,
} from "./dom.js";

const PAGE = 50;
const HERE = { everywhere: true };
const KINDS = { new: "good", confirmed: "good", revised: "warn", contradicted: "bad", refused: "bad" };
const CHANGES = ["new", "confirmed", "revised", "contradicted"];

export async function open(area, { rest, query }) {
  const next = (after) => get("/learning-runs", { limit: PAGE, after }, HERE);
  const page = await next();
  const { runs } = page;
  const name = h("input", {
    type: "search",
    value: query.get("about") ?? "",
    placeholder: "Anna, or my sister, or me",
  });
  const known = h("div");
  const detail = h("div");
  const current = rest[0] ?? runs[0]?.id;
  const look = async () => show(known, name.value.trim() ? await about(name.value.trim()) : null);
  show(
    area,
    h("h1", null, "Learning"),
    panel(
      "What is known",
      h(
        "form",
        {
          class: "row",
          on: {
            submit: (event) => {
              event.preventDefault();
              look();
            },
          },
        },
        field("Person or thing", name, "A name, a relation such as my sister, or me for the user."),
        h("button", { type: "submit" }, "Look up"),
      ),
      known,
    ),
    runs.length === 0 && !current
      ? panel("Runs", empty("Nothing was learned from conversations yet. `germane learn from` does it."))
      : h(
          "div",
          { class: "split" },
          panel(
            "Runs",
            pagedList(page, "runs", next, (each) => entry(each, current)),
          ),
          detail,
        ),
  );
  await Promise.all([look(), current && one(detail, current)]);
}

const entry = (run, current) =>
  h(
    "li",
    null,
    h(
      "a",
      { href: `#/learning/${run.id}`, "aria-current": run.id === current ? "true" : null },
      run.session ?? run.extractor,
      h(
        "div",
        { class: "meta" },
        [
          moment(run.at),
          run.session && run.extractor,
          counted(run.decisions.length, "decision"),
          run.undone_at && "undone",
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    ),
  );

async function one(area, id) {
  const answer = h("div", { role: "status" });
  let run;
  try {
    ({ run } = await get(at`/learning-runs/${id}`, {}, HERE));
  } catch (error) {
    return show(area, failure(error));
  }
  const undo = async () => {
    try {
      await post(at`/learning-runs/${run.id}/undo`, {}, HERE);
      await one(area, id);
    } catch (error) {
      show(answer, failure(error));
    }
  };
  const undoable =
    !run.undone_at &&
    run.decisions.some((each) => !each.undone && each.memory && CHANGES.includes(each.outcome));
  return show(
    area,
    panel(
      run.session ?? run.extractor,
      facts([
        ["Ran", `${moment(run.at)} UTC`],
        ["Extractor", run.extractor],
        ["Messages", run.session && `${number(run.since + 1)} to ${number(run.through)}`],
        ["Tokens", run.tokens || null],
        ["Stopped", run.stopped],
        ["Undone", run.undone_at && `${moment(run.undone_at)} UTC`],
        ["Id", h("span", { class: "mono" }, run.id)],
      ]),
      can("write") && undoable && h("div", { class: "tools line" }, button("Undo run", undo)),
      answer,
    ),
    panel(
      `Decisions (${number(run.decisions.length)})`,
      run.decisions.length === 0
        ? empty("The run proposed nothing.")
        : run.decisions.map((each) => decision(each, run.session)),
    ),
  );
}

const decision = (each, session) =>
  h(
    "article",
    { class: "message" },
    h(
      "header",
      null,
      badge(each.outcome, KINDS[each.outcome]),
      each.undone && badge("undone", "warn"),
      each.memory && (each.undone ? short(each.memory) : memory(each.memory)),
      each.other && ["against ", memory(each.other)],
    ),
    h("p", null, each.proposal.content || "Its text was purged."),
    h("p", { class: "dim" }, each.reason),
    quotes(each.proposal.quotes, session),
  );

const memory = (id) => h("a", { href: `#/memories/${id}` }, short(id));

const quotes = (found, session) =>
  found.map((each) =>
    h(
      "blockquote",
      null,
      each.text || each.withheld || "",
      " ",
      session
        ? h("a", { href: `#/conversations/${encodeURIComponent(session)}` }, `message ${short(each.message)}`)
        : h("span", { class: "dim" }, `message ${short(each.message)}`),
    ),
  );

async function about(name) {
  let report;
  try {
    report = await get("/entities", { name, limit: 100 }, HERE);
  } catch (error) {
    return failure(error);
  }
  return [
    report.entities.length + report.unclear.length === 0 && empty("Nothing is known about this name."),
    report.notes.length > 0 &&
      h(
        "ul",
        { class: "notes" },
        report.notes.map((each) => h("li", null, each)),
      ),
    report.entities.map((each) => [
      h("h3", null, each.names.join(" = ")),
      h("ul", { class: "known" }, each.facts.map(fact)),
      each.merges.length > 0 &&
        h(
          "details",
          null,
          h("summary", null, "Why these names are one"),
          h(
            "ul",
            { class: "notes" },
            each.merges.map((merge) =>
              h(
                "li",
                null,
                `${merge.names.join(" = ")}: ${merge.reason} `,
                merge.memories.map((id) => [memory(id), " "]),
              ),
            ),
          ),
        ),
    ]),
    report.unclear.length > 0 && [
      h("h3", null, "Unclear whom these mean"),
      h("ul", { class: "known" }, report.unclear.map(fact)),
    ],
  ];
}

const fact = (each) =>
  h(
    "li",
    null,
    h(
      "span",
      { class: "dim" },
      each.until ? `${day(each.since)} to ${day(each.until)} ` : `${day(each.since)} `,
    ),
    each.memory.content,
    " ",
    !each.current && badge("former", "warn"),
    each.mentioned && badge("mentioned"),
    " ",
    memory(each.memory.superseded_by ? each.memory.version_id : each.memory.id),
    quotes(each.quotes, each.memory.session),
  );
