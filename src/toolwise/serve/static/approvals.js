"use strict";
// Texts that a model wrote enter the page as text nodes only. A call can be approved once its end was in view.

const seconds = 5; // between two looks
const articles = new Map(); // id -> the element that shows it
const $ = (id) => document.getElementById(id);
let token = decodeURIComponent(location.hash.slice(1)); // a fragment is never sent to a server
history.replaceState(null, "", location.pathname);

async function ask(path, body) {
  const headers = { Authorization: `Bearer ${token}` };
  const request = { headers, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(request, { method: "POST", body: JSON.stringify(body) });
  }
  const answer = await fetch(path, request);
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(`${told.error.message} (${told.error.code})`), { status: answer.status });
  return told;
}

function article(asked) {
  const made = $("one").content.cloneNode(true).firstElementChild;
  const part = (name) => made.querySelector(`.${name}`);
  const until = new Date(asked.expires * 1000).toLocaleTimeString();
  part("what").textContent = `${asked.tool}, for ${asked.principal}`;
  part("about").textContent =
    `Run ${asked.run}, call ${asked.call}, asked by ${asked.reason}. ${asked.characters} characters, until ${until}.`;
  part("digest").textContent = `SHA-256 ${asked.digest}`;
  part("look").addEventListener("click", () => look(asked.id, part));
  part("approve").addEventListener("click", () => decide(asked, "approved", part));
  part("reject").addEventListener("click", () => decide(asked, "rejected", part));
  return made;
}

async function look(id, part) {
  try {
    const whole = await ask(`/approvals/${encodeURIComponent(id)}`);
    const end = document.createElement("span");
    end.textContent = " ■";
    part("shown").replaceChildren(document.createTextNode(whole.shown), end);
    part("shown").hidden = false;
    part("look").hidden = true;
    part("said").textContent = "Read to the end, then decide.";
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      part("approve").disabled = false;
      part("said").textContent = "";
    });
    seen.observe(end);
  } catch (error) {
    part("said").textContent = error.message;
  }
}

async function decide(asked, verdict, part) {
  part("approve").disabled = part("reject").disabled = true;
  try {
    await ask(`/approvals/${encodeURIComponent(asked.id)}`, { verdict, digest: asked.digest });
    part("said").textContent = `You ${verdict} it.`;
  } catch (error) {
    part("said").textContent = error.message;
  }
}

function show(waiting) {
  const counts = new Map();
  for (const asked of waiting) counts.set(asked.tool, (counts.get(asked.tool) ?? 0) + 1);
  const groups = [...counts].map(([tool, count]) => `${tool}: ${count}`).join(", ");
  $("state").textContent = waiting.length ? `${waiting.length} wait (${groups}).` : "Nothing waits.";
  const ids = new Set(waiting.map((asked) => asked.id));
  for (const [id, made] of articles) {
    if (!ids.has(id) && !made.contains(document.activeElement)) {
      made.remove();
      articles.delete(id);
    }
  }
  for (const asked of waiting) {
    if (articles.has(asked.id)) continue;
    articles.set(asked.id, article(asked));
    $("waiting").append(articles.get(asked.id));
  }
}

async function refresh() {
  try {
    const told = await ask("/approvals");
    $("enter").hidden = true;
    show(told.approvals);
    document.title = `${told.approvals.length} wait for ${told.you}`;
  } catch (error) {
    $("state").textContent = error.message;
    $("enter").hidden = error.status !== 401;
  }
}

$("use").addEventListener("click", () => {
  token = $("token").value.trim();
  $("token").value = "";
  refresh();
});
refresh();
setInterval(refresh, seconds * 1000);
