import { Inject, Injectable } from '@nestjs/common'
import type { Scope } from '#libs/domain/account/access.js'
import { isId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import {
  decide,
  MAX_WEBHOOKS_OF_ENVIRONMENT,
  MAX_WEBHOOKS_OF_INBOX,
  type RequestedUrl,
  type WebhookCommand,
  type WebhookRefusal,
} from '#libs/domain/webhook/decide.js'
import {
  ENVIRONMENT_NOTIFICATIONS,
  isOfMasterKey,
  type PartitionEnd,
  type SealedSecret,
} from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Engine } from '#libs/engines/engine.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { ListQuery } from '#libs/ports/read-model/lists.js'
import type { WebhookScope } from '#libs/ports/read-model/tables.js'
import type { ResourceJson } from '#libs/runtime/resource.js'
import { type Principal, requireScope } from '../access/principal.js'
import { invalid, unavailable, type Problem, noResource, overGrace } from '../http/problems.js'
import { QuotaUse } from '../quotas/quota-use.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import type { Minting } from '../idempotency/minting.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { ENGINE, Instance } from '../instance.js'
import {
  readStart,
  type ChangeWebhook,
  type RegisterWebhook,
  type RotateWebhookSecret,
} from './webhook-requests.dto.js'
import { webhookJson, webhookWithSecretJson } from './webhook-schemas.js'
import { readGrace } from '../http/rules.js'

/** The scopes that may read an inbox's webhooks, and those that may change them. An environment's require `admin`. */
export const READ_SCOPES: readonly Scope[] = ['inboxes', 'read']
export const WRITE_SCOPES: readonly Scope[] = ['inboxes']

const SECRET_BYTES = 32
/** Several requests may rotate the same secret at once. More than this many in a row is unlikely. */
const MAX_ATTEMPTS = 5

