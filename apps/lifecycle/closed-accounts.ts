import { setTimeout as pause } from 'node:timers/promises'
import type { Account } from '#libs/domain/account/account.js'
import { decide as decideAccount } from '#libs/domain/account/decide.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { decideDomain } from '#libs/domain/account/domain.js'
import { decideMember } from '#libs/domain/account/member.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import { decide as decideInbox } from '#libs/domain/inbox/decide.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { decide as decideWebhook } from '#libs/domain/webhook/decide.js'
import { Recorder, type Attribution } from '#libs/ports/event-log/cloud-event.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { ALL } from '#libs/ports/read-model/lists.js'
import type { EngineContext } from '#libs/role/run-role.js'

/*
 * Closed accounts: all their keys, members, domains, webhooks and inboxes end, a few hundred inboxes at once with pauses,
 * so that other accounts don't wait.
 */

const INBOXES_AT_ONCE = 500
const PAUSE_MS = 500
/** An account whose turn did not end all, or whose process was killed, is due again after this time. */
const LEASE_MS = 30_000
const TURN_MS = LEASE_MS / 2
/** Requests that began before the account was closed may still have made something. */
const SETTLED_MS = 10_000
const ACTIVE = { ...ALL, limit: INBOXES_AT_ONCE, state: 'active', labels: [] } as const

/** Returns a function that gives the closed account that is due a turn. */
export function closing({ engine, now, logger }: EngineContext): (signal: AbortSignal) => Promise<void> {
  const { log, accounts, webhooks, inboxes, signals } = engine
  const views = new ConsistentViews(log, inboxes, signals)
  const recorder = new Recorder(log, '/mayfly/lifecycle', now)

  /** Resolves with the number of things that have been ended. */
  async function end(account: Account, closed: NonNullable<Account['closed']>): Promise<number> {
    const { by } = closed
    const { id: accountId } = account
    const [keys, domains, members, invitations] = await Promise.all([
      accounts.listKeys(accountId, ALL),
      accounts.listDomains(accountId, ALL),
      accounts.listMembers(accountId, { ...ALL, state: 'active' }),
      accounts.listMembers(accountId, { ...ALL, state: 'invited' }),
    ])
    const environments = [...new Set([...keys, ...domains].map(({ environment }) => environment))]
    const attributionOf = (environment: string) => ({ accountId, environment, keyId: by })
    const ofAccount: { event: AccountEvent; of: { environment: string } }[] = [
      ...keys.flatMap((key) => {
        const command = { type: 'RevokeApiKey', accountId, keyId: key.id, revokedBy: by, now: now() } as const
        return decideAccount({ account, key }, command).events.map((event) => ({ event, of: key }))
      }),
      ...domains.flatMap((domain) => {
        const command = { type: 'RemoveDomain', accountId, domainId: domain.id, now: now() } as const
        return decideDomain(domain, command).events.map((event) => ({ event, of: domain }))
      }),
      ...[...members, ...invitations].flatMap((member) => {
        const command = { type: 'EndMember', accountId, memberId: member.id, by, now: now() } as const
        const slice = { member, owners: account.owners }
        return decideMember(slice, command).events.map((event) => ({ event, of: closed }))
      }),
    ]
    for (const environment of environments) {
      for (const webhook of await webhooks.listWebhooks({ accountId, environment }, ALL)) {
        const command = { type: 'RemoveWebhook', accountId, webhookId: webhook.id, now: now() } as const
        const { events } = decideWebhook(webhook, command)
        ofAccount.push(...events.map((event) => ({ event, of: webhook })))
      }
    }
    for (const { event, of } of ofAccount) await recorder.record(event, attributionOf(of.environment))
    const active = await views.readComplete('inbox-events', () =>
      Promise.all(
        environments.map((environment) =>
          inboxes.listInboxes({ accountId, environment, ...ACTIVE, now: now() }),
        ),
      ),
    )
    const ended = active.flat().slice(0, INBOXES_AT_ONCE)
    await Promise.all(ended.map((inbox) => endInbox(inbox, attributionOf(inbox.environment))))
    return ofAccount.length + ended.length
  }

  async function endInbox(inbox: Inbox, by: Attribution & { keyId: KeyId }): Promise<void> {
    const command = { type: 'DeleteInbox', inboxId: inbox.id, keyId: by.keyId, now: now() } as const
    const { events } = decideInbox({ inbox, message: null }, command)
    for (const event of events) await views.waitUntilVisible(await recorder.record(event, by))
  }

  return async (signal) => {
    const untilMs = performance.now() + TURN_MS
    const [account] = await accounts.leaseDueAccounts({ now: now(), leaseMs: LEASE_MS, limit: 1 })
    const closed = account?.closed ?? null
    if (account === undefined || closed === null) return
    const { id: accountId } = account
    while ((await end(account, closed)) > 0) {
      if (signal.aborted || performance.now() > untilMs) return
      await pause(PAUSE_MS)
    }
    if (now().getTime() - closed.at.getTime() < SETTLED_MS) return
    const command = { type: 'RecordErasure', accountId, now: now() } as const
    const { events } = decideAccount({ account, key: null }, command)
    const by = { accountId, environment: closed.environment, keyId: closed.by }
    for (const event of events) await recorder.record(event, by)
    logger.info({ account: accountId }, 'all of a closed account is erased')
  }
}
