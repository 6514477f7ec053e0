import type { AccountEvent } from '#libs/account/events.js'
import { minute } from '#libs/inbox/given-when-then.js'
import { idFromBytes } from '#libs/typeid/typeid.js'
import { describeHistoryQueries } from './history-queries.contract.js'
import { describeInboxQueries } from './inbox-queries.contract.js'
import { describeMessageQueries } from './message-queries.contract.js'
import { followAccounts, type ReadModelHarness } from './read-model-harness.contract.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 9))
const hash = (digit: string) => digit.repeat(64)

const opened = { type: 'AccountOpened', accountId, name: 'Acme', plan: 'pro', openedAt: minute(0) } as const

function issued(n: number, secretHash: string): AccountEvent {
  return {
    type: 'ApiKeyIssued',
    accountId,
    keyId: idFromBytes('key', Buffer.alloc(16, n)),
    name: `key ${n}`,
    environment: 'staging',
    scopes: ['inboxes', 'audit'],
    secretHash,
    prefix: 'mf_staging_',
    issuedAt: minute(n),
  }
}

export function describeQueries(
  name: string,
  make: () => Promise<ReadModelHarness> | ReadModelHarness,
): void {
  describe(`${name} as queries`, () => {
    let harness: ReadModelHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    describe('of inboxes', () => describeInboxQueries(() => harness))
    describe('of messages', () => describeMessageQueries(() => harness))

    describe('of history', () => describeHistoryQueries(() => harness))

    describe('of accounts', () => {
      it('tell whether there are any', async () => {
        expect(await harness.queries.hasAccounts()).toBe(false)
        await followAccounts(harness.store, opened)
        expect(await harness.queries.hasAccounts()).toBe(true)
      })

      it('find a key and its account by the hash of its secret', async () => {
        await followAccounts(harness.store, opened, issued(1, hash('a')), issued(2, hash('b')))
        const account = { id: accountId, name: 'Acme', plan: 'pro', openedAt: minute(0) }
        expect(await harness.queries.keyByHash(hash('b'))).toEqual({
          account,
          key: {
            id: idFromBytes('key', Buffer.alloc(16, 2)),
            accountId,
            name: 'key 2',
            environment: 'staging',
            scopes: ['inboxes', 'audit'],
            secretHash: hash('b'),
            prefix: 'mf_staging_',
            issuedAt: minute(2),
          },
        })
        expect((await harness.queries.keyByHash(hash('a')))?.key.name).toBe('key 1')
        expect(await harness.queries.keyByHash(hash('c'))).toBeNull()
      })

      it('know no key that was issued before its account was opened', async () => {
        await followAccounts(harness.store, issued(1, hash('a')), opened)
        expect(await harness.queries.keyByHash(hash('a'))).toBeNull()
      })
    })
  })
}
