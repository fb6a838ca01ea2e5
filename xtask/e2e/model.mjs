// A model for tests: speaks streamed chat completions on loopback and is driven by the prompt. Each line `RUN: COMMAND` of the
// last message that has any is one call of the tool `exec`, in order; then it says DONE. Every request is one line of the log.
// usage: node model.mjs PORT LOG
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const [port, log] = process.argv.slice(2);

const textOf = (content) =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((part) => part?.text ?? "").join("\n")
      : "";

function answer(messages) {
  let at = -1;
  messages.forEach((message, index) => {
    if (message.role === "user" && /^RUN: /m.test(textOf(message.content))) at = index;
  });
  if (at < 0) return { content: "DONE" };
  const commands = textOf(messages[at].content)
    .split("\n")
    .filter((line) => line.startsWith("RUN: "))
    .map((line) => line.slice(5));
  const done = messages.slice(at + 1).filter((message) => message.role === "tool").length;
  if (done >= commands.length) return { content: `DONE after ${done}` };
  const call = { name: "exec", arguments: JSON.stringify({ command: commands[done] }) };
  return { tool_calls: [{ index: 0, id: `call_${at}_${done}`, type: "function", function: call }] };
}

createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    if (request.method !== "POST") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", data: [{ id: "test-1", object: "model" }] }));
      return;
    }
    const asked = JSON.parse(body);
    appendFileSync(log, `${JSON.stringify(asked.messages)}\n`);
    const said = asked.tools?.length ? answer(asked.messages) : { content: "a title" };
    const head = { id: "c1", object: "chat.completion.chunk", created: 1, model: asked.model };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const reason = said.tool_calls ? "tool_calls" : "stop";
    if (!asked.stream) {
      response.setHeader("content-type", "application/json");
      const message = { role: "assistant", content: said.content ?? null, tool_calls: said.tool_calls };
      const choices = [{ index: 0, message, finish_reason: reason }];
      response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage }));
      return;
    }
    response.setHeader("content-type", "text/event-stream");
    const send = (part) => response.write(`data: ${JSON.stringify({ ...head, ...part })}\n\n`);
    send({ choices: [{ index: 0, delta: { role: "assistant" }, finish_reason: null }] });
    send({ choices: [{ index: 0, delta: said, finish_reason: null }] });
    send({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
    send({ choices: [], usage });
    response.end("data: [DONE]\n\n");
  });
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
