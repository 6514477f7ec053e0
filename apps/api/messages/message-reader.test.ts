import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintId } from '#libs/domain/ids/mint.js'
import { evolve } from '#libs/domain/inbox/inbox.js'
import { deleted, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import { messageJson } from '#libs/mail/json/message-json.js'
import { parseMail } from '#libs/mail/parse.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { ViewsCatchingUpError } from '#libs/ports/read-model/consistent-views.js'
import {
  Follower,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { Views } from '../views.js'
import { messageWithRaw } from './message-pages.js'
import { MessageReader } from './message-reader.js'
import { OpenedMail } from './opened-mail.js'

const id = inboxIdIn(1)

describe('finding a message while the views are rebuilt', () => {
  let folder: string
  let model: LmdbReadModel
  let reader: MessageReader
  let follower: Follower

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'), PARTITIONS)
    const { queries, accounts, store } = model
    const noKeys = () => Promise.reject(new Error('no key is needed to find a message'))
    const vault = { create: noKeys, find: noKeys }
    const log = layoutOf({ partitionCount: () => PARTITIONS, topology: noKeys })
    reader = new MessageReader(
      new Views(log, queries, accounts, vault, new InProcessSignals()),
      new OpenedMail(0),
    )
    follower = new Follower(store, 1)
    // The log has a creation, two mails and the deletion of the first.
    await follower.begin({ end: 4 })
    await follower.follow(makeInbox(id), mail(id, messageId(1)), mail(id, messageId(2)))
  })
  afterEach(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })

  const find = (n: number) => {
    const { inbox } = evolve({ inbox: null, message: null }, makeInbox(id))
    if (inbox?.state !== 'active') throw new Error('no inbox')
    return reader.find(inbox, messageId(n))
  }

  it('fails until its deletion could have been read', async () => {
    await expect(find(1)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await expect(find(3)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await follower.follow({ ...messageDeleted(minute(2), messageId(1)), inboxId: id })
    await expect(find(1)).rejects.toMatchObject({ code: 'message-deleted' })
    await expect(find(2)).resolves.toMatchObject({ id: messageId(2) })
    await expect(find(3)).rejects.toMatchObject({ code: 'not-found' })
  })

  it('fails with the end of the inbox if that ended after it was opened', async () => {
    await follower.follow({ ...deleted(minute(2)), inboxId: id })
    await expect(find(1)).rejects.toMatchObject({ code: 'inbox-deleted' })
  })
})

function messageOf() {
  const mail = parseMail(Buffer.from('Subject: One\r\n\r\nHello'), anyEnvelope)
  const [id, inboxId] = [mintId('msg'), mintId('inb')]
  return messageJson({ id, inboxId, receivedAt: new Date(), mail, bytes: 0 }, '/v1/inboxes')
}

describe('a message with its source', () => {
  it.each([
    { name: 'empty', raw: Buffer.alloc(0), encoding: 'utf-8' },
    { name: 'a quotation mark and controls', raw: Buffer.from('"\\\0\r\n\u2028'), encoding: 'utf-8' },
    { name: 'characters of four bytes', raw: Buffer.from(`x${'👋'.repeat(250_000)}`), encoding: 'utf-8' },
    { name: 'characters of three bytes', raw: Buffer.from(`xx${'日'.repeat(400_000)}`), encoding: 'utf-8' },
    { name: 'bytes that are not UTF-8', raw: Buffer.alloc(1_000_001, 0xff), encoding: 'base64' },
  ] as const)('is valid JSON for any source: $name', async ({ raw, encoding }) => {
    const message = messageOf()
    const written: unknown = JSON.parse((await messageWithRaw(message, raw)).toString())
    const text = raw.toString(encoding)
    // Not `toBe(text)`: Jest takes minutes to print the difference of a megabyte.
    expect((written as { raw: string }).raw === text).toBe(true)
    expect(written).toMatchObject({ ...JSON.parse(JSON.stringify(message)), raw_encoding: encoding })
  })
})
