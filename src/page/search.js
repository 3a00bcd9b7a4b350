// Everything that was ever said, and where it stands.

import { ask, of } from "./ask.js";
import { address, el, link, show } from "./nodes.js";
import { ago, parts, t } from "./words.js";

/** @type {import("./main.js").Place} */
export async function search(place, _parts, query) {
  const words = query.get("q") ?? "";
  const field = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      name: "q",
      value: words,
      placeholder: t("searchAll"),
      "aria-label": t("searchAll"),
    })
  );
  const found = el("ol", { class: "found" });
  /** @param {Event} event */
  const look = (event) => {
    event.preventDefault();
    location.hash = `${address("search")}?q=${encodeURIComponent(field.value)}`;
  };
  show(
    place,
    el("h1", {}, t("search")),
    el("form", { role: "search", onsubmit: look }, field),
    el("p", { class: "facts" }, t("searchHint")),
    found,
  );
  field.focus();
  if (!words.trim()) return;
  /** @param {number} first */
  const more = async (first) => {
    const answer = await ask("search", { text: words, first, count: 50 });
    const matches = of(answer, "match");
    found.append(...matches.map(row));
    if (!matches.length && !first) show(found, el("li", {}, t("nothingFound")));
    if (answer.next !== null) {
      const next = answer.next;
      const button = el(
        "button",
        { type: "button", onclick: () => (button.remove(), more(next)) },
        t("more"),
      );
      found.append(button);
    }
  };
  await more(0);
}

/** @param {import("./ask.js").Line} line */
function row(line) {
  const [folder, name] = parts(line.timeline);
  const to =
    line.part === "message"
      ? `${address("read", line.snapshot)}?m=${line.index}`
      : `${address("read", line.snapshot)}?e=${encodeURIComponent(line.uid ?? "")}`;
  const place = line.index === undefined ? line.name : `#${line.index} ${line.name}`;
  return el(
    "li",
    {},
    el(
      "div",
      {},
      link(to, `${folder} / ${name}`, { class: "name" }),
      " ",
      el("b", {}, place),
      el(
        "span",
        { class: "facts" },
        ` ${ago(line.said ?? line.time)} · ${line.live ? t("live") : t("was")}`,
        line.others?.length ? ` · ${t("alsoIn", { n: line.others.length })}` : "",
      ),
    ),
    el("p", { dir: "auto" }, line.text),
  );
}
