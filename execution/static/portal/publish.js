/* Line numbers beside a manifest, the way from a fault to its line, and a file read into the text. All of it works without this, too. */
(() => {
  "use strict";
  const area = document.getElementById("manifest");
  if (!area) return;
  const gutter = document.createElement("pre");
  gutter.className = "publish-gutter";
  gutter.setAttribute("aria-hidden", "true");
  area.before(gutter);

  function number() {
    const faulty = new Set([...document.querySelectorAll("#faults [data-line]")].map((each) => Number(each.dataset.line)));
    const lines = area.value.split("\n").length;
    gutter.textContent = Array.from({ length: lines }, (_, index) => (faulty.has(index + 1) ? `▶ ${index + 1}` : index + 1)).join("\n");
    follow();
  }

  function follow() {
    gutter.style.height = `${area.offsetHeight}px`;
    gutter.scrollTop = area.scrollTop;
  }

  function goTo(line) {
    const before = area.value.split("\n").slice(0, line - 1);
    const start = before.reduce((sum, text) => sum + text.length + 1, 0);
    const end = area.value.indexOf("\n", start);
    area.focus();
    area.setSelectionRange(start, end < 0 ? area.value.length : end);
    const height = parseFloat(getComputedStyle(area).lineHeight);
    area.scrollTop = Math.max(0, (line - 5) * height);
    area.scrollLeft = 0;
    follow();
  }

  area.addEventListener("input", number);
  area.addEventListener("scroll", follow);
  new ResizeObserver(follow).observe(area);
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".publish-to-line");
    if (!link) return;
    event.preventDefault();
    goTo(Number(link.dataset.line));
  });

  const file = document.getElementById("file");
  if (file) {
    file.hasChangeListener = true; /* or the look's own script wants to tell its widget, which is not here */
    file.addEventListener("change", async () => {
      const chosen = file.files[0];
      if (!chosen || chosen.size > Number(file.dataset.most)) return; /* the server says what is wrong with it */
      try {
        area.value = new TextDecoder("utf-8", { fatal: true }).decode(await chosen.arrayBuffer());
      } catch {
        return;
      }
      file.value = "";
      area.dispatchEvent(new Event("input", { bubbles: true }));
      area.focus();
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.body.addEventListener("htmx:afterSettle", number);
    for (const failure of ["htmx:responseError", "htmx:sendError"]) {
      document.body.addEventListener(failure, () => {
        document.getElementById("faults").textContent = "The text could not be checked just now: it is too large, you are logged out, or the server is away. “Check” tells more.";
      });
    }
    number();
    const first = document.querySelector("#faults [data-line]");
    if (first) goTo(Number(first.dataset.line));
  });
})();
