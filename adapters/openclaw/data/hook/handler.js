// Made by git-takeup. Starts `git-takeup hook openclaw EVENT`; waits for it no longer than the limit.
import { spawn } from "node:child_process";

const LIMIT_MS = 4000;
const MOST_BYTES = 16384;

let warned = false;

function unanswered() {
  if (warned) return;
  warned = true;
  console.warn("takeup: git-takeup does not answer; nothing is recorded");
}

function hook(event, payload) {
  return new Promise((resolve) => {
    let printed = "";
    let child;
    try {
      child = spawn("git-takeup", ["hook", "openclaw", event], {
        stdio: ["pipe", "pipe", "ignore"],
        cwd: payload.workspaceDir || undefined,
        timeout: LIMIT_MS,
        killSignal: "SIGKILL",
      });
    } catch {
      unanswered();
      return resolve("");
    }
    child.on("error", () => {
      unanswered();
      resolve("");
    });
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (chunk) => {
      if (printed.length < MOST_BYTES) printed += chunk;
    });
    child.on("close", (code) => {
      if (code !== 0) unanswered();
      resolve(code === 0 ? printed.slice(0, MOST_BYTES).trim() : "");
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(payload));
  });
}

export default async function takeup(event) {
  const context = event.context || {};
  const entry = context.previousSessionEntry || context.sessionEntry || {};
  const payload = {
    sessionId: context.sessionId || entry.sessionId,
    sessionKey: context.sessionKey || event.sessionKey,
    agentId: context.agentId,
    workspaceDir: context.workspaceDir,
  };
  if (!payload.sessionId) return;
  if (event.type === "agent" && event.action === "bootstrap") {
    const notice = await hook("session-start", payload);
    if (notice && Array.isArray(context.bootstrapFiles)) {
      context.bootstrapFiles.push({
        name: "AGENTS.md",
        path: `${payload.workspaceDir || "."}/TAKEUP-NOTICE.md`,
        content: notice,
        missing: false,
      });
    }
  } else if (event.type === "command") {
    await hook("reset", { ...payload, reason: event.action });
  }
}
