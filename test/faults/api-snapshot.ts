import { call, pagesFrom, type InboxJson, type MessageJson, type Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'
import { allMessages } from './acknowledged-writes.js'

/** Headers that differ between two equal answers. */
const VOLATILE_HEADERS = new Set([
  'date',
  'x-request-id',
  'connection',
  'keep-alive',
  'ratelimit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  // It moves with events that change no answer, such as the record of an erasure.
  'mayfly-cursor',
])

/** All answers of the API about these inboxes: status, headers and body, by path. */
export async function snapshotOfApi(
  target: Target,
  inboxIds: readonly string[],
  messagesRead: number,
): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  const record = async <Body>(path: string): Promise<Body> => {
    const { status, headers, body } = await call<Body>(target, 'GET', path)
    const kept = [...headers].filter(([name]) => !VOLATILE_HEADERS.has(name))
    const answer = JSON.stringify([status, kept, body]).replaceAll(target.url, '')
    answers.set(path, answer.replace(/"request_id":"\w+"/, ''))
    return body
  }
  for (const state of ['active', 'deleted', 'expired']) {
    await record<InboxJson[]>(`/v1/inboxes?limit=1000&state=${state}`)
  }
  for (const order of ['asc', 'desc']) {
    const path = `/v1/messages?limit=100&order=${order}`
    await record(path)
    const pages = await pagesFrom<MessageJson>(target, path)
    answers.set(`every page of ${path}`, JSON.stringify(pages.map(({ body }) => body)))
  }
  for (const id of inboxIds) {
    const inbox = `/v1/inboxes/${id}`
    await record(inbox)
    await record(`${inbox}/messages?limit=100&order=desc`)
    if ((await call(target, 'GET', inbox)).status !== 200) continue
    const messages = await allMessages(target, id)
    answers.set(`every message of ${id}`, JSON.stringify(messages))
    for (const message of messages.slice(0, messagesRead)) {
      await record(`${inbox}/messages/${message.id}`)
      await record(`${inbox}/messages/${message.id}/raw`)
    }
  }
  return answers
}

export async function untilReady(target: Target, withinMs = 60_000): Promise<void> {
  await until('readiness', async () => (await call(target, 'GET', '/readyz')).status === 200, withinMs)
}
