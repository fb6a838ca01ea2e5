// Made by git-takeup. Each event starts `git-takeup hook openclaw EVENT` with a short JSON document on its standard
// input; what it prints is shown to the model. Nothing here waits longer than the limits below or fails a turn.
import { spawn } from "node:child_process";

const LIMIT_MS = 4000;
const MOST_BYTES = 16384;

// A missing program is looked for again after a minute, so that installing it needs no restart.
let absentUntil = 0;
let warned = false;
let warn = () => {};

function unanswered() {
  if (warned) return;
  warned = true;
  warn("takeup: git-takeup does not answer; nothing is recorded");
}

function hook(event, payload) {
  return new Promise((resolve) => {
    if (Date.now() < absentUntil) return resolve("");
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
    child.on("error", (error) => {
      if (error && error.code === "ENOENT") absentUntil = Date.now() + 60000;
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

function facts(event, context) {
  const from = { ...(event || {}), ...(context || {}) };
  return {
    sessionId: from.sessionId,
    sessionKey: from.sessionKey,
    agentId: from.agentId,
    workspaceDir: from.workspaceDir,
    trigger: from.trigger,
  };
}

export default {
  id: "takeup",
  name: "takeup",
  description: "Unfinished tasks of this work tree",
  register(api) {
    if (typeof api.logger?.warn === "function") warn = (line) => api.logger.warn(line);
    // The first prompt of a session in this process is where a notice is due: the process is new after a restart, so
    // this holds for the turn that is taken up by itself, too. Forgotten sessions cost one more notice, nothing else.
    const greeted = new Set();
    api.on("before_prompt_build", async (event, context) => {
      const payload = facts(event, context);
      if (!payload.sessionId) return undefined;
      const prompt = event && (event.currentUserMessage ?? event.prompt);
      payload.prompt = typeof prompt === "string" ? prompt.slice(0, 4000) : undefined;
      const first = !greeted.has(payload.sessionId);
      if (greeted.size > 10000) greeted.clear();
      greeted.add(payload.sessionId);
      const notice = await hook(first ? "session-start" : "turn-start", payload);
      return notice ? { prependContext: notice } : undefined;
    });
    api.on("resolve_exec_env", (event, context) => {
      const { sessionId, sessionKey } = facts(event, context);
      if (!sessionId) return undefined;
      return { TAKEUP_OPENCLAW_SESSION: sessionId, TAKEUP_OPENCLAW_SESSION_KEY: sessionKey || "" };
    });
    api.on("agent_end", async (event, context) => {
      const payload = facts(event, context);
      payload.status = event && event.success ? "done" : "failed";
      if (event && event.error) payload.error = String(event.error).slice(0, 500);
      await hook("turn-end", payload);
    });
    api.on("before_compaction", async (event, context) => {
      await hook("compaction", facts(event, context));
    });
    api.on("before_reset", async (event, context) => {
      const payload = facts(event, context);
      payload.reason = (event && event.reason) || "reset";
      await hook("reset", payload);
    });
    api.on("session_end", async (event, context) => {
      const payload = facts(event, context);
      payload.reason = event && event.reason;
      greeted.delete(payload.sessionId);
      await hook("session-end", payload);
    });
  },
};
