// Recorded assemblies: each candidate's fate, replay, and feedback.

import { at, can, get, post } from "./api.js";
import { candidates, changeList, idOf, labelled } from "./candidates.js";
import { badge, button, empty, facts, failure, h, moment, number, pagedList, panel, show } from "./dom.js";

const PAGE = 50;

export async function open(area, { rest }) {
  const next = (after) => get("/ledger", { limit: PAGE, after });
  const page = await next();
  const { assemblies } = page;
  const detail = h("div");
  const current = rest[0] ?? assemblies[0]?.id;
  const item = (each) =>
    h(
      "li",
      null,
      h(
        "a",
        { href: `#/ledger/${each.id}`, "aria-current": each.id === current ? "true" : null },
        each.question || h("span", { class: "dim" }, "no question"),
        h(
          "div",
          { class: "meta" },
          [moment(each.at), `${number(each.tokens)} of ${number(each.budget)}`, `${each.included} in`].join(
            " · ",
          ),
        ),
      ),
    );
  show(
    area,
    h("h1", null, "Ledger"),
    assemblies.length === 0 && !current
      ? panel(
          "Recorded assemblies",
          empty("Nothing is recorded yet. Record a context in the playground, or by assemble(record=True)."),
        )
      : h(
          "div",
          { class: "split" },
          panel("Recorded assemblies", pagedList(page, "assemblies", next, item)),
          detail,
        ),
  );
  if (current) await one(detail, current);
}

async function one(area, id) {
  const [
    assembly,
    {
      assemblies: [previous],
    },
  ] = await Promise.all([get(at`/ledger/${id}`), get("/ledger", { limit: 1, after: id })]);
  const entries = await labelled(assembly.entries);
  const answer = h("div", { role: "status" });
  const replay = async (event) => {
    event.target.disabled = true;
    show(answer, h("p", { class: "dim" }, "Making it again with the store as it was then…"));
    try {
      const made = await post(at`/ledger/${id}/replay`);
      show(
        answer,
        h(
          "p",
          null,
          badge(made.same ? "same bytes" : "not the same bytes", made.same ? "good" : "bad"),
          made.same ? " Its hash equals the recorded one." : "",
        ),
        made.why.length > 0 &&
          h(
            "ul",
            { class: "notes" },
            made.why.map((each) => h("li", null, each)),
          ),
        made.difference && !made.same && changeList(made.difference),
      );
    } catch (error) {
      show(answer, failure(error));
    }
    event.target.disabled = false;
  };
  show(
    area,
    panel(
      assembly.question || "No question",
      facts([
        ["Made", `${moment(assembly.at)} UTC`],
        ["Tokens", `${number(assembly.tokens)} of ${number(assembly.budget)}`],
        ["Plan", assembly.plan],
        ["Frame", assembly.frame],
        ["For", assembly.made_for],
        ["Candidates", number(assembly.candidates)],
        ["Purged since", assembly.purged || null],
        ["Time", assembly.seconds === null ? null : `${number(assembly.seconds * 1000, 1)} ms`],
        ["SHA-256", h("span", { class: "mono" }, assembly.sha256?.slice(0, 16) ?? "purged")],
        ["Id", h("span", { class: "mono" }, id)],
      ]),
      h(
        "div",
        { class: "tools line" },
        button("Replay", replay, { class: "primary" }),
        previous && h("a", { href: `#/diff/${previous.id}/${id}` }, "Compare with the one before"),
      ),
      answer,
    ),
    can("write") && assembly.sha256 && feedback(id, entries, () => one(area, id)),
    panel("Candidates", candidates(entries)),
  );
}

function feedback(ref, entries, done) {
  const inside = entries.filter((each) => !each.reason);
  const known = inside.some((each) => each.used !== null);
  const boxes = inside.map((each) =>
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", value: idOf(each), checked: each.used === true }),
      " ",
      each.label,
    ),
  );
  const answer = h("div", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const used = boxes
      .map((each) => each.querySelector("input"))
      .filter((each) => each.checked)
      .map((each) => each.value);
    try {
      await post("/feedback", { ref, used });
      await done();
    } catch (error) {
      show(answer, failure(error));
    }
  };
  return panel(
    "Feedback",
    h(
      "details",
      null,
      h(
        "summary",
        null,
        known
          ? `${number(inside.filter((each) => each.used).length)} of ${number(inside.length)} were used`
          : "Say which memories were used",
      ),
      h(
        "form",
        { class: "checks", on: { submit: send } },
        boxes,
        h("div", null, h("button", { type: "submit" }, "Send feedback")),
        answer,
      ),
    ),
  );
}
