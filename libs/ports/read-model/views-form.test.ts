import ts from 'typescript'
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

/** The names of the properties of an interface and of all objects in it, by path. */
function namesByPath(file: string, name: string): Record<string, string> {
  const config: { config?: { compilerOptions?: unknown } } = ts.readConfigFile('tsconfig.json', (path) =>
    ts.sys.readFile(path),
  )
  const { options } = ts.convertCompilerOptionsFromJson(config.config?.compilerOptions, '.')
  const program = ts.createProgram([file], options)
  const checker = program.getTypeChecker()
  const names: Record<string, string> = {}
  const add = (path: string, type: ts.Type): void => {
    const item = checker.isArrayType(type) ? type.getNumberIndexType() : undefined
    if (item !== undefined) add(`${path}[]`, item)
    else if (type.isUnion()) for (const member of type.types) add(path, member)
    else if (isObject(type)) {
      const properties = checker.getPropertiesOfType(type)
      names[path] = namesOf(Object.fromEntries(properties.map((property) => [property.name, property])))
      for (const property of properties) add(`${path}.${property.name}`, checker.getTypeOfSymbol(property))
    }
  }
  const source = program.getSourceFile(file)
  const module = source && checker.getSymbolAtLocation(source)
  const symbol = module && checker.getExportsOfModule(module).find((each) => each.name === name)
  if (symbol !== undefined) add(name, checker.getDeclaredTypeOfSymbol(symbol))
  return names
}

/** Whether values of a type are objects. Branded ids are strings. */
function isObject(type: ts.Type): boolean {
  return type.isIntersection() ? type.types.every(isObject) : (type.flags & ts.TypeFlags.Object) !== 0
}

const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const deliveryId = idFromBytes('dlv', Buffer.alloc(16, 2))
const about = { webhookId, accountId: idFromBytes('acc', Buffer.alloc(16, 3)), environment: 'staging' }

describe('the form of the views', () => {
  it('has another version if the inboxes, parsed mails and other states in the rows have other properties', () => {
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
      ...namesByPath('libs/mail/message.ts', 'ParsedMail'),
    }).toEqual({
      form: 9,
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
      ParsedMail:
        'attachments cc codes date envelope from headers html htmlText links recipient replyTo sender sha256 size ' +
        'subject text to warnings',
      'ParsedMail.attachments[]': 'contentId contentType filename index isInline sha256 size',
      'ParsedMail.cc[]': 'address name',
      'ParsedMail.codes[]': 'confidence text value',
      'ParsedMail.envelope': 'authentication duplicateOf helo injected mailFrom rcptTo remoteAddress tls',
      'ParsedMail.envelope.authentication': 'arc dkim dmarc spf',
      'ParsedMail.envelope.authentication.arc': 'detail instances result',
      'ParsedMail.envelope.authentication.dkim[]': 'algorithm aligned detail domain result selector',
      'ParsedMail.envelope.authentication.dmarc': 'detail domain policy result',
      'ParsedMail.envelope.authentication.spf': 'detail domain result',
      'ParsedMail.envelope.tls': 'cipher version',
      'ParsedMail.from[]': 'address name',
      'ParsedMail.headers[]': 'name value',
      'ParsedMail.links[]': 'href text',
      'ParsedMail.replyTo[]': 'address name',
      'ParsedMail.to[]': 'address name',
      'ParsedMail.warnings[]': 'code detail',
    })
  })
})
