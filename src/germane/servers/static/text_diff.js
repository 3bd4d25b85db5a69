// The difference of two texts, by words or by lines.

import { h } from "./dom.js";

const MOST = 4_000_000;

/** Runs of [kind, text]: "same", "del" or "ins"; the longest common subsequence of the pieces. */
export function differences(before, after, by = /(\s+)/) {
  const [a, b] = [
    before.split(by).filter((each) => each !== ""),
    after.split(by).filter((each) => each !== ""),
  ];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const runs = [];
  const add = (kind, text) => {
    if (runs.length && runs.at(-1)[0] === kind) runs.at(-1)[1] += text;
    else if (text) runs.push([kind, text]);
  };
  add("same", a.slice(0, start).join(""));
  if (x.length * y.length > MOST) {
    add("del", x.join(""));
    add("ins", y.join(""));
  } else {
    const wide = y.length + 1;
    const best = new Uint32Array((x.length + 1) * wide);
    for (let i = x.length - 1; i >= 0; i -= 1)
      for (let j = y.length - 1; j >= 0; j -= 1) {
        best[i * wide + j] =
          x[i] === y[j]
            ? best[(i + 1) * wide + j + 1] + 1
            : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
      }
    let [i, j] = [0, 0];
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) {
        add("same", x[i]);
        i += 1;
        j += 1;
      } else if (i < x.length && (j === y.length || best[(i + 1) * wide + j] >= best[i * wide + j + 1])) {
        add("del", x[i]);
        i += 1;
      } else {
        add("ins", y[j]);
        j += 1;
      }
    }
  }
  add("same", a.slice(a.length - end).join(""));
  return runs;
}

export const marked = (runs) => runs.map(([kind, text]) => (kind === "same" ? text : h(kind, null, text)));
