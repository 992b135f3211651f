/* Copies a call, and says so also to those who do not see it; leads to the first field that a try was refused for. */
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const told = document.getElementById("copied");

  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  async function copy(element) {
    if (navigator.clipboard) {
      try {
        await navigator.clipboard.writeText(element.textContent);
        return true;
      } catch {
        /* not permitted: the older way is left */
      }
    }
    select(element);
    return document.execCommand("copy");
  }

  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id !== "try") return;
    const wrong = document.querySelector("#try [aria-invalid=true]");
    if (wrong) wrong.focus();
  });

  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.firstChild;
    const before = label.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copy(document.getElementById(button.dataset.copy));
      button.focus();
      label.textContent = done ? "Copied" : "Selected";
      if (told) told.textContent = done ? "Copied to the clipboard." : "Selected; copy it with the keyboard.";
      setTimeout(() => { label.textContent = before; }, 2000);
    });
  }
});