@Injectable()
export class Webhooks {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly quotas: QuotaUse,
    private readonly personal: PersonalData,
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'log' | 'webhooks' | 'secrets'>,
  ) {}

  /**
   * Resolves once the webhook is durable and can be read. `inboxId` is null for the whole environment. The ends of
   * inbox-events are read first: events after them happened after the registration, or at the same time.
   */
  async register(
    principal: Principal,
    inboxId: InboxId | null,
    { url, events, start_from: startFrom }: RegisterWebhook,
    minting: Minting,
  ): Promise<ResourceJson> {
    const { accountId, environment } = principal
    const { webhooks, secrets } = this.engine
    const webhookId = minting.id('whk')
    const secret = minting.bytes(SECRET_BYTES)
    const limit = inboxId === null ? MAX_WEBHOOKS_OF_ENVIRONMENT : MAX_WEBHOOKS_OF_INBOX
    const scope: WebhookScope = inboxId === null ? { accountId, environment } : { inboxId }
    const [known, others, positions] = await this.views.readComplete('account-events', () =>
      Promise.all([
        webhooks.webhook(webhookId),
        webhooks.listWebhooks(scope, { order: 'asc', after: null, limit }),
        this.endsFor(inboxId),
      ]),
    )
    if (known === null && inboxId === null) await this.quotas.require(accountId, 'webhooks')
    const stored = known?.url ?? (await this.personal.seal(accountId, url))
    await this.run(principal, known, {
      type: 'RegisterWebhook',
      accountId,
      webhookId,
      environment,
      inboxId,
      url: { text: url, stored },
      events,
      secret: secrets.sealSecret(webhookId, secret),
      startFrom: readStart(startFrom),
      positions,
      registered: others.length,
      now: this.instance.now(),
    })
    return this.showNew(await this.findOrThrow(webhookId), secret)
  }

  /** The webhooks of one inbox, or of an environment. */
  list(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    return this.views.readComplete('account-events', () => this.engine.webhooks.listWebhooks(scope, query))
  }

  /**
   * Finds a webhook that the caller may read (READ_SCOPES) or change (WRITE_SCOPES). Throws not-found, also for
   * webhooks of another account or environment; missing-scope; and the 403 or 429 of a protected inbox. The webhooks of
   * an inbox that has ended require no password, since its password is deleted.
   */
  async find(principal: Principal, id: string, scopes: readonly Scope[]): Promise<Webhook> {
    const webhook = isId('whk', id) ? await this.read(id) : null
    if (webhook?.accountId !== principal.accountId || webhook.environment !== principal.environment) {
      throw noResource('webhook', id)
    }
    const { inboxId } = webhook
    requireScope(principal, inboxId === null ? ['admin'] : scopes)
    if (inboxId !== null) await this.inboxes.requirePasswordUnlessEnded(principal, inboxId)
    return webhook
  }

  /** Resolves once the change applies on this instance. Throws as `find` does. */
  async change(principal: Principal, id: string, changes: ChangeWebhook): Promise<ResourceJson> {
    const { url: text = null, events = null, state = null } = changes
    if (text === null && events === null && state === null) {
      throw invalid({ detail: 'url, events or state must be given', pointer: '' })
    }
    const webhook = await this.find(principal, id, WRITE_SCOPES)
    const { id: webhookId, accountId, inboxId } = webhook
    const other = events?.find((event) =>
      ENVIRONMENT_NOTIFICATIONS.some(({ publicName }) => publicName === event),
    )
    if (inboxId !== null && other !== undefined) {
      throw invalid({ detail: `${other} is not an event of an inbox`, pointer: '/events' })
    }
    const now = this.instance.now()
    const url = text === null ? null : await this.requestedUrl(webhook, text)
    const command = { type: 'ChangeWebhook', accountId, webhookId, url, events, state, now } as const
    await this.run(principal, webhook, command)
    return this.show(await this.findOrThrow(webhookId))
  }

  /** Resolves with the former webhook once it is deleted on this instance. Throws as `find` does. */
  async remove(principal: Principal, id: string): Promise<ResourceJson> {
    const webhook = await this.find(principal, id, WRITE_SCOPES)
    const { id: webhookId, accountId } = webhook
    const now = this.instance.now()
    await this.run(principal, webhook, { type: 'RemoveWebhook', accountId, webhookId, now })
    return this.show(webhook)
  }

  /**
   * Resolves once requests are signed with the new secret on this instance, and also with the former one for the grace
   * period.
   */
  async rotate(
    principal: Principal,
    id: string,
    { grace }: RotateWebhookSecret,
    minting: Minting,
  ): Promise<ResourceJson> {
    const { secrets } = this.engine
    let webhook = await this.find(principal, id, WRITE_SCOPES)
    const { id: webhookId, accountId } = webhook
    const secret = minting.bytes(SECRET_BYTES)
    const sealed = secrets.sealSecret(webhookId, secret)
    // A secret that was sealed with another master key is from another request, and that key may be deleted.
    const isNew = (other: SealedSecret | undefined) =>
      other?.masterKeyId === sealed.masterKeyId && secrets.openSecret(webhookId, other).equals(secret)
    for (let attempts = 0; !isNew(webhook.secret) && !isNew(webhook.former?.secret); attempts += 1) {
      if (attempts === MAX_ATTEMPTS) {
        throw unavailable('catching-up', 'Other requests are rotating the secret of the webhook.')
      }
      await this.run(principal, webhook, {
        type: 'RotateWebhookSecret',
        accountId,
        webhookId,
        secret: sealed,
        graceMs: readGrace(grace),
        now: this.instance.now(),
      })
      webhook = await this.findOrThrow(webhookId)
    }
    return this.showNew(webhook, secret)
  }

  /** A webhook as JSON. Throws MasterKeyMissingError if the master key that sealed its URL is no longer configured. */
  async show(webhook: Webhook): Promise<ResourceJson> {
    return webhookJson({ ...webhook, url: await this.urlOf(webhook) })
  }

  /** As `show`, with the secret in the form of Standard Webhooks (section "Secret"). */
  private async showNew(webhook: Webhook, bytes: Uint8Array): Promise<ResourceJson> {
    const secret = `whsec_${Buffer.from(bytes).toString('base64')}`
    return webhookWithSecretJson({ ...webhook, url: await this.urlOf(webhook), secret })
  }

  private async urlOf(webhook: Webhook): Promise<string> {
    const url = await this.personal.openUrl(webhook)
    if (url === null) throw new Error(`the URL of ${webhook.id} was erased with its account`)
    return url
  }

  /** Keeps the stored URL if it is the same and sealed with the key of the account. Otherwise seals the new one. */
  private async requestedUrl(webhook: Webhook, text: string): Promise<RequestedUrl> {
    const { accountId, url: stored } = webhook
    const isSealed = typeof stored !== 'string' && !isOfMasterKey(stored)
    if (isSealed && (await this.urlOf(webhook)) === text) return { text, stored }
    return { text, stored: await this.personal.seal(accountId, text) }
  }

  /** Resolves once the events of the command are durable and visible. */
  private async run(principal: Principal, webhook: Webhook | null, command: WebhookCommand): Promise<void> {
    const { events, refusal } = decide(webhook, command)
    if (refusal !== null) throw problemOf(refusal, command.webhookId)
    await this.recorder.record(events, principal)
  }

  private read(id: WebhookId): Promise<Webhook | null> {
    return this.views.readComplete('account-events', () => this.engine.webhooks.webhook(id))
  }

  /** Reads a webhook after a change. Throws not-found if it was deleted in the meantime. */
  private async findOrThrow(id: WebhookId): Promise<Webhook> {
    const webhook = await this.read(id)
    if (webhook === null) throw noResource('webhook', id)
    return webhook
  }

  /** The ends of the partitions of inbox-events that have events for the webhook. */
  private async endsFor(inboxId: InboxId | null): Promise<PartitionEnd[]> {
    const own = inboxId === null ? null : this.views.partitionOf(inboxId)
    const { partitions } = await this.engine.log.topology('inbox-events')
    return partitions
      .filter(({ partition }) => own === null || partition === own)
      .map(({ partition, end: offset }) => ({ partition, offset }))
  }
}

function problemOf(refusal: WebhookRefusal, id: string): Problem {
  switch (refusal.code) {
    case 'unknown-webhook':
      return noResource('webhook', id)
    case 'unfit-url':
      return invalid({ detail: `url ${refusal.error}`, pointer: '/url' })
    case 'too-many-webhooks': {
      const { of, max } = refusal
      return invalid({ detail: `an ${of} may have ${max} webhooks: delete one first`, pointer: '' })
    }
    case 'over-grace':
      return overGrace(refusal.maxMs)
  }
}
