// Conversations: the whole log, with what is hidden.

import { at, can, get, post } from "./api.js";
import { badge, button, counted, empty, failure, h, moment, number, pagedList, panel, show } from "./dom.js";

const PAGE = 100;
// The anchor in which a compaction leaves its summary.
const COMPACTION = "summary";

export async function open(area, { rest }) {
  const next = (after) => get("/conversations", { limit: PAGE, after }, { everywhere: true });
  const page = await next();
  const { conversations } = page;
  const detail = h("div");
  const current = rest[0] ?? conversations[0]?.session;
  const item = (each) =>
    h(
      "li",
      null,
      h(
        "a",
        {
          href: `#/conversations/${encodeURIComponent(each.session)}`,
          "aria-current": each.session === current ? "true" : null,
        },
        each.title ?? each.session,
        h(
          "div",
          { class: "meta" },
          [
            each.title && each.session,
            counted(each.messages, "message"),
            each.hidden > 0 && `${number(each.hidden)} hidden`,
            each.last_at && moment(each.last_at),
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
    );
  show(
    area,
    h("h1", null, "Conversations"),
    conversations.length === 0
      ? panel("Conversations", empty("The agent has no conversation."))
      : h("div", { class: "split" }, panel("Sessions", pagedList(page, "conversations", next, item)), detail),
  );
  if (current) await one(detail, current);
}

async function one(area, name) {
  const path = at`/conversations/${name}`;
  const log = await get(path, { hidden: true, limit: PAGE }, { everywhere: true });
  const messages = h("div");
  const answer = h("div", { role: "status" });
  const seen = new Set();
  const move = (group, verb) => async () => {
    try {
      await post(`${path}${at`/groups/${group}/${verb}`}`, {}, { everywhere: true });
      await one(area, name);
    } catch (error) {
      show(answer, failure(error));
    }
  };
  const message = (each) => {
    const first = !seen.has(each.group);
    seen.add(each.group);
    return h(
      "article",
      { class: `message ${each.hidden ? "is-hidden" : ""}` },
      h(
        "header",
        null,
        badge(each.role),
        each.created_at && moment(each.created_at),
        each.hidden && badge("hidden", "warn"),
        first &&
          each.group &&
          can("write") &&
          button(
            each.hidden ? "Unhide group" : "Hide group",
            move(each.group, each.hidden ? "unhide" : "hide"),
            { class: "quiet" },
          ),
      ),
      each.text && h("pre", null, each.text),
      each.calls.map((call) =>
        h(
          "details",
          null,
          h("summary", null, `Calls ${call.name ?? "a tool"}`),
          h("pre", null, JSON.stringify(call, null, 2)),
        ),
      ),
      each.results.map((result) =>
        h(
          "details",
          null,
          h("summary", null, "Tool result"),
          h("pre", null, typeof result.text === "string" ? result.text : JSON.stringify(result, null, 2)),
        ),
      ),
    );
  };
  const add = (page) => {
    messages.append(...page.messages.map(message));
    if (page.after) {
      const more = button("Show more", async () => {
        more.remove();
        add(await get(path, { hidden: true, limit: PAGE, after: page.after }, { everywhere: true }));
      });
      messages.append(more);
    }
  };
  add(log);
  show(
    area,
    (log.state || Object.keys(log.anchors).length > 0) &&
      panel(
        "Outside the log",
        log.state && [h("h3", null, "State"), h("pre", null, log.state)],
        Object.entries(log.anchors).map(([anchor, text]) => [
          h("h3", null, anchor === COMPACTION ? "Compaction: summary of hidden groups" : `Anchor ${anchor}`),
          h("pre", null, text),
        ]),
      ),
    panel(name, answer, log.messages.length === 0 ? empty("No message is in it.") : messages),
  );
}
