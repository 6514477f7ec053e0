import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deleted, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { ViewsCatchingUpError } from '#libs/ports/read-model/consistent-views.js'
import { evolve } from '#libs/domain/inbox/inbox.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-read-model.js'
import {
  Follower,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { Views } from '../http/views.js'
import { MessageReader } from './message-reader.js'
import { OpenedMail } from './opened-mail.js'

const id = inboxIdIn(1)

describe('a message looked for while views are rebuilt', () => {
  let folder: string
  let model: LmdbReadModel
  let reader: MessageReader
  let follower: Follower

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'))
    const { queries, accounts, store } = model
    const noKeys = () => Promise.reject(new Error('no key is needed to find a message'))
    const vault = { create: noKeys, find: noKeys }
    const log = layoutOf({ partitionCount: () => PARTITIONS, topology: noKeys })
    reader = new MessageReader(
      new Views(log, queries, accounts, vault, new InProcessSignals()),
      new OpenedMail(0),
    )
    follower = new Follower(store, 1)
    // Created, two mails, and at last the deletion of the first.
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

  it('is neither shown nor denied before its deletion may have come', async () => {
    await expect(find(1)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await expect(find(3)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await follower.follow({ ...messageDeleted(minute(2), messageId(1)), inboxId: id })
    await expect(find(1)).rejects.toMatchObject({ code: 'message-deleted' })
    await expect(find(2)).resolves.toMatchObject({ id: messageId(2) })
    await expect(find(3)).rejects.toMatchObject({ code: 'not-found' })
  })

  it('is gone with its inbox, where that ended after it was opened', async () => {
    await follower.follow({ ...deleted(minute(2)), inboxId: id })
    await expect(find(1)).rejects.toMatchObject({ code: 'inbox-deleted' })
  })
})
