// Recorded assemblies: each candidate's fate, replay, and feedback.

import { at, can, get, post } from "./api.js";
import { candidates, changeList, idOf, labelled } from "./candidates.js";
import { badge, button, empty, facts, failure, h, moment, number, panel, show } from "./dom.js";

export async function open(area, { rest }) {
  const { assemblies } = await get("/ledger", { limit: 100 });
  const detail = h("div");
  const current = rest[0] ?? assemblies[0]?.id;
  show(area, h("h1", null, "Ledger"), assemblies.length === 0 && !current
    ? panel("Recorded assemblies", empty("Nothing is recorded yet. Record a context in the playground, or by assemble(record=True)."))
    : h("div", { class: "split" },
      panel("Recorded assemblies", h("ul", { class: "list" }, assemblies.map((each) => h("li", null,
        h("a", { href: `#/ledger/${each.id}`, "aria-current": each.id === current ? "true" : null }, each.question || h("span", { class: "dim" }, "no question"),
          h("div", { class: "meta" }, `${moment(each.at)} · ${number(each.tokens)} of ${number(each.budget)} · ${each.included} in`)))))),
      detail));
  if (current) await one(detail, current, assemblies);
}

async function one(area, id, assemblies) {
  const assembly = await get(at`/ledger/${id}`);
  const entries = await labelled(assembly.entries);
  const answer = h("div", { role: "status" });
  const other = assemblies[assemblies.findIndex((each) => each.id === id) + 1];
  const replay = async (event) => {
    event.target.disabled = true;
    show(answer, h("p", { class: "dim" }, "Making it again with the store as it was then…"));
    try {
      const made = await post(at`/ledger/${id}/replay`);
      show(answer, h("p", null, badge(made.same ? "same bytes" : "not the same bytes", made.same ? "good" : "bad"), made.same ? " Its hash equals the recorded one." : ""),
        made.why.length > 0 && h("ul", { class: "notes" }, made.why.map((each) => h("li", null, each))),
        made.difference && !made.same && changeList(made.difference));
    } catch (error) {
      show(answer, failure(error));
    }
    event.target.disabled = false;
  };
  show(area,
    panel(assembly.question || "No question",
      facts([["Made", `${moment(assembly.at)} UTC`], ["Tokens", `${number(assembly.tokens)} of ${number(assembly.budget)}`], ["Plan", assembly.plan], ["Frame", assembly.frame], ["For", assembly.made_for], ["Candidates", number(assembly.candidates)], ["Purged since", assembly.purged || null], ["Time", assembly.seconds === null ? null : `${number(assembly.seconds * 1000, 1)} ms`], ["SHA-256", h("span", { class: "mono" }, assembly.sha256?.slice(0, 16) ?? "purged")], ["Id", h("span", { class: "mono" }, id)]]),
      h("div", { class: "tools line" }, button("Replay", replay, { class: "primary" }), other && h("a", { href: `#/diff/${other.id}/${id}` }, "Compare with the one before")), answer),
    can("write") && assembly.sha256 && feedback(id, entries, () => one(area, id, assemblies)),
    panel("Candidates", candidates(entries)));
}

function feedback(ref, entries, done) {
  const inside = entries.filter((each) => !each.reason);
  const known = inside.some((each) => each.used !== null);
  const boxes = inside.map((each) => h("label", { class: "check" }, h("input", { type: "checkbox", value: idOf(each), checked: each.used === true }), " ", each.label));
  const answer = h("div", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const used = boxes.map((each) => each.querySelector("input")).filter((each) => each.checked).map((each) => each.value);
    try {
      await post("/feedback", { ref, used });
      await done();
    } catch (error) {
      show(answer, failure(error));
    }
  };
  return panel("Feedback", h("details", null, h("summary", null, known ? `${number(inside.filter((each) => each.used).length)} of ${number(inside.length)} were used` : "Say which memories were used"),
    h("form", { class: "checks", on: { submit: send } }, boxes, h("div", null, h("button", { type: "submit" }, "Send feedback")), answer)));
}
