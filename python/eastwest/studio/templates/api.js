/* Requests to the server. Each carries the token that is in the address of the page. */
const TOKEN = new URLSearchParams(location.search).get("token") || "";

/* Returns the address of a GET request whose answer a frame or a download shows. */
function addressOf(path) {
  return path + (path.includes("?") ? "&" : "?") + "token=" + encodeURIComponent(TOKEN);
}

async function request(method, path, body, signal) {
  const options = { method, signal, headers: { "X-Eastwest-Token": TOKEN } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is eastwest studio still running?");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  const failed = new Error(said.error || "The server answered with status " + answer.status + ".");
  failed.status = answer.status;
  throw failed;
}

async function ask(method, path, body, signal) {
  return (await request(method, path, body, signal)).json();
}

/* Calls `take` with each object of a stream of JSON lines, until its end. */
async function follow(path, take, signal) {
  const answer = await request("GET", path, undefined, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) take(JSON.parse(line));
  }
}
