// Answers that can still be taken back: each is held for some seconds, shown with a way to undo it, and then sent.
// Whoever leaves the page meanwhile has meant what they said: what is held goes out at once, and the server takes an
// answer only once. Without this script a form is sent as soon as it is submitted.
"use strict";
window.placetHolding = (() => {
  const HOLD = 5000; // ms
  const bar = document.getElementById("inbox-held");
  const held = []; // { ids, say, url, body, done, undone, until, line }

  function hold(answer) {
    if (!bar || answer.isUrgent) return deliver(answer);
    answer.until = Date.now() + HOLD;
    answer.line = line(answer);
    held.push(answer);
    bar.append(answer.line);
    bar.hidden = false;
    tick();
  }

  function line(answer) {
    const made = document.createElement("p");
    const words = Object.assign(document.createElement("span"), { textContent: answer.say });
    words.setAttribute("role", "status");
    const left = Object.assign(document.createElement("span"), { className: "inbox-left" });
    left.setAttribute("aria-hidden", "true");
    const undo = button("Undo", "u", () => takeBack(answer));
    const now = button("Send now", "", () => release(answer));
    made.append(words, left, undo, now);
    return made;
  }

  function button(text, key, act) {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "inbox-button", textContent: text });
    if (key) made.append(" ", Object.assign(document.createElement("kbd"), { textContent: key }));
    made.addEventListener("click", act);
    return made;
  }

  function drop(answer) {
    const place = held.indexOf(answer);
    if (place < 0) return false; // it is on its way already
    held.splice(place, 1);
    const hadFocus = answer.line.contains(document.activeElement);
    answer.line.remove();
    bar.hidden = !held.length;
    if (hadFocus) (bar.querySelector("button") || document.getElementById("content-main"))?.focus?.();
    return true;
  }

  function takeBack(answer) {
    if (answer && drop(answer)) answer.undone();
  }

  function release(answer) {
    if (drop(answer)) deliver(answer);
  }

  async function deliver(answer) {
    const sent = { method: "POST", body: answer.body, credentials: "same-origin", keepalive: true, headers: { Accept: "application/json" } };
    try {
      const got = await fetch(answer.url, sent);
      if (!got.headers.get("Content-Type")?.startsWith("application/json")) return location.reload();
      answer.done(await got.json());
    } catch {
      answer.done(null);
    }
  }

  function tick() {
    for (const answer of [...held]) {
      const left = Math.ceil((answer.until - Date.now()) / 1000);
      if (left <= 0) release(answer); else answer.line.querySelector(".inbox-left").textContent = `sent in ${left} s`;
    }
  }

  setInterval(tick, 250);
  // Not "beforeunload": this one also comes when a phone puts the page away for good.
  window.addEventListener("pagehide", () => [...held].forEach(release));

  return {
    hold,
    undo: () => takeBack(held.at(-1)),
    ids: () => new Set(held.flatMap((answer) => answer.ids)),
  };
})();
