/* Buttons that copy a secret: shown only where the browser can, and they say that they did. */
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  if (!navigator.clipboard) return;
  const told = document.getElementById("copied");
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      if (told) told.textContent = "Copied";
      window.setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
});
