/* The frame of our own pages: its theme, its sidebar, the search in it and its menus. What the admin's pages remember, these remember too.
   It runs before the page is drawn, so that no page flashes in another theme; everything else listens at the document. */
(() => {
  "use strict";
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isWide = matchMedia("(min-width: 80rem)");
  const icons = { light: "light_mode", dark: "dark_mode", auto: "computer" };

  function recalled(key) {
    try { return localStorage.getItem(key); } catch { return null; } /* a browser that keeps nothing for us */
  }

  function remember(key, value) {
    try { localStorage.setItem(key, value); } catch { /* then it holds for this page */ }
  }

  /* The theme */
  let theme = (recalled("adminTheme") || "").replaceAll('"', "");
  if (!(theme in icons)) theme = "auto";

  function dress() {
    root.classList.toggle("dark", theme === "dark" || (theme === "auto" && prefersDark.matches));
    root.classList.toggle("light", theme === "light");
    for (const button of document.querySelectorAll("[data-theme]")) button.setAttribute("aria-pressed", String(button.dataset.theme === theme));
    for (const icon of document.querySelectorAll("[data-frame=theme]")) icon.textContent = icons[theme];
  }

  function choose(wanted) {
    theme = wanted;
    remember("adminTheme", JSON.stringify(theme));
    dress();
  }

  /* The sidebar: open on a wide screen unless somebody closed it, closed on a narrow one unless somebody opened it. */
  let isShut = recalled("sidebarDesktopOpen") === "0";
  let isOver = false;

  function arrange() {
    root.toggleAttribute("data-sidebar-shut", isShut);
    root.toggleAttribute("data-sidebar-over", isOver);
    const toggle = document.querySelector("header [data-frame=sidebar]");
    if (toggle) toggle.setAttribute("aria-expanded", String(isWide.matches ? !isShut : isOver));
  }

  function toggleSidebar() {
    if (isWide.matches) {
      isShut = !isShut;
      remember("sidebarDesktopOpen", isShut ? "0" : "1");
    } else {
      isOver = !isOver;
    }
    arrange();
    const toggle = document.querySelector("header [data-frame=sidebar]");
    if (toggle && !isOver && !isWide.matches) toggle.focus();
  }

  /* The search: arrows walk through what was found, Enter opens it. */
  const found = () => [...document.querySelectorAll("#search-results a")];

  function showFound(isShown) {
    const results = document.getElementById("search-results");
    if (results) results.hidden = !isShown;
  }

  function seek(event, input) {
    if (event.key === "Escape") {
      event.preventDefault();
      if (event.target !== input) input.focus();
      else if (input.value) input.value = "";
      else input.blur();
      showFound(false);
      return;
    }
    showFound(true);
    const links = found();
    const place = links.indexOf(event.target);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      (links[place + step] || (place + step < 0 ? input : event.target)).focus();
    } else if (event.key === "Enter" && event.target === input && links.length) {
      event.preventDefault();
      links[0].click();
    }
  }

  function isWriting(element) {
    return element.isContentEditable || ["input", "textarea", "select"].includes(element.localName);
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-theme], [data-frame=sidebar]");
    if (target && target.dataset.theme) choose(target.dataset.theme);
    else if (target) toggleSidebar();
    for (const menu of document.querySelectorAll("details[data-frame=menu][open]")) if (!menu.contains(event.target)) menu.open = false;
    if (!event.target.closest("[data-frame=search]")) showFound(false);
  });

  document.addEventListener("focusin", (event) => {
    if (event.target.id === "nav-filter") showFound(true);
  });

  document.addEventListener("keydown", (event) => {
    const input = document.getElementById("nav-filter");
    const isCommand = event.metaKey || event.ctrlKey;
    if (isCommand && event.key === "e") {
      event.preventDefault();
      choose(theme === "light" ? "dark" : "light");
    } else if (input && ((isCommand && event.key === "k") || (!isCommand && !event.altKey && event.key === "t" && !isWriting(event.target)))) {
      event.preventDefault();
      if (isWide.matches ? isShut : !isOver) toggleSidebar();
      input.focus();
    } else if (input && event.target.closest("[data-frame=search]")) {
      seek(event, input);
    } else if (event.key === "Escape") {
      const menu = document.querySelector("details[data-frame=menu][open]");
      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      } else if (isOver) {
        toggleSidebar();
      }
    }
  });

  prefersDark.addEventListener("change", dress);
  isWide.addEventListener("change", arrange);
  window.addEventListener("storage", (event) => {
    if (event.key !== "adminTheme" || !event.newValue) return;
    theme = event.newValue.replaceAll('"', "");
    dress();
  });
  dress();
  arrange();
  document.addEventListener("DOMContentLoaded", () => {
    dress();
    arrange();
  });
  window.addEventListener("load", () => {
    const here = document.querySelector("#nav-sidebar-apps a.active");
    if (here) here.scrollIntoView({ block: "nearest" });
  });
})();
