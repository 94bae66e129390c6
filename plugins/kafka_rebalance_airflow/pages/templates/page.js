// Polls the status of the run; another state has another page.
const { progress, state } = document.currentScript.dataset;
async function poll() {
  if (document.hidden) return;
  const answer = await fetch(progress, { credentials: "same-origin" });
  if (!answer.ok) return;
  const now = await answer.json();
  if (now.state !== state) return location.reload();
  document.getElementById("label").textContent = now.label;
  document.getElementById("progress").innerHTML = now.html; // escaped where it was made
}
setInterval(() => poll().catch(() => {}), 3000);
