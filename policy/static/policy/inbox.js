// The inbox: clocks that tick, cards that renew themselves, and answers from the keyboard.
// Everything works without it too: each card is a form that can be sent.
"use strict";
(() => {
  const RENEW = 3000; // ms between two looks
  const SELDOM = 5; // how many times rarer while nobody looks at the page
  const KEEP = 120000; // ms that a settled card stays in sight
  const ENDED = new Set(["succeeded", "failed", "timed_out", "cancelled", "expired", "denied", "rejected", "unknown"]);
  const HURRY = 20000; // ms before a deadline, from which on an answer is not held back any more
  const holding = window.placetHolding;
  const DONE = { approved: "approved", denied: "denied", pending: "with your yes; others are still asked" };
  const box = document.getElementById("inbox-cards");
  const several = document.getElementById("inbox-several");
  const help = document.getElementById("inbox-help");
  const confirm = document.getElementById("inbox-confirm");
  const news = document.getElementById("inbox-news");
  let unseen = 0; // looks since the page was last in sight
  let skew = 0; // the server's clock minus this one's, in ms
  let current = null; // the id of the card that keys act on

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const list = () => box && box.querySelector(".inbox-list");
  const cards = () => (box ? all("[data-card]", box) : []);
  const card = (id) => cards().find((each) => each.dataset.card === id);
  const isTyping = (target) => target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

  // Clocks

  function span(seconds) {
    const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
    const minutes = Math.floor(seconds / 60) % 60, rest = Math.floor(seconds) % 60;
    if (days) return `${days} d ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min ${String(rest).padStart(2, "0")} s` : `${rest} s`;
  }

  function ago(seconds) {
    if (seconds < 2) return "just now";
    const [count, unit] = seconds < 60 ? [seconds, "second"] : seconds < 3600 ? [seconds / 60, "minute"]
      : seconds < 172800 ? [seconds / 3600, "hour"] : [seconds / 86400, "day"];
    return `${Math.floor(count)} ${unit}${Math.floor(count) === 1 ? "" : "s"} ago`;
  }

  function tick() {
    const now = Date.now() + skew;
    for (const time of all("time[data-ago]")) say(time, ago(Math.max(0, (now - Date.parse(time.dateTime)) / 1000)));
    for (const time of all("time[data-left]")) {
      const left = (Date.parse(time.dateTime) - now) / 1000;
      say(time, left > 0 ? `${time.dataset.left} ${span(left)}` : "time is up");
      time.classList.toggle("is-soon", left < 600 && left >= 60);
      time.classList.toggle("is-now", left < 60);
    }
    for (const fuse of all("progress[data-fuse]")) fuse.value = Math.max(0, (Date.parse(fuse.dataset.fuse) - now) / 1000);
  }

  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  // Renewal: each part of a card is exchanged by itself, so that a field with its text, or the focus, stays

  async function renew() {
    if (!box || (document.hidden && ++unseen % SELDOM)) return;
    const known = cards().map((each) => each.dataset.card).join(",");
    const answer = await fetch(`${box.dataset.feed}&seen=${list().dataset.version}&known=${known}`, { credentials: "same-origin" });
    if (answer.status === 401 || answer.status === 404) location.reload();
    if (answer.status === 200) show(new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".inbox-list"));
  }

  function show(fresh) {
    const here = list();
    here.dataset.version = fresh.dataset.version;
    skew = Date.parse(fresh.dataset.now) - Date.now();
    const kept = new Set();
    let before = null, arrived = 0;
    for (const next of all("[data-card], [data-group]", fresh)) {
      let mine = next.dataset.card ? card(next.dataset.card) : heading(next.dataset.group);
      if (next.dataset.card) kept.add(next.dataset.card);
      if (!mine) {
        mine = document.importNode(next, true);
        if (next.dataset.card) { mine.classList.add("is-new"); arrived += 1; }
        if (before) before.after(mine); else here.prepend(mine);
      } else if (mine.dataset.version !== next.dataset.version) {
        if (next.dataset.card) update(mine, next); else mine.replaceChildren(...document.importNode(next, true).childNodes);
        mine.dataset.version = next.dataset.version;
      }
      before = mine;
    }
    for (const each of cards()) if (!kept.has(each.dataset.card)) each.remove();
    if (arrived) tell(`${arrived} new question${arrived > 1 ? "s" : ""}.`, true);
    all("[data-more]", here).forEach((each) => each.remove());
    const more = fresh.querySelector("[data-more]");
    if (more) here.append(document.importNode(more, true));
    if (!box.hasAttribute("data-alone")) count(Number(fresh.dataset.waiting));
    settle();
  }

  const heading = (name) => all("[data-group]", box).find((each) => each.dataset.group === name);

  function update(mine, next) {
    const isSelected = mine.querySelector("[data-select]")?.checked;
    const hadFocus = mine.contains(document.activeElement);
    const opened = all("details", mine).map((each) => each.open);
    for (const part of all("[data-part]", next)) {
      const old = mine.querySelector(`[data-part="${part.dataset.part}"]`);
      const isForm = part.dataset.part === "form";
      if (old && !(isForm && old.dataset.kind === part.dataset.kind)) old.replaceWith(document.importNode(part, true));
      if (old && isForm && old.dataset.kind === part.dataset.kind) relabel(old, part);
    }
    mine.className = next.className;
    for (const name of ["version", "state"]) mine.dataset[name] = next.dataset[name];
    for (const name of ["data-over", "data-mine"]) mine.toggleAttribute(name, next.hasAttribute(name));
    all("details", mine).forEach((each, place) => { each.open = opened[place] ?? each.open; });
    const select = mine.querySelector("[data-select]");
    if (select) select.checked = Boolean(isSelected);
    if (hadFocus && !mine.contains(document.activeElement)) mine.focus({ preventScroll: true });
    mark();
  }

  function relabel(old, part) {
    all("button", part).forEach((button, place) => { const mine = all("button", old)[place]; if (mine) mine.innerHTML = button.innerHTML; });
  }

  function count(waiting) {
    for (const badge of all("[data-count=approvals]")) { say(badge, String(waiting)); badge.hidden = !waiting; }
    document.title = document.title.replace(/^\s*(\(\d+\) )?/, waiting ? `(${waiting}) ` : "");
  }

  function settle() {
    const now = Date.now();
    for (const each of cards()) {
      if (!each.hasAttribute("data-over")) continue;
      each.dataset.since ||= String(now);
      const isOld = now - Number(each.dataset.since) > KEEP;
      if (isOld && !box.hasAttribute("data-alone") && !each.contains(document.activeElement)) each.remove();
    }
    const inUse = new Set(cards().map((each) => each.dataset.in));
    for (const each of all("[data-group]", box)) if (!inUse.has(each.dataset.group)) each.remove();
    const empty = document.getElementById("inbox-empty");
    if (empty) empty.hidden = cards().length > 0;
    mark();
    tick();
  }

  // What became of an approved call: its state, as whoever may see it reads it at /api/calls/

  async function follow() {
    for (const each of all("[data-run]", box || document)) {
      const mine = each.closest("[data-card]");
      if (each.dataset.ended) continue;
      const answer = await fetch(`/api/calls/${mine.dataset.call}/`, { credentials: "same-origin", headers: { Accept: "application/json" } });
      if (!answer.ok) { each.dataset.ended = "1"; continue; }
      const { state } = await answer.json();
      say(each.querySelector("[data-run-state]"), state.replaceAll("_", " "));
      each.hidden = false;
      if (ENDED.has(state)) each.dataset.ended = "1";
    }
  }

  // Answers

  function send(form, button) {
    const body = new URLSearchParams(new FormData(form));
    if (button?.name) body.set(button.name, button.value);
    const reason = form.elements.reason, isGrant = Boolean(button?.hasAttribute("formaction"));
    if (reason && !reason.value.trim() && (body.get("answer") === "deny" || isGrant || reason.required)) {
      if (confirm?.contains(form)) return void form.reportValidity(); // what is said beside a dialog is not heard in it
      tell(isGrant ? "A grant needs a reason." : body.get("answer") === "deny" ? "A denial needs a reason." : "This needs a reason.", false, "is-hint");
      return void reason.focus();
    }
    for (const hint of news.querySelectorAll(".is-hint")) hint.remove(); // it was followed, or is no longer meant
    const mine = form.closest("[data-card]");
    const subject = form.dataset.name || mine?.dataset.name || "this call";
    const word = isGrant ? "Approve and grant" : { approve: "Approve", deny: "Deny" }[body.get("answer")] || "Take back";
    const named = mine ? [mine.dataset.card, ...ids(mine)] : body.getAll("id");
    if (confirm?.open) confirm.close();
    holding.hold({
      ids: named,
      say: `${word}: ${subject}.`,
      url: button?.getAttribute("formaction") || form.getAttribute("action"),
      body,
      isUrgent: cards().some((each) => ids(each).some((id) => named.includes(id)) && isLate(each)),
      undone: () => { mark(); tell("Taken back; nothing was sent.", true); (reason?.isConnected && mine ? reason : card(named[0]))?.focus(); },
      done: (answer) => sent(form, answer),
    });
    if (mine?.contains(document.activeElement) || !mine) (mine || card(current))?.focus({ preventScroll: true });
    mark();
  }

  function isLate(each) {
    const time = each.querySelector("time[data-left]");
    return Boolean(time) && Date.parse(time.dateTime) - Date.now() - skew < HURRY;
  }

  async function sent(form, answer) {
    if (!answer) tell("The server did not answer; nothing is known to be decided.", false);
    else {
      if (answer.message) tell(answer.message, false);
      report(answer.results);
      if (answer.results.length && answer.results.every((each) => each.ok)) leave(form);
    }
    mark();
    if (!box) return location.assign("/approvals/");
    await look();
  }

  // Several at once: first a look at all of them, in the words of the server

  async function ask(button) {
    const body = new URLSearchParams(new FormData(several));
    body.set("answer", button.value);
    const answer = await fetch(`${several.getAttribute("action")}?part=1`, { method: "POST", body, credentials: "same-origin" });
    const form = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".inbox-sure");
    if (!answer.ok || !form) return location.reload();
    confirm.replaceChildren(document.importNode(form, true));
    confirm.showModal();
    confirm.querySelector("[name=reason]")?.focus();
  }

  function report(results) {
    const good = results.filter((each) => each.ok), bad = results.filter((each) => !each.ok);
    if (good.length === 1) tell(good[0].message, true);
    for (const [state, words] of good.length > 1 ? Object.entries(DONE) : []) {
      const count = good.filter((each) => each.state === state).length;
      if (count) tell(`${count} ${count > 1 ? "calls" : "call"} ${words}.`, true);
    }
    [...new Set(bad.map((each) => each.message))].forEach((text) => tell(text, false));
  }

  function leave(form) {
    if (form.elements.reason) form.elements.reason.value = "";
    forget(form);
    if (form.hasAttribute("data-many")) return unselect();
    const mine = form.closest("[data-card]");
    if (mine?.contains(document.activeElement)) mine.focus({ preventScroll: true });
  }

  function tell(text, isGood, kind) {
    const line = document.createElement("p");
    line.textContent = text;
    line.classList.toggle("is-bad", !isGood);
    if (kind) line.classList.add(kind);
    news.append(line);
    setTimeout(() => line.remove(), 6000);
  }

  // Selection and keys

  function mark() {
    const chosen = selected();
    for (const each of cards()) {
      each.classList.toggle("is-current", each.dataset.card === current);
      each.classList.toggle("is-selected", chosen.includes(each));
    }
    const held = holding.ids();
    for (const each of cards()) {
      const isHeld = ids(each).some((id) => held.has(id)) || held.has(each.dataset.card);
      each.classList.toggle("is-held", isHeld);
      const foot = each.querySelector("footer");
      if (foot) foot.inert = isHeld;
    }
    if (!several) return;
    several.hidden = !chosen.length;
    say(several.querySelector("[data-selected]"), `${chosen.reduce((sum, each) => sum + ids(each).length, 0)} selected`);
  }

  const ids = (each) => all("[data-part=ids] input", each).map((field) => field.value);
  const selected = () => cards().filter((each) => each.querySelector("[data-select]")?.checked);

  function choose(name) {
    const boxes = cards().filter((each) => each.dataset.in === name).map((each) => each.querySelector("[data-select]")).filter(Boolean);
    const isEvery = boxes.every((each) => each.checked);
    boxes.forEach((each) => { each.checked = !isEvery; });
    mark();
  }

  function unselect() {
    all("[data-select]", box).forEach((each) => { each.checked = false; });
    mark();
  }

  function move(step) {
    const every = cards();
    if (!every.length) return;
    const place = every.findIndex((each) => each.dataset.card === current);
    const next = every[Math.min(every.length - 1, Math.max(0, place < 0 ? 0 : place + step))];
    current = next.dataset.card;
    mark();
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  const chosenCard = () => card(current) || cards().find((each) => each.hasAttribute("data-mine"));

  function prepare(form, answer) {
    if (!form) return;
    form.dataset.enter = answer;
    const reason = form.elements.reason;
    reason.dataset.hint ||= reason.placeholder;
    reason.placeholder = answer === "approve" ? "Reason, if any; Enter approves, Esc leaves" : "Reason; Enter denies, Esc leaves";
    form.classList.toggle("is-yes", answer === "approve");
    form.classList.toggle("is-no", answer === "deny");
    reason.focus();
  }

  function forget(form) {
    form.classList.remove("is-yes", "is-no");
    delete form.dataset.enter;
    const reason = form.elements.reason;
    if (reason?.dataset.hint) reason.placeholder = reason.dataset.hint;
  }

  function one(answer) {
    const mine = chosenCard();
    if (!mine) return;
    current = mine.dataset.card;
    mark();
    prepare(mine.querySelector("form[data-answer]"), answer);
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    a: () => one("approve"),
    d: () => one("deny"),
    g: () => { const grant = chosenCard()?.querySelector("[data-grant]"); if (grant) { grant.open = true; grant.querySelector("input").focus(); } },
    x: () => { const select = chosenCard()?.querySelector("[data-select]"); if (select) { current = select.closest("[data-card]").dataset.card; select.checked = !select.checked; mark(); } },
    A: () => selected().length && ask(several.querySelector("[value=approve]")),
    D: () => selected().length && ask(several.querySelector("[value=deny]")),
    u: () => holding.undo(),
    o: () => { const mine = chosenCard(); if (mine) location.assign(mine.dataset.url); },
    "/": () => document.getElementById("inbox-search")?.focus(),
    "?": () => help.open || help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help?.open || confirm?.open || !box) return;
    if (event.key === "Escape") return escape(event.target);
    if (isTyping(event.target) || event.repeat && !"jk".includes(event.key)) return;
    if (Object.hasOwn(KEYS, event.key)) { event.preventDefault(); KEYS[event.key](); }
  });

  function escape(target) {
    if (!isTyping(target)) return unselect();
    const form = target.closest("form");
    if (form) forget(form);
    const mine = target.closest("[data-card]") || card(current);
    if (mine) mine.focus({ preventScroll: true }); else target.blur();
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form === several && confirm) { event.preventDefault(); ask(event.submitter || several.querySelector("button")); }
    if (!form.matches("form[data-answer]")) return;
    event.preventDefault();
    send(form, event.submitter);
  });

  document.addEventListener("keydown", (event) => {
    const form = event.target.closest?.("form[data-answer]");
    if (event.key !== "Enter" || event.isComposing || !form || event.target.name !== "reason" && !event.target.closest("[data-grant]")) return;
    if (event.target.matches("button, summary")) return;
    // Without a key that said which answer is meant, Enter in a field means the grant or nothing: never a yes by accident.
    event.preventDefault();
    const meant = event.target.closest("[data-grant]") ? "[formaction]" : `button[value="${form.dataset.enter}"]`;
    const button = form.querySelector(meant) || (form.querySelector("button[name=answer]") ? null : form.querySelector("button"));
    if (button) send(form, button); else tell("Press Approve or Deny.", false);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select]")) { current = event.target.closest("[data-card]").dataset.card; mark(); }
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });

  document.addEventListener("focusin", (event) => {
    const mine = event.target.closest?.("[data-card]");
    if (mine && mine.dataset.card !== current) { current = mine.dataset.card; mark(); }
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-help]")) KEYS["?"]();
    if (event.target.closest("[data-unselect]")) unselect();
    if (confirm?.open && event.target.closest("[data-close]")) { event.preventDefault(); confirm.close(); }
    const group = event.target.closest("[data-select-group]")?.closest("[data-group]");
    if (group) choose(group.dataset.group);
  });

  async function look() {
    try { await renew(); await follow(); } catch { /* the next beat asks again */ }
  }

  async function beat() {
    await look();
    setTimeout(beat, RENEW);
  }

  document.addEventListener("visibilitychange", () => { unseen = 0; if (box && !document.hidden) look(); });

  document.documentElement.classList.add("is-scripted");
  if (box) {
    skew = Date.parse(list().dataset.now) - Date.now();
    if (!box.hasAttribute("data-alone")) count(Number(list().dataset.waiting));
    settle();
    setTimeout(beat, RENEW);
    look();
  }
  tick();
  setInterval(tick, 1000);
})();
