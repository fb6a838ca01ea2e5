// takeup for OpenCode. Installed by `git takeup agents install opencode`, removed by `git takeup agents uninstall opencode`.
//
// It tells `git takeup` when a session begins, edits, stops, fails or is compacted, gives the model tools to take work up,
// puts one line about unfinished work in front of it, and names the session to its shell. Without `git-takeup` it does
// nothing but write one line to OpenCode's log. For OpenCode 1.x; OpenCode 2 has another kind of plugin.
// @ts-check
import { execFile } from "node:child_process"

/** Tools that change nothing, so nothing is recorded of them. */
const READS = new Set(["read", "grep", "glob", "list", "todoread", "todowrite", "skill", "webfetch", "websearch", "question", "task"])

/** @typedef {{ code: number, out: string }} Answer */

/**
 * Runs `git takeup` and never throws.
 * @param {string[]} args
 * @param {{ cwd: string, session?: string, input?: string, ms: number }} how
 * @returns {Promise<Answer>}
 */
const takeup = (args, how) =>
  new Promise((resolve) => {
    const env = { ...process.env, TAKEUP_AGENT: "opencode", OPENCODE: "1" }
    if (how.session) env.TAKEUP_SESSION = how.session
    const options = { cwd: how.cwd, env, timeout: how.ms, maxBuffer: 16 << 20, windowsHide: true }
    try {
      const child = execFile("git", ["takeup", ...args], options, (error, out) => {
        const code = error ? (typeof error.code === "number" ? error.code : -1) : 0
        resolve({ code, out: String(out ?? "") })
      })
      child.stdin?.on("error", () => {})
      child.stdin?.end(how.input ?? "")
    } catch {
      resolve({ code: -1, out: "" })
    }
  })

/** @param {string} text @returns {any} */
const parse = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** @param {Promise<unknown> | undefined} promise @param {number} ms */
const atMost = (promise, ms) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms))])

/** @param {any} value */
const short = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? "")).slice(0, 2000)

/** What a tool was called with, as OpenCode's own store names it. @param {any} args */
const argumentOf = (args) => short(args?.command ?? args?.filePath ?? args)

