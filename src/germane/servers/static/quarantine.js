// Quarantine: what rules keep out of every result, with the rules, where it came from, and its release.

import { at, can, get, post } from "./api.js";
import { badge, button, empty, facts, failure, h } from "./dom.js";
import { moment, pagedList, panel, short, show, words } from "./dom.js";

const PAGE = 50;

export async function open(area) {
  const next = (after) => get("/quarantine", { limit: PAGE, after });
  const page = await next();
  show(
    area,
    h("h1", null, "Quarantine"),
    panel(
      "Never shown",
      h(
        "p",
        { class: "dim" },
        "Texts that look like an instruction to a model or like a secret. None of them is in any result ",
        "until it is released. To purge one, open it.",
      ),
      page.memories.length === 0
        ? empty("Nothing is in quarantine.")
        : pagedList(page, "memories", next, entry),
    ),
  );
}

function entry({ memory, rules, at: marked, replaces }) {
  const item = h("li", { class: "message" });
  const answer = h("div", { role: "status" });
  const release = async () => {
    try {
      const { memory: released } = await post(at`/quarantine/${memory.id}/release`);
      const since = ` is shown since version ${released.version}.`;
      show(item, h("p", null, "Released: ", link(released.id), since));
    } catch (error) {
      show(answer, failure(error));
    }
  };
  show(
    item,
    h(
      "header",
      null,
      rules.map((each) => badge(words(each), "warn")),
      moment(marked),
    ),
    h("pre", null, memory.content),
    facts([
      ["Trust", memory.trust],
      ["Source", memory.source],
      ["Kind", memory.kind],
      ["Would replace", replaces && link(replaces)],
      ["Memory", link(memory.id)],
    ]),
    can("admin") &&
      h(
        "div",
        { class: "tools line" },
        button("Release", release, { "aria-label": `Release ${short(memory.id)}` }),
      ),
    answer,
  );
  return item;
}

const link = (id) => h("a", { href: `#/memories/${id}` }, short(id));
