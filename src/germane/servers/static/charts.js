// Bars and curves in SVG. Each has a text that says what it shows.

import { counted, h, number, s, words } from "./dom.js";

const HUES = 12;
const KNOWN = [
  "identity",
  "user",
  "user_facts",
  "constraints",
  "frame",
  "focus",
  "decisions",
  "facts",
  "procedures",
  "episodes",
  "history",
  "calibration",
];
const PARTS = {
  lexical: 0,
  semantic: 6,
  frame: 4,
  recency: 9,
  outcome: 7,
  confidence: 2,
  session: 1,
  window: 8,
  usage: 3,
  domain: 5,
};

/** The colour of a section, the same in every chart. */
export function hue(name) {
  const place = KNOWN.indexOf(name);
  const sum = [...name].reduce((total, letter) => total + letter.codePointAt(0), 0);
  return `hue-${(place < 0 ? sum : place) % HUES}`;
}

export const hueOfPart = (name) => `hue-${PARTS[name] ?? [...name].length % HUES}`;

/** Values as one stacked bar up to a total, with a legend: [name, value, note]. */
export function stackedBar(parts, total, unit, hueOf = hue) {
  const shown = parts.filter(([, value]) => value > 0);
  const sum = shown.reduce((all, [, value]) => all + value, 0);
  const whole = Math.max(total, sum, 1);
  let from = 0;
  const rects = shown.map(([name, value]) => {
    const rect = s(
      "rect",
      {
        x: (from / whole) * 1000,
        y: 0,
        width: Math.max((value / whole) * 1000 - 2, 1),
        height: 24,
        class: hueOf(name),
      },
      s("title", null, `${words(name)}: ${number(value)} ${unit}`),
    );
    from += value;
    return rect;
  });
  const uses = shown.map(([name, value]) => `${words(name)} ${number(value)}`).join(", ");
  const text = `${uses}; ${number(Math.max(total - sum, 0))} free of ${number(total)} ${unit}`;
  return h(
    "figure",
    { class: "stacked" },
    s("svg", { viewBox: "0 0 1000 24", preserveAspectRatio: "none", role: "img", "aria-label": text }, rects),
    h(
      "figcaption",
      null,
      h(
        "ul",
        { class: "legend" },
        parts.map(([name, value, note]) =>
          h(
            "li",
            { class: value > 0 ? "" : "none" },
            h("span", { class: `swatch ${hueOf(name)}` }),
            h("span", null, words(name)),
            h("b", null, number(value)),
            note && h("span", { class: "dim" }, note),
          ),
        ),
      ),
    ),
  );
}

/** The parts of one score as a thin bar; what lowers it stands in red at the end. */
export function partsBar(parts, most) {
  const entries = Object.entries(parts);
  const scale = 100 / Math.max(most, 0.01);
  let from = 0;
  const rects = entries
    .filter(([, value]) => value > 0)
    .map(([name, value]) => {
      const rect = s("rect", { x: from, y: 0, width: value * scale, height: 6, class: hueOfPart(name) });
      from += value * scale;
      return rect;
    });
  const less = entries.reduce((sum, [, value]) => sum + Math.min(value, 0), 0) * -scale;
  if (less > 0)
    rects.push(s("rect", { x: Math.max(from - less, 0), y: 2, width: less, height: 2, class: "less" }));
  return s(
    "svg",
    { class: "parts", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    rects,
  );
}

/** Curves over a common axis: {label, points: [[x, y]], kind}. `ticks` are [x, text] and [y, text]. */
export function curves(label, series, { x, y, xTicks = [], yTicks = [], xTitle, yTitle }) {
  const [width, height, left, top, right, bottom] = [560, 240, 44, 12, 14, 38];
  const px = (value) => left + ((value - x[0]) / (x[1] - x[0] || 1)) * (width - left - right);
  const py = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (height - top - bottom);
  return h(
    "figure",
    { class: "chart" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      yTicks.map(([at, text]) => [
        s("line", { x1: left, x2: width - right, y1: py(at), y2: py(at), class: "grid" }),
        s("text", { x: left - 8, y: py(at) + 4, "text-anchor": "end" }, text),
      ]),
      xTicks.map(([at, text]) =>
        s("text", { x: px(at), y: height - bottom + 16, "text-anchor": "middle" }, text),
      ),
      s("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }),
      series.map(({ points, kind, dots }) => {
        const known = points.filter(([, value]) => value !== null && value !== undefined);
        const path = known
          .map(([a, b], place) => `${place ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`)
          .join("");
        return [
          !dots && s("path", { d: path, class: `curve ${kind}` }),
          (dots || known.length === 1) &&
            known.map(([a, b, size, text]) =>
              s(
                "circle",
                { cx: px(a), cy: py(b), r: size ?? 3.5, class: `dot ${kind}` },
                text && s("title", null, text),
              ),
            ),
        ];
      }),
      xTitle &&
        s(
          "text",
          { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", class: "title" },
          xTitle,
        ),
      yTitle && s("text", { x: left, y: 10, class: "title" }, yTitle),
    ),
    series.length > 1 &&
      h(
        "figcaption",
        null,
        h(
          "ul",
          { class: "legend" },
          series
            .filter((each) => each.label)
            .map(({ label: name, kind }) =>
              h("li", null, h("span", { class: `swatch ${kind}` }), h("span", null, name)),
            ),
        ),
      ),
  );
}

/** Values by day as bars: {date, value}. */
export function dayBars(label, days) {
  const most = Math.max(...days.map((each) => each.value), 1);
  const wide = 560 / Math.max(days.length, 1);
  const all = number(days.reduce((sum, each) => sum + each.value, 0));
  const text = `${label}: ${all} in ${counted(days.length, "day")}, at most ${number(most)} on one`;
  return s(
    "svg",
    {
      class: "days",
      viewBox: "0 0 560 80",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": text,
    },
    s("line", { x1: 0, x2: 560, y1: 79.5, y2: 79.5, class: "axis" }),
    days.map(({ date, value }, place) =>
      s(
        "rect",
        {
          x: place * wide + 1,
          width: Math.max(wide - 2, 1),
          y: 78 - (value / most) * 74,
          height: (value / most) * 74,
          class: "bar",
        },
        s("title", null, `${date}: ${number(value)}`),
      ),
    ),
  );
}
