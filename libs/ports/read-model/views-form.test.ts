import {
  issued,
  opened,
  replay as replayAccount,
  rotated,
  day,
} from '#libs/domain/account/account.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import * as inbox from '#libs/domain/inbox/inbox.test-support.js'
import { evolve as evolveDelivery } from '#libs/domain/webhook/delivery.js'
import type { DeliveryEvent } from '#libs/domain/webhook/events.js'
import { evolve as evolveReplay } from '#libs/domain/webhook/replay.js'
import {
  registered,
  webhookAfter,
  rotated as secretRotated,
} from '#libs/domain/webhook/webhook.test-support.js'
import { VIEWS_FORM } from './views.js'

/** The names of an object's properties, sorted. */
function namesOf(state: object | null | undefined): string {
  return Object.keys(state ?? {})
    .toSorted()
    .join(' ')
}

const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const deliveryId = idFromBytes('dlv', Buffer.alloc(16, 2))
const about = { webhookId, accountId: idFromBytes('acc', Buffer.alloc(16, 3)), environment: 'staging' }

describe('the form of the views', () => {
  it('has another version if the inboxes, messages and other states in the rows have other properties', () => {
    const { created, received, deleted, messageDeleted, tokenIssued, faultsSet, minute, makeFault } = inbox
    const active = inbox.replay([created, received(minute(1)), tokenIssued(minute(2))])
    const faulty = inbox.replay([created, faultsSet(minute(1), [makeFault()])])
    const account = replayAccount([opened, issued, rotated(1, day(2), day(3))])
    const webhook = webhookAfter(registered, secretRotated(1, day(2), day(3)))
    const deliveryEvents: DeliveryEvent[] = [
      {
        ...{ type: 'DeliveryRequested', ...about, deliveryId, replayId: null, requestedAt: day(1) },
        notification: { type: 'sample', inboxId: null, messageId: null, occurredAt: day(1) },
      },
      {
        ...{ type: 'DeliverySucceeded', webhookId, deliveryId, attempt: 1, attemptedAt: day(1) },
        ...{ latencyMs: 1, answer: null, status: 204 },
      },
    ]
    const delivery = deliveryEvents.reduce(evolveDelivery, null)
    const replay = evolveReplay(null, {
      ...{ type: 'ReplayRequested', ...about, replayId: idFromBytes('rpl', Buffer.alloc(16, 4)) },
      ...{ requestedAt: day(1), selection: { kind: 'range', from: day(0), to: day(1), onlyFailed: false } },
    })
    // If this fails, increase VIEWS_FORM: rows that an earlier version wrote lack the new properties.
    expect({
      form: VIEWS_FORM,
      activeInbox: namesOf(active.inbox),
      fault: faulty.inbox?.state === 'active' ? namesOf(faulty.inbox.faults[0]) : null,
      token: namesOf(active.inbox?.tokens[0]),
      endedInbox: namesOf(inbox.replay([created, deleted(minute(1))]).inbox),
      message: namesOf([...active.messages.values()][0]),
      deletedMessage: namesOf(
        [...inbox.replay([created, received(minute(1)), messageDeleted(minute(2))]).messages.values()][0],
      ),
      account: namesOf(account.account),
      key: namesOf([...account.keys.values()][0]),
      webhook: namesOf(webhook),
      delivery: namesOf(delivery),
      attempt: namesOf(delivery?.attempts[0]),
      replay: namesOf(replay),
    }).toEqual({
      form: 8,
      activeInbox:
        'accountId address createdAt droppedCount duration environment expiresAt faults faultsRevision id isProtected ' +
        'keyId labels lastMessageAt maxMessages messageCount receivedCount revision sealed state tokens',
      fault: 'action code delayMs enhancedCode everyN firstN probability seed stage text',
      token: 'access expiresAt hash id issuedAt keyId revokedAt',
      endedInbox:
        'accountId address createdAt endedAt endedBy environment id isProtected keyId labels messageCount ' +
        'receivedCount state tokens',
      message: 'id receivedAt size state',
      deletedMessage: 'deletedAt id state',
      account: 'consoleSessions defaultFaults id limits name openedAt plan',
      key: 'accountId environment former id issuedAt name prefix rateLimit revokedAt rotation scopes secretHash',
      webhook:
        'accountId activeSince createdAt disabledReason environment events former id inboxId positions rotation ' +
        'secret startFrom state url',
      delivery:
        'abandonedFor accountId attempts dueAt environment id notification replayId requestedAt state webhookId',
      attempt: 'answer attemptedAt error hasSucceeded latencyMs status',
      replay:
        'accountId begun cancelledAt done environment id next requested requestedAt selection steps webhookId',
    })
  })
})
