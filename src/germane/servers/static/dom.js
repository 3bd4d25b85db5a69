// Elements from values. Text becomes a text node and nothing else: no markup is ever made of it.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "style")
      for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false),
  );
  return element;
}

/** An HTML element; `on` has its listeners, `style` its properties, all else its attributes. */
export const h = (tag, given, ...children) => filled(document.createElement(tag), given, children);

/** The same for SVG. */
export const s = (tag, given, ...children) => filled(document.createElementNS(SVG, tag), given, children);

export const show = (element, ...children) =>
  element.replaceChildren(
    ...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false),
  );

export const number = (value, digits = 0) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** A noun in the singular for 1, else in the plural. */
export const noun = (value, one) =>
  value === 1 ? one : one.endsWith("y") ? `${one.slice(0, -1)}ies` : `${one}s`;

/** A number with its noun, such as "1 memory" and "2,000 memories". */
export const counted = (value, one) => `${number(value)} ${noun(value, one)}`;

export const percent = (value, digits = 0) =>
  value === null || value === undefined ? "–" : `${number(value * 100, digits)} %`;

export const day = (value) => (value ? value.slice(0, 10) : "–");

export const moment = (value) => (value ? value.slice(0, 16).replace("T", " ") : "–");

/** The end of an id: ids of one minute differ only there. */
export const short = (id) => {
  const [name, version] = id.split("@");
  return version ? `${name.slice(-8)}@${version}` : name.slice(-8);
};

export const words = (name) => name.replaceAll("_", " ");

let sequence = 0;
export const fresh = (name) => `${name}-${++sequence}`;

export const button = (text, run, given) =>
  h("button", { type: "button", on: { click: run }, ...given }, text);

/** A control under its label. */
export function field(label, control, hint) {
  const id = control.id || fresh("field");
  control.id = id;
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint && h("span", { class: "hint" }, hint),
  );
}

export const select = (options, value, run, given) =>
  h(
    "select",
    { on: { change: (event) => run?.(event.target.value) }, ...given },
    options.map((each) => {
      const [name, text] = Array.isArray(each) ? each : [each, each];
      return h("option", { value: name, selected: name === value }, text);
    }),
  );

export const panel = (title, ...children) => {
  const id = fresh("panel");
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), ...children);
};

/** A list by pages that a button continues: `next` gives the page after a mark, `item` an entry's element. */
export function pagedList(page, name, next, item) {
  const list = h("ul", { class: "list" });
  const more = h("div", { class: "more" });
  const add = (made) => {
    list.append(...made[name].map(item));
    show(more, made.after !== null && button("Show more", () => next(made.after).then(add).catch(failed)));
  };
  const failed = (error) => show(more, failure(error));
  add(page);
  return [list, more];
}

export const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);

export const empty = (text) => h("p", { class: "empty" }, text);

export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );

/** A table; each column is [heading, cell of a row, class]. The first cell of a row is its heading. */
export const table = (caption, rows, columns, given) =>
  h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      given,
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map(([name, , kind]) => h("th", { scope: "col", class: kind }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((row) =>
          h(
            "tr",
            null,
            columns.map(([name, cell, kind], place) =>
              h(
                place ? "td" : "th",
                { scope: place ? null : "row", class: kind, "data-label": name },
                cell(row),
              ),
            ),
          ),
        ),
      ),
    ),
  );

/** What failed, with its remedy. */
export const failure = (error) =>
  h(
    "div",
    { class: "failure", role: "alert" },
    h("strong", null, error.title ?? "Error"),
    " ",
    error.message,
  );

/** Say something to a screen reader. */
export const announce = (text) => {
  document.getElementById("status").textContent = text;
};
