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

  function drag(event, grip) {
    const mine = grip.closest("[data-rule]"), list = mine.parentNode, home = mine.nextElementSibling;
    event.preventDefault();
    grip.focus();
    grip.setPointerCapture(event.pointerId);
    mine.classList.add("is-dragged");
    const follow = (moved) => {
      const place = rules().filter((each) => each !== mine).find((each) => {
        const box = each.getBoundingClientRect();
        return moved.clientY < box.top + box.height / 2;
      });
      if (place) { if (mine.nextElementSibling !== place) list.insertBefore(mine, place); } else if (list.lastElementChild !== mine) list.append(mine);
    };
    const end = (isKept) => {
      grip.removeEventListener("pointermove", follow);
      grip.removeEventListener("pointerup", drop);
      grip.removeEventListener("pointercancel", leave);
      document.removeEventListener("keydown", escape);
      mine.classList.remove("is-dragged");
      if (!isKept) list.insertBefore(mine, home);
      else if (mine.nextElementSibling !== home) send(mine);
    };
    const drop = () => end(true), leave = () => end(false), escape = (key) => { if (key.key === "Escape") end(false); };
    grip.addEventListener("pointermove", follow);
    grip.addEventListener("pointerup", drop);
    grip.addEventListener("pointercancel", leave);
    document.addEventListener("keydown", escape);
  }

  document.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest?.("[data-grip]");
    if (grip && event.button === 0) drag(event, grip);
  });

  document.addEventListener("keydown", (event) => {
    const mine = event.target.closest?.("[data-grip]")?.closest("[data-rule]");
    const other = mine && { ArrowUp: mine.previousElementSibling, ArrowDown: mine.nextElementSibling }[event.key];
    if (!mine || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    if (!other || event.repeat) return;
    if (event.key === "ArrowUp") other.before(mine); else other.after(mine);
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
