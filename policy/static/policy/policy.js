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
