import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { created, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openLmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import {
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { idFromBytes, type MessageId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { ReplayPages } from './replay-pages.js'

const { accountId, environment } = created
const webhook: Webhook = {
  ...{ id: idFromBytes('whk', Buffer.alloc(16, 1)), accountId, environment, inboxId: null },
  ...{ url: 'https://ci.example/', events: ['message.received'], state: 'active', disabledReason: null },
  ...{ activeSince: minute(0), former: null, rotation: 0, startFrom: 'now', positions: [] },
  ...{ secret: { masterKeyId: '', sealed: Buffer.alloc(0) }, createdAt: minute(0) },
}
const INBOXES = 4
const MAILS_EACH = 900

/** The rows that one step reads in a few milliseconds. */
const MAX_ROWS = 2_000

it('a step of a replay reads a bounded number of rows, even if no message is in its range', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
  const views = await openLmdbReadModel(join(dir, 'views.mdb'), PARTITIONS)
  const follower = await followerOf(views.store, 1)
  for (let inbox = 0; inbox < INBOXES; inbox += 1) {
    const id = inboxIdIn(1, inbox)
    const mails = Array.from({ length: MAILS_EACH }, (_, index) => mail(id, messageIdOf(inbox, index)))
    await follower.follow(makeInbox(id, { isProtected: false, maxMessages: MAILS_EACH }), ...mails)
  }
  let rowsRead = 0
  const { deliveries, queries } = views
  const inboxes = {
    inbox: queries.inbox.bind(queries),
    listInboxes: queries.listInboxes.bind(queries),
    listMessages: async (query: Parameters<typeof queries.listMessages>[0]) => {
      const rows = await queries.listMessages(query)
      rowsRead += rows.length
      return rows
    },
  }
  const log = layoutOf({ partitionCount: () => PARTITIONS })
  const pages = new ReplayPages({ deliveries, inboxes, log, now: () => minute(2) })
  const replay: Replay = {
    ...{ id: idFromBytes('rpl', Buffer.alloc(16, 1)), webhookId: webhook.id, accountId, environment },
    selection: { kind: 'range', from: minute(-2), to: minute(-1), onlyFailed: false },
    ...{ requestedAt: minute(2), steps: 0, next: { stage: 'existing-mail', inboxId: null, offset: 0 } },
    ...{ requested: 0, begun: 0, done: 0, cancelledAt: null },
  }
  const rowsPerStep: number[] = []
  for (let next: Replay['next'] = replay.next; next !== null;) {
    rowsRead = 0
    const page = await pages.page(webhook, { ...replay, next }, 50)
    rowsPerStep.push(rowsRead)
    next = page.next
  }
  expect(rowsPerStep.reduce((sum, each) => sum + each)).toBe(INBOXES * MAILS_EACH)
  // The last page may start just below the limit.
  expect(Math.max(...rowsPerStep)).toBeLessThan(MAX_ROWS + 200)
  await views.close()
  await rm(dir, { recursive: true })
})

function messageIdOf(inbox: number, index: number): MessageId {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(inbox, 8)
  bytes.writeUInt32BE(index, 12)
  return idFromBytes('msg', bytes)
}
