// The frame of the page: views by address, whose memory is shown, the theme, and signing in.

import { all, can, forgetToken, get, readToken, session, useToken } from "./api.js";
import { announce, failure, field, h, select, show } from "./dom.js";

const VIEWS = [
  ["playground", "Playground"],
  ["diff", "Diff"],
  ["request", "Request"],
  ["ledger", "Ledger"],
  ["memories", "Memories"],
  ["conversations", "Conversations"],
  ["learning", "Learning"],
  ["quarantine", "Quarantine"],
  ["store", "Store"],
];

const main = document.getElementById("main");
let turn = 0;

/** The view that the address names, with the rest of its path and its query. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  return {
    name: VIEWS.some(([each]) => each === name) ? name : "playground",
    rest,
    query: new URLSearchParams(query),
  };
}

async function open() {
  const { name, rest, query } = place();
  const mine = ++turn;
  const title = VIEWS.find(([each]) => each === name)[1];
  document.title = `${title} · germane inspector`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = await import(`./${name}.js`);
  const area = h("div", { class: `view ${name}` });
  try {
    await view.open(area, { rest, query });
  } catch (error) {
    if (error.status === 401) return signIn(error);
    show(area, h("h1", null, title), failure(error));
  }
  // Another view may have been opened in the meantime.
  if (mine !== turn) return;
  show(main, area);
  announce(`${title} is shown.`);
}

function frame() {
  show(
    document.getElementById("views"),
    h(
      "ul",
      null,
      VIEWS.map(([name, title]) => h("li", null, h("a", { href: `#/${name}`, "data-view": name }, title))),
    ),
  );
}

async function identity() {
  const area = document.getElementById("identity");
  const { me } = session;
  const [spaces, users] = await Promise.all([
    all("/spaces", "spaces", { everywhere: true }),
    all("/users", "users", { everywhere: true }),
  ]);
  const choose = (name) => (value) => {
    session[name] = value || null;
    if (name === "user") session.space = null;
    start();
  };
  const fixed = me.user !== null && session.user === null;
  show(
    area,
    h("span", { class: "who" }, h("span", { class: "dim" }, "agent "), me.agent),
    fixed && h("span", { class: "who" }, h("span", { class: "dim" }, "user "), me.user),
    !fixed &&
      users.length > 0 &&
      select([["", "no user"], ...users], session.user ?? "", choose("user"), { "aria-label": "User" }),
    spaces.length > 0 &&
      select(
        [["", "own memory"], ...spaces.map((each) => [each.name, `space ${each.name}`])],
        session.space ?? "",
        choose("space"),
        { "aria-label": "Memory" },
      ),
    h("span", { class: "badge" }, can("write") ? me.may.join(", ") : "read-only"),
  );
}

function signIn(error) {
  forgetToken();
  show(document.getElementById("identity"));
  const key = h("input", { type: "password", autocomplete: "off", required: true });
  show(
    main,
    h(
      "div",
      { class: "view sign-in" },
      h("h1", null, "Open the inspector"),
      error && failure(error),
      h(
        "form",
        {
          class: "panel",
          on: {
            submit: (event) => {
              event.preventDefault();
              useToken(key.value.trim());
              start();
            },
          },
        },
        field(
          "Key",
          key,
          "Made by `germane keys create`, or the token that `germane inspect` printed. It stays in this tab.",
        ),
        h("button", { type: "submit", class: "primary" }, "Open"),
      ),
    ),
  );
  key.focus();
}

async function start() {
  if (!session.token) return signIn();
  try {
    session.me = await get("/me", {}, { everywhere: true });
    await identity();
  } catch (error) {
    return signIn(error);
  }
  return open();
}

function theme() {
  const root = document.documentElement;
  const toggle = document.getElementById("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const draw = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("germane-theme", root.dataset.theme);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => {
  if (location.hash.includes("token=")) {
    readToken();
    start();
  } else if (session.me) open();
});
readToken();
theme();
frame();
start();
