// Memories: a filter, versions with what changed by word, the lifecycle, and what may be done to one.

import { all, at, can, get, post, remove } from "./api.js";
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
  panel,
  select,
  short,
  show,
  table,
  words,
} from "./dom.js";
import { differences, marked } from "./text_diff.js";

const last = { where: "", order: "newest" };

export async function open(area, { rest }) {
  const list = h("div");
  const detail = h("div");
  const where = h("input", {
    type: "search",
    value: last.where,
    placeholder: 'kind = "decision" and created_at >= 2026-01-01',
    spellcheck: "false",
    class: "mono",
  });
  const order = select(["newest", "important"], last.order, (value) => {
    last.order = value;
    load();
  });
  let found = [];

  async function load(after) {
    last.where = where.value.trim();
    try {
      const page = await get("/memories", { where: last.where, order: last.order, limit: 30, after });
      found = after ? [...found, ...page.memories] : page.memories;
      show(
        list,
        h("p", { class: "dim" }, counted(page.total, "memory")),
        page.notes.map((each) => h("p", { class: "dim" }, each.text)),
        found.length === 0
          ? empty("No memory passes this filter.")
          : h(
              "ul",
              { class: "list" },
              found.map((each) =>
                h(
                  "li",
                  null,
                  h(
                    "a",
                    { href: `#/memories/${each.id}`, "aria-current": each.id === rest[0] ? "true" : null },
                    each.content.slice(0, 110),
                    h(
                      "div",
                      { class: "meta" },
                      [
                        each.kind,
                        each.scope !== "global" && each.scope,
                        day(each.created_at),
                        each.status !== "active" && each.status,
                        each.version > 1 && `version ${each.version}`,
                        each.pinned && "pinned",
                      ]
                        .filter(Boolean)
                        .join(" · "),
                    ),
                  ),
                ),
              ),
            ),
        page.after && button("Show more", () => load(page.after)),
      );
    } catch (error) {
      show(list, failure(error));
    }
  }

  show(
    area,
    h("h1", null, "Memories"),
    h(
      "div",
      { class: "split" },
      h(
        "section",
        { class: "panel", "aria-label": "List of memories" },
        h(
          "form",
          {
            class: "row",
            on: {
              submit: (event) => {
                event.preventDefault();
                load();
              },
            },
          },
          field("Filter", where),
          field("Order", order),
          h("button", { type: "submit" }, "Filter"),
        ),
        list,
      ),
      detail,
    ),
  );
  await Promise.all([
    load(),
    rest[0] ? one(detail, rest[0], load) : show(detail, panel("Memory", empty("Choose a memory."))),
  ]);
}

async function one(area, id, changed) {
  const path = at`/memories/${id}`;
  let shown;
  try {
    const [{ memory, renditions, lifecycle }, { text: origin }, versions, events] = await Promise.all([
      get(path),
      get(`${path}/trace-back`),
      all(`${path}/history`, "versions"),
      all(`${path}/events`, "events", { everywhere: true }),
    ]);
    shown = [
      panel(
        "Memory",
        h("pre", null, memory.content),
        h(
          "div",
          { class: "line" },
          facts([
            ["Kind", memory.kind],
            ["Status", badge(memory.status, memory.status === "active" ? "good" : "warn")],
            ["Scope", memory.scope],
            ["Subject", memory.subject],
            ["Tags", memory.tags.join(", ")],
            ["Importance", number(memory.importance, 1)],
            ["Confidence", number(memory.confidence, 2)],
            ["Outcome", memory.outcome],
            ["Trust", memory.trust],
            ["Source", memory.source],
            ["Made", moment(memory.created_at)],
            ["Seen", number(memory.seen_count)],
            ["Used", number(memory.access_count)],
            ["Expires", memory.expires_at && moment(memory.expires_at)],
            ["Id", h("span", { class: "mono" }, memory.id)],
          ]),
        ),
        Object.keys(memory.metadata).length > 0 &&
          h(
            "details",
            null,
            h("summary", null, "Metadata"),
            h("pre", null, JSON.stringify(memory.metadata, null, 2)),
          ),
        h(
          "details",
          null,
          h("summary", null, "Levels"),
          ["micro", "summary", "full"]
            .filter((each) => renditions[each])
            .map((each) => [
              h("h3", null, `${each}, ${counted(renditions[each].tokens, "token")}`),
              h("pre", null, renditions[each].text),
            ]),
        ),
        actions(
          memory,
          () => Promise.all([one(area, id, changed), changed()]),
          () => {
            location.hash = "#/memories";
          },
        ),
      ),
      panel("Where it comes from", h("pre", null, origin)),
      panel(
        `Versions (${number(versions.length)})`,
        [...versions].reverse().map((each, place, every) => {
          const before = every[place + 1];
          return h(
            "article",
            { class: "message" },
            h(
              "header",
              null,
              badge(`version ${each.version}`),
              moment(each.updated_at),
              each.status !== "active" && badge(each.status, "warn"),
            ),
            h("pre", null, before ? marked(differences(before.content, each.content)) : each.content),
          );
        }),
      ),
      panel(
        "Lifecycle",
        facts([
          ["Stage", lifecycle.stage && badge(lifecycle.stage)],
          ["Confirmations", lifecycle.confirmations],
          ["Successes", lifecycle.successes],
          ["Failures", lifecycle.failures],
          ["Triggers", lifecycle.triggers],
          ["False alarms", lifecycle.false_alarms],
        ]),
        events.length > 0 &&
          table("Lifecycle events", events, [
            ["When", (each) => moment(each.at)],
            ["Sign", (each) => words(each.sign)],
            ["From", (each) => each.before ?? "–"],
            ["To", (each) => each.after ?? "–"],
            ["Cause", (each) => words(each.cause ?? "–")],
            ["By", (each) => each.by ?? "–"],
          ]),
      ),
    ];
  } catch (error) {
    shown = [failure(error)];
  }
  show(area, shown);
}

/** Forget, restore and purge, where the key may; a purge wants the end of the id to be typed. */
function actions(memory, done, gone) {
  const answer = h("div", { role: "status" });
  const run = (make, then) => async (event) => {
    event.preventDefault();
    try {
      await make();
      await then();
    } catch (error) {
      show(answer, failure(error));
    }
  };
  const path = at`/memories/${memory.id}`;
  const word = short(memory.id);
  const typed = h("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    on: {
      input: () => {
        purge.disabled = typed.value.trim() !== word;
      },
    },
  });
  const purge = h("button", { type: "submit", class: "danger", disabled: true }, "Purge");
  return [
    can("write") &&
      h(
        "div",
        { class: "tools line" },
        memory.status === "active"
          ? button(
              "Forget",
              run(() => post(`${path}/forget`), done),
            )
          : button(
              "Restore",
              run(() => post(`${path}/restore`), done),
            ),
      ),
    can("admin") &&
      h(
        "details",
        { class: "purge" },
        h("summary", null, "Purge"),
        h("p", null, "This deletes all versions permanently."),
        h(
          "form",
          { class: "row", on: { submit: run(() => remove(path, { confirm: true }), gone) } },
          field(`Type ${word} to confirm`, typed),
          purge,
        ),
      ),
    answer,
  ];
}
