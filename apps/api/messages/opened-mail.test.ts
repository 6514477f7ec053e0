import type { MessageId } from '#libs/domain/ids/typeid.js'
import { messageId } from '#libs/domain/inbox/inbox.test-support.js'
import { EXAMPLE_MESSAGE } from '#libs/mail/json/message-json.js'
import { inboxIdIn } from '#libs/ports/read-model/read-model-harness.contract.js'
import { OpenedMail } from './opened-mail.js'

const [one, other] = [inboxIdIn(1), inboxIdIn(2)]
const [a, b, c, d] = [messageId(1), messageId(2), messageId(3), messageId(4)]
const opened = (inboxId: typeof one, id: MessageId) => ({ ...EXAMPLE_MESSAGE, id, inboxId })

describe('the cache of opened mail', () => {
  let nowMs: number
  let cache: OpenedMail

  beforeEach(() => {
    nowMs = 1
    cache = new OpenedMail(10_000, { now: () => nowMs })
  })
  afterEach(() => cache.onApplicationShutdown())

  it('stores messages by inbox and id', () => {
    cache.add(opened(one, a), 100)
    expect(cache.get(one, a)).toEqual(opened(one, a))
    expect(cache.get(one, b)).toBeNull()
    expect(cache.get(other, a)).toBeNull()
  })

  it('forgets the messages of one inbox', () => {
    cache.add(opened(one, a), 100)
    cache.add(opened(one, b), 100)
    cache.add(opened(other, c), 100)
    cache.forget(one)
    expect([cache.get(one, a), cache.get(one, b)]).toEqual([null, null])
    expect(cache.get(other, c)).toEqual(opened(other, c))
  })

  it('is limited in bytes, and evicts the least recently used message first', () => {
    cache.add(opened(one, a), 4_000)
    cache.add(opened(one, b), 4_000)
    expect(cache.get(one, a)).not.toBeNull()
    cache.add(opened(other, c), 4_000)
    expect([cache.get(one, a), cache.get(one, b), cache.get(other, c)]).toEqual([
      opened(one, a),
      null,
      opened(other, c),
    ])
    cache.add(opened(other, d), 20_000)
    expect(cache.get(other, d)).toBeNull()
  })

  it('removes a message after a minute, even if it was read or added again', () => {
    cache.add(opened(one, a), 100)
    for (let seconds = 0; seconds < 60; seconds += 10) {
      expect(cache.get(one, a)).not.toBeNull()
      cache.add(opened(one, a), 100)
      nowMs += 10_000
    }
    nowMs += 1
    expect(cache.get(one, a)).toBeNull()
  })

  it('stores nothing if it has 0 bytes', () => {
    const none = new OpenedMail(0)
    none.add(opened(one, a), 1)
    expect(none.get(one, a)).toBeNull()
    none.onApplicationShutdown()
  })
})
