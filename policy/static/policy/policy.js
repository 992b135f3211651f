// Line numbers beside a policy's text, and the way from an error to its line. Without it everything still works.
"use strict";

document.querySelectorAll("textarea[data-lines]").forEach((area) => {
  const frame = document.createElement("div");
  frame.className = "policy-lined";
  const gutter = document.createElement("pre");
  gutter.className = "policy-gutter";
  gutter.setAttribute("aria-hidden", "true");
  area.replaceWith(frame);
  frame.append(gutter, area);

  let shown = 0;
  const number = () => {
    const lines = area.value.split("\n").length;
    if (lines !== shown) {
      gutter.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
      shown = lines;
    }
    gutter.style.height = `${area.offsetHeight}px`;
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", number);
  area.addEventListener("scroll", number);
  new ResizeObserver(number).observe(area);
  number();
});

document.querySelectorAll("button[data-line]").forEach((button) => {
  button.addEventListener("click", () => {
    const area = document.querySelector("textarea[data-lines]");
    const lines = area.value.split("\n");
    const line = Math.min(Number(button.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start + lines[line - 1].length);
    area.scrollTop = Math.max(0, (area.scrollHeight / lines.length) * (line - 4));
  });
});

// Rules of a draft are moved by their handles: with a pointer of any kind, or with the arrow keys. The order is posted
// by the page's own form, and the server answers with the rules as they then are.
(() => {
  document.documentElement.classList.add("is-scripted");
  const rules = () => [...document.querySelectorAll(".policy-rules > [data-rule]")];
  let after = null; // what gets the focus once the rules are drawn anew: { rule, step }

  function send(moved) {
    const form = document.getElementById("policy-order");
    form.querySelectorAll("[name=rule]").forEach((field) => field.remove());
    for (const rule of rules()) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "rule", value: rule.dataset.rule }));
    form.elements.moved.value = moved.dataset.rule;
    after = { rule: moved.dataset.rule, step: "" };
    form.requestSubmit();
  }

  // The others go round the one that is moved: it never leaves the page, and so keeps the pointer and the focus.
  function put(mine, place) {
    const at = () => rules().indexOf(mine);
    while (at() > place) mine.after(mine.previousElementSibling);
    while (at() < place) mine.before(mine.nextElementSibling);
  }

  function drag(event, grip) {
    const mine = grip.closest("[data-rule]"), home = rules().indexOf(mine), stop = new AbortController();
    event.preventDefault();
    grip.focus();
    grip.setPointerCapture(event.pointerId);
    mine.classList.add("is-dragged");
    const follow = (moved) => put(mine, rules().filter((each) => {
      const box = each.getBoundingClientRect();
      return each !== mine && moved.clientY > box.top + box.height / 2;
    }).length);
    const end = (isKept) => {
      stop.abort();
      mine.classList.remove("is-dragged");
      if (!isKept) put(mine, home); else if (rules().indexOf(mine) !== home) send(mine);
    };
    const until = { signal: stop.signal };
    grip.addEventListener("pointermove", follow, until);
    grip.addEventListener("pointerup", () => end(true), until);
    grip.addEventListener("pointercancel", () => end(false), until);
    document.addEventListener("keydown", (key) => { if (key.key === "Escape") end(false); }, until);
  }

  document.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest?.("[data-grip]");
    if (grip && event.button === 0) drag(event, grip);
  });

  document.addEventListener("keydown", (event) => {
    const mine = event.target.closest?.("[data-grip]")?.closest("[data-rule]");
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!mine || !step) return;
    event.preventDefault();
    const place = rules().indexOf(mine) + step;
    if (event.repeat || place < 0 || place >= rules().length) return;
    put(mine, place);
    send(mine);
  });

  document.addEventListener("submit", (event) => {
    const rule = event.target.matches(".policy-arrange") && event.target.closest("[data-rule]");
    if (rule) after = { rule: rule.dataset.rule, step: event.submitter?.value || "" };
  }, true);

  document.addEventListener("htmx:afterSettle", () => {
    if (!after) return;
    const mine = rules().find((each) => each.dataset.rule === after.rule);
    const button = after.step && mine?.querySelector(`button[value="${after.step}"]:not(:disabled)`);
    (button || mine?.querySelector("[data-grip]") || document.querySelector("[data-grip]"))?.focus();
    after = null;
  });
})();