/** @param {any} input */
export const Takeup = async (input) => {
  const cwd = input.worktree && input.worktree !== "/" ? input.worktree : input.directory
  /**
   * Sessions by id: what was said at their start and when their turn began, and the calls that wait for each other.
   * @type {Map<string, { notice: Promise<string>, meanwhile?: Promise<string>, queue: Promise<unknown> }>}
   */
  const sessions = new Map()
  /** Sub-agents: they work for their parent. @type {Set<string>} */
  const children = new Set()
  let warned = false

  const warn = () => {
    if (warned) return
    warned = true
    const body = { service: "takeup", level: "warn", message: "git takeup does not answer; nothing is recorded" }
    Promise.resolve()
      .then(() => input.client?.app?.log?.({ body }))
      .catch(() => {})
  }

  /** @param {string} event @param {string} session @param {object} [more] */
  const hook = async (event, session, more) => {
    const payload = JSON.stringify({ sessionID: session, directory: input.directory, pid: process.pid, ...more })
    const answer = await takeup(["hook", "opencode", event], { cwd, session, input: payload, ms: 10000 })
    if (answer.code !== 0) warn()
    return answer.code === 0 ? (parse(answer.out)?.notice ?? "") : ""
  }

  /** Makes sure that the session is known; one that goes on after a restart is never announced. @param {string} id */
  const known = (id) => {
    let session = sessions.get(id)
    if (!session) {
      const notice = hook("session-start", id)
      session = { notice, queue: notice }
      sessions.set(id, session)
    }
    return session
  }

  /** Records in order. @param {string} id @param {string} event @param {object} [more] */
  const record = (id, event, more) => {
    if (!id || children.has(id)) return Promise.resolve("")
    const session = known(id)
    const done = session.queue.then(() => hook(event, id, more))
    session.queue = done
    return done
  }

  /** The user's own settings, never the repository's, say whether the model's word counts. */
  const callerConfirms = () =>
    new Promise((resolve) => {
      if (process.env.TAKEUP_CONFIRM) return resolve(process.env.TAKEUP_CONFIRM === "caller")
      execFile("git", ["config", "--global", "--get", "takeup.confirm"], { cwd, timeout: 2000 }, (error, out) =>
        resolve(!error && String(out).trim() === "caller"),
      )
    })

  /** @param {string[]} args @param {string} session */
  const ask = async (args, session) => {
    const answer = await takeup([...args, "--json", "--no-input"], { cwd, session, ms: 120000 })
    const reply = parse(answer.out)
    if (reply) return reply
    warn()
    const message = "git takeup does not answer; is git-takeup on PATH?"
    return { ok: false, summary: message, error: { code: "takeup-unavailable", message, retryable: false } }
  }

  /** The envelope of OpenCode++'s resume tool. @param {any} reply @param {any} args @param {string} session */
  const envelope = (reply, args, session) => {
    const all = reply.data?.candidates ?? []
    const candidates = all
      .filter((/** @type {any} */ c) => c.identity?.sessionId !== session)
      .map((/** @type {any} */ c) => ({
        identity: c.identity,
        agent: c.agent,
        compatibility: c.verdict,
        repositoryMatches: c.verdict !== "mismatched-repository",
        workingTreeCompatible: c.verdict === "resume-verification",
        reason: c.reasons?.[0]?.message ?? "",
        reasons: c.reasons,
        confirm: c.next?.command,
      }))
    const first = (/** @type {string} */ word) => candidates.find((/** @type {any} */ c) => c.compatibility === word)
    const found = first("resume-verification") ?? first("human-review") ?? first("stale-task") ?? first("in-use")
    const inspected = args.action === "inspect"
    const taken = !inspected && reply.ok
    const word = taken ? (reply.data?.verdict === "stale-task" ? "stale-task" : "resumed") : (found?.compatibility ?? "none")
    const identity = taken ? reply.data?.identity : found?.identity
    const command = inspected ? found?.confirm : reply.next?.command
    const steps = { "resume-verification": "resume", "stale-task": "resume", "human-review": "human-review" }
    const step = inspected ? (/** @type {any} */ (steps)[word] ?? "none") : (reply.next?.action ?? "resume")
    return {
      ok: reply.ok,
      tool: "resume",
      summary: reply.summary ?? reply.error?.message ?? "",
      ...(reply.error ? { error: reply.error } : {}),
      taskId: identity?.taskId ?? args.taskId ?? null,
      sessionId: session,
      decision: reply.ok ? (word === "resumed" ? "resume-verification" : word) : "block",
      blocking: !(inspected && (word === "resume-verification" || word === "none")),
      nextAction: taken ? "evaluate" : step,
      ...(command ? { nextCommand: command } : {}),
      resume: {
        status: inspected && word === "resume-verification" ? "available" : word,
        candidates,
        ...(identity ? { selectedTaskId: identity.taskId } : {}),
        ...(args.sourceSessionId || found ? { sourceSessionId: args.sourceSessionId ?? found?.identity?.sessionId } : {}),
        message: reply.summary ?? "",
      },
      takeup: reply,
    }
  }

  /** @param {any} args @param {any} context */
  const resume = async (args, context) => {
    const session = context.sessionID
    const asked = typeof args.sessionId === "string" && args.sessionId.trim() ? args.sessionId.trim() : session
    const text = (/** @type {any} */ value) => (typeof value === "string" && value.trim() ? value.trim() : undefined)
    const wanted = { action: args.action, taskId: text(args.taskId), sourceSessionId: text(args.sourceSessionId) }
    const which = [...(wanted.taskId ? ["--task", wanted.taskId] : []), ...(wanted.sourceSessionId ? ["--from", wanted.sourceSessionId] : [])]
    if (args.action === "inspect") {
      return envelope(await ask(["inspect", ...which, "--session", asked, "--agent", "opencode"], session), wanted, asked)
    }
    const refuse = (/** @type {string} */ code, /** @type {string} */ message) =>
      envelope({ ok: false, summary: message, error: { code, message, retryable: false } }, wanted, asked)
    if (args.action !== "resume") return refuse("usage", "action must be inspect or resume")
    if (args.confirmed !== true) return refuse("confirmation-needed", "confirmed must be true, and only after the user said so")
    // What is shown first is what is confirmed then: the answer holds the token for exactly this.
    const seen = await ask(["inspect", ...which, "--session", asked, "--agent", "opencode"], session)
    const to = ["--to", asked, "--agent", "opencode", "--pid", String(process.pid)]
    const shown = await ask(["resume", ...which, ...to], session)
    const token = /--confirm (ok-[0-9a-z]+)/.exec(shown.next?.command ?? "")?.[1]
    const refused = { ...shown, data: { ...shown.data, candidates: seen.data?.candidates } }
    const whole = envelope(refused, wanted, asked)
    // Only work that is as it was left goes on by the model's word; the rest is for a person who has seen the changed paths.
    if (shown.ok || !token || whole.resume.status !== "resume-verification" || !(await callerConfirms())) return whole
    return envelope(await ask(["resume", ...which, ...to, "--confirm", token], session), wanted, asked)
  }

  // Parameters can only be described to the model with OpenCode's own package; without it they pass unchecked.
  let schema
  try {
    schema = (await import("@opencode-ai/plugin")).tool?.schema
  } catch {
    schema = undefined
  }
  const string = (/** @type {string} */ about) => schema?.string().optional().describe(about)
  const shape = (/** @type {Record<string, any>} */ fields) => (schema ? fields : {})
  const print = (/** @type {any} */ value) => JSON.stringify(value, null, 2) + "\n"
  const named = (/** @type {any} */ args) => (typeof args.taskId === "string" && args.taskId.trim() ? ["--task", args.taskId.trim()] : [])
  const task = shape({ taskId: string("The task") })
  /** @param {string} description @param {string[]} command */
  const plain = (description, command) => ({
    description,
    args: task,
    execute: async (/** @type {any} */ args, /** @type {any} */ context) =>
      print(await ask([...command, ...named(args ?? {}), "--session", context.sessionID, "--agent", "opencode"], context.sessionID)),
  })
  const resumeArgs = shape({
    action: schema?.enum(["inspect", "resume"]).describe("inspect looks and changes nothing; resume takes the task up"),
    taskId: string("The task"),
    sourceSessionId: string("The session that left it"),
    sessionId: string("The session that takes it up; this one by default"),
    confirmed: schema?.boolean().optional().describe("true only after the user said yes to exactly this"),
  })

  return {
    /** @param {{ event: { type: string, properties: any } }} argument */
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const id = about.sessionID ?? about.info?.id
      if (event.type === "session.created") {
        if (about.info?.parentID) children.add(id)
        else if (id) known(id)
      } else if (event.type === "session.idle") record(id, "turn-end")
      else if (event.type === "session.error" && id) {
        const error = about.error ?? {}
        record(id, "error", { message: short(error.data?.message ?? error.name ?? "an error"), name: error.name })
      } else if (event.type === "session.deleted" && id) {
        record(id, "session-end", { reason: "deleted" })
        sessions.delete(id)
      }
    },
    /** @param {any} argument @param {any} output */
    "chat.message": async (argument, output) => {
      const typed = (output.parts ?? []).filter((/** @type {any} */ part) => part.type === "text" && !part.synthetic)
      const prompt = short(typed.map((/** @type {any} */ part) => part.text).join(" "))
      const told = record(argument.sessionID, "turn-start", { prompt })
      const session = sessions.get(argument.sessionID)
      if (session) session.meanwhile = told
      await atMost(told, 1000)
    },
    /** @param {any} argument @param {any} output */
    "tool.execute.before": async (argument, output) => {
      if (READS.has(argument.tool) || argument.tool.startsWith("takeup_")) return
      const done = record(argument.sessionID, "tool-start", { tool: argument.tool, argument: argumentOf(output.args) })
      await atMost(done, 500)
    },
    /** @param {any} argument */
    "tool.execute.after": async (argument) => {
      if (READS.has(argument.tool) || argument.tool.startsWith("takeup_")) return
      record(argument.sessionID, "tool-end", { tool: argument.tool, argument: argumentOf(argument.args) })
    },
    /** @param {any} argument @param {{ system: string[] }} output */
    "experimental.chat.system.transform": async (argument, output) => {
      const id = argument.sessionID
      if (!id || children.has(id)) return
      const session = known(id)
      const notices = await Promise.all([session.notice, session.meanwhile].map((each) => atMost(each, 1500)))
      for (const notice of notices) if (typeof notice === "string" && notice) output.system.push(notice)
    },
    /** @param {any} argument @param {{ context: string[] }} output */
    "experimental.session.compacting": async (argument, output) => {
      const notice = await atMost(record(argument.sessionID, "compaction"), 3000)
      if (typeof notice === "string" && notice) output.context.push(notice)
    },
    /** @param {any} argument @param {{ env: Record<string, string> }} output */
    "shell.env": async (argument, output) => {
      if (!argument.sessionID) return
      output.env.TAKEUP_SESSION = argument.sessionID
      output.env.TAKEUP_AGENT = "opencode"
    },
    // OpenCode ends in good order; a killed one says nothing.
    dispose: async () => {
      const ends = [...sessions.keys()].map((id) => record(id, "session-end", { reason: "exit" }))
      await atMost(Promise.all(ends), 2000)
    },
    tool: {
      takeup_inspect: plain("Shows which unfinished tasks may be taken up here and now, and why. Changes nothing.", ["inspect"]),
      takeup_resume: {
        description:
          'Takes up an unfinished task. First call it with action "inspect", show the user what it says, and call it with action "resume" and confirmed true only after the user agreed. Arguments: action, taskId, sourceSessionId, sessionId, confirmed.',
        args: resumeArgs,
        execute: async (/** @type {any} */ args, /** @type {any} */ context) => print(await resume(args ?? {}, context)),
      },
      takeup_evaluate: plain("Compares the present content with the task's boundary and checks.", ["evaluate"]),
      takeup_next: plain("Says the task's next step, and closes it when every check is proved on the present content.", ["next"]),
      takeup_review: {
        description: "Lists the questions that wait for a person. Only a person answers them, with `git takeup review`.",
        args: {},
        execute: async (/** @type {any} */ _, /** @type {any} */ context) => print(await ask(["review", "list"], context.sessionID)),
      },
    },
  }
}
