// A model on the loopback interface that does what its prompt says, in the four protocols that agents speak.
//
// node model.mjs LOG: prints its port, and appends every request to LOG, a line of JSON each.
// A line `#call TOOL {json}` of the last such prompt asks for that tool, one a round; then the model says that it is done.
import fs from 'node:fs'
import http from 'node:http'

const log = process.argv[2]
let count = 0

// Returns what is to be said next: a call, or words. Turns are { role: 'user' | 'tool' | …, text }.
function next(turns, hasTools) {
  if (!hasTools) return { words: 'A title' }
  const last = turns.findLastIndex((turn) => turn.role === 'user' && /^#call /m.test(turn.text))
  if (last < 0) return { words: 'Nothing to do' }
  const calls = [...turns[last].text.matchAll(/^#call (\S+) (\{.*\})\s*$/gm)]
  const done = turns.slice(last + 1).filter((turn) => turn.role === 'tool').length
  if (done >= calls.length) return { words: `Done after ${done} calls` }
  const [, tool, input] = calls[done]
  return { tool, input }
}

const texts = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n')

// Sends events of a stream; a name is sent where the protocol has names.
function stream(response, events, end = '\n\n') {
  response.setHeader('content-type', 'text/event-stream')
  for (const event of events) {
    if (event.type && !event.choices) response.write(`event: ${event.type}\n`)
    response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}${end}`)
  }
  response.end()
}

// Chat completions.
function chat(body, response) {
  const turns = body.messages.map((message) => ({ role: message.role, text: texts(message.content) }))
  const say = next(turns, body.tools?.length)
  const call = { id: `call_${++count}`, type: 'function', function: { name: say.tool, arguments: say.input } }
  const message = say.tool ? { role: 'assistant', content: null, tool_calls: [call] } : { role: 'assistant', content: say.words }
  const finish = say.tool ? 'tool_calls' : 'stop'
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const base = { id: `chat_${count}`, object: 'chat.completion.chunk', created: 1, model: body.model }
  if (!body.stream) {
    const choices = [{ index: 0, message, finish_reason: finish }]
    return response.end(JSON.stringify({ ...base, object: 'chat.completion', choices, usage }))
  }
  const chunk = (delta, finish_reason = null) => ({ ...base, choices: [{ index: 0, delta, finish_reason }] })
  const rest = say.tool ? { tool_calls: [{ index: 0, ...call }] } : { content: say.words }
  const events = [chunk({ role: 'assistant' }), chunk(rest), chunk({}, finish), { ...base, choices: [], usage }, '[DONE]']
  stream(response, events)
}

// OpenAI's responses. A tool of a namespace is written `namespace::tool` in the prompt.
function responses(body, response) {
  const turns = body.input.map((item) =>
    item.type?.endsWith('_call_output') ? { role: 'tool', text: '' } : { role: item.role, text: texts(item.content) })
  const say = next(turns, body.tools?.length)
  const id = `item_${++count}`
  const [namespace, name] = say.tool?.includes('::') ? say.tool.split('::') : [undefined, say.tool]
  const item = say.tool
    ? { type: 'function_call', id, call_id: `call_${count}`, name, namespace, arguments: say.input }
    : { type: 'message', id, role: 'assistant', content: [{ type: 'output_text', text: say.words, annotations: [] }] }
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 }
  const whole = { id: `response_${count}`, object: 'response', status: 'completed', output: [item], usage }
  stream(response, [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: whole },
  ])
}

// Anthropic's messages.
function messages(body, response) {
  const turns = body.messages.flatMap((message) => {
    if (typeof message.content === 'string') return [{ role: message.role, text: message.content }]
    const results = message.content.filter((part) => part.type === 'tool_result')
    return [{ role: message.role, text: texts(message.content) }, ...results.map(() => ({ role: 'tool', text: '' }))]
  })
  const say = next(turns, body.tools?.length)
  const content = say.tool
    ? { type: 'tool_use', id: `toolu_${++count}`, name: say.tool, input: JSON.parse(say.input) }
    : { type: 'text', text: say.words }
  const stop_reason = say.tool ? 'tool_use' : 'end_turn'
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: `msg_${++count}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage }
  if (!body.stream) return response.end(JSON.stringify({ ...message, content: [content], stop_reason }))
  const empty = say.tool ? { ...content, input: {} } : { type: 'text', text: '' }
  const delta = say.tool
    ? { type: 'input_json_delta', partial_json: say.input }
    : { type: 'text_delta', text: say.words }
  stream(response, [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: empty },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ])
}

// Gemini's generateContent.
function generate(body, response, streams) {
  const turns = body.contents.flatMap((content) => {
    const results = content.parts.filter((part) => part.functionResponse)
    return [{ role: content.role, text: texts(content.parts) }, ...results.map(() => ({ role: 'tool', text: '' }))]
  })
  const say = next(turns, body.tools?.length)
  const part = say.tool ? { functionCall: { name: say.tool, args: JSON.parse(say.input) } } : { text: say.words }
  const answer = {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  }
  if (streams) stream(response, [answer], '\r\n\r\n')
  else response.end(JSON.stringify(answer))
}

const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => {
    const path = request.url.split('?')[0]
    response.setHeader('content-type', 'application/json')
    let body = {}
    try { body = JSON.parse(Buffer.concat(parts)) } catch {}
    fs.appendFileSync(log, JSON.stringify({ path, body }) + '\n')
    if (path.endsWith('/chat/completions')) chat(body, response)
    else if (path.endsWith('/responses')) responses(body, response)
    else if (path.endsWith('/messages/count_tokens')) response.end('{"input_tokens":1}')
    else if (path.endsWith('/messages')) messages(body, response)
    else if (path.endsWith(':streamGenerateContent')) generate(body, response, true)
    else if (path.endsWith(':generateContent')) generate(body, response, false)
    else if (path.endsWith(':countTokens')) response.end('{"totalTokens":1}')
    else response.end(JSON.stringify({ object: 'list', data: [{ id: 'fake-1', object: 'model' }] }))
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
