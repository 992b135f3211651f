/* Times are written in UTC; this shows them in the viewer's zone and leaves UTC in the title. */
(() => {
  "use strict";
  const language = document.documentElement.lang || "en";
  const hour = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const exact = { ...hour, second: "2-digit", fractionalSecondDigits: 3 };
  const formats = {
    full: new Intl.DateTimeFormat(language, { year: "numeric", month: "short", day: "numeric", ...hour }),
    exact: new Intl.DateTimeFormat(language, { year: "numeric", month: "short", day: "numeric", ...exact }),
    clock: new Intl.DateTimeFormat(language, exact),
    day: new Intl.DateTimeFormat(language, { year: "numeric", month: "short", day: "numeric" }),
    hour: new Intl.DateTimeFormat(language, hour),
    tick: new Intl.DateTimeFormat(language, hour),
  };
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  function ago(date) {
    const seconds = (date - Date.now()) / 1000;
    const [unit, size] = units.find(([, least]) => Math.abs(seconds) >= least) || ["second", 1];
    return relative.format(Math.round(seconds / size), unit);
  }

  function show(root) {
    for (const element of root.querySelectorAll("[data-moment]")) {
      const date = new Date(element.dataset.moment);
      if (Number.isNaN(date.getTime())) continue;
      const style = element.dataset.style || "full";
      element.textContent = style === "ago" ? ago(date) : (formats[style] || formats.full).format(date);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    show(document);
    document.body.addEventListener("htmx:afterSettle", (event) => show(event.target));
  });
})();
