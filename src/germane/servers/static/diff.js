// Two recorded assemblies: what differs, and how much of a prompt cache stays.

import { at, get, post } from "./api.js";
import { changeList, labelled } from "./candidates.js";
import {
  badge,
  counted,
  empty,
  facts,
  field,
  h,
  moment,
  noun,
  number,
  panel,
  percent,
  select,
  short,
  show,
  table,
  words,
} from "./dom.js";
import { differences, marked } from "./text_diff.js";

const name = (each) =>
  [
    moment(each.at),
    each.question.slice(0, 60) || "no question",
    counted(each.budget, "token"),
    short(each.id),
  ].join(" · ");

export async function open(area, { rest }) {
  const { assemblies } = await get("/ledger", { limit: 100 });
  show(area, h("h1", null, "Diff"));
  if (assemblies.length < 2) {
    area.append(
      panel(
        "Nothing to compare",
        empty("Record two contexts first, in the playground or by assemble(record=True)."),
      ),
    );
    return;
  }
  const chosen = [rest[0] ?? assemblies[1].id, rest[1] ?? assemblies[0].id];
  const options = assemblies.map((each) => [each.id, name(each)]);
  for (const id of chosen) if (!options.some(([each]) => each === id)) options.push([id, short(id)]);
  const go = (place) => (id) => {
    chosen[place] = id;
    location.hash = `#/diff/${chosen.map(encodeURIComponent).join("/")}`;
  };
  area.append(
    h(
      "div",
      { class: "panel row" },
      field("From", select(options, chosen[0], go(0))),
      field("To", select(options, chosen[1], go(1))),
    ),
  );
  const made = await post(at`/ledger/${chosen[0]}/compare/${chosen[1]}`);
  const [before, after] = made.texts;
  const { difference } = made;
  const [entered, left, ends] = await Promise.all(
    [difference.entered, difference.left, difference.altered.map((each) => each.after ?? each[1])].map(
      labelled,
    ),
  );
  const altered = difference.altered.map((each, place) => [each.before ?? each[0], ends[place]]);
  const share = after.tokens ? ` (${percent(made.reused / after.tokens)})` : "";
  area.append(
    h(
      "div",
      { class: "figures" },
      ...[
        [difference.entered.length, "entered"],
        [difference.left.length, "left"],
        [difference.altered.length, "at another level"],
        [difference.moved.length, "moved"],
      ].map(([value, text]) =>
        h("div", { class: "figure" }, h("b", null, number(value)), h("span", null, text)),
      ),
      h(
        "div",
        { class: "figure" },
        h("b", null, number(made.reused)),
        h(
          "span",
          null,
          `${noun(made.reused, "token")} of the prefix ${made.reused === 1 ? "stays" : "stay"}${share}`,
        ),
      ),
    ),
    panel(
      "Memories",
      changeList(
        { entered, left, altered },
        { nothing: "The same memories at the same levels stand in both.", link: true },
      ),
    ),
    difference.inputs.length > 0 &&
      panel(
        "Inputs",
        table("Inputs that differ", difference.inputs, [
          ["Input", (each) => words(each.name)],
          ["Before", (each) => each.before || "–"],
          ["After", (each) => each.after || "–"],
        ]),
      ),
    panel(
      "Text",
      before.text === null || after.text === null
        ? empty("One of them can't be made again.")
        : text(before, after),
    ),
  );
}

function text(before, after) {
  // The prefix that a cache can keep ends with a whole line.
  let same = 0;
  while (same < before.text.length && before.text[same] === after.text[same]) same += 1;
  const whole =
    same === before.text.length && same === after.text.length
      ? same
      : after.text.lastIndexOf("\n", same - 1) + 1;
  return h(
    "div",
    null,
    facts([
      ["From", before.same ? badge("same bytes", "good") : badge("made again, not the same bytes", "warn")],
      ["To", after.same ? badge("same bytes", "good") : badge("made again, not the same bytes", "warn")],
    ]),
    whole > 0 && h("pre", { class: "reused line" }, after.text.slice(0, whole)),
    h(
      "div",
      { class: "boundary" },
      whole > 0 ? "a prompt cache can keep what stands above" : "nothing of the prefix stays",
    ),
    h(
      "pre",
      { class: "anew" },
      marked(differences(before.text.slice(whole), after.text.slice(whole), /(?<=\n)/)),
    ),
  );
}
