/* The look's button for the sidebar answers to a pointer only; this lets keys and screen readers use it too. */
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  for (const toggle of document.querySelectorAll("header span[x-on\\:click*='sidebar']")) {
    toggle.setAttribute("role", "button");
    toggle.setAttribute("tabindex", "0");
    toggle.setAttribute("aria-label", "Show or hide the sidebar");
    toggle.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle.click();
    });
  }
});
