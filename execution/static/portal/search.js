/* Times in a search are the viewer's, as lists show them; the server reads UTC, so each is sent with its zone. */
(() => {
  "use strict";
  const TERM = /\b(since|until):(?:"([^"]*)"|(\S+))/g;
  const two = (number) => String(number).padStart(2, "0");

  // 2026-11-01, 2026-11-01T12:30, or as a list shows it: to a moment of UTC. What says its zone, or is no time, stays.
  function zoned(name, text) {
    const value = text.trim();
    if (!value || /^\d+[mhdw]$/.test(value) || /(Z|UTC|[+-]\d\d:?\d\d)$/i.test(value)) return value.replace(/ UTC$/i, "Z").replace(/^(\d{4}-\d\d-\d\d) /, "$1T");
    const isDay = /^\d{4}-\d\d-\d\d$/.test(value);
    const at = new Date(isDay ? `${value}T00:00` : value);
    if (Number.isNaN(at.getTime())) return value;
    if (isDay && name === "until") at.setDate(at.getDate() + 1); // to the end of that day
    const told = `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}T${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
    return `${told}${at.getUTCSeconds() ? `:${two(at.getUTCSeconds())}` : ""}Z`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const form = document.querySelector(".search-form");
    form?.addEventListener("submit", () => {
      const box = form.elements.q;
      box.value = box.value.replace(TERM, (whole, name, quoted, plain) => `${name}:${zoned(name, quoted ?? plain)}`.replace(/^(\w+):(.*\s.*)$/, '$1:"$2"'));
      for (const name of ["since", "until"]) form.elements[name].value = zoned(name, form.elements[name].value);
    });
  });
})();
