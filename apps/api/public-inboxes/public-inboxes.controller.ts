import { Body, Controller, Post, Req } from '@nestjs/common'
import { IsIn } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { PUBLIC_ACCOUNT_ID, PUBLIC_PLAN } from '#libs/domain/account/access.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { Plans } from '../access/key-lookup.js'
import { KEY_ALONE, type Principal } from '../access/principal.js'
import { rateLimited, Throttle } from '../access/request-limits.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { ConsoleAddress } from '../console/console-address.js'
import { clientAddress } from '../http/connection-limits.js'
import { Reply } from '../http/headers.js'
import { requireNotSuspended, unavailable } from '../http/problems.js'
import { IfGiven } from '../http/rules.js'
import { RANDOM_MINTING } from '../idempotency/minting.js'
import { Inbox, inboxJson } from '../inboxes/inbox-schemas.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, DescribeBody, DescribeProperty, Tag } from '../openapi/describe.js'
import { InboxTokens } from '../tokens/tokens.service.js'
import { Views } from '../views.js'

/*
 * Inboxes for anyone, without an account (docs/public-inbox.md). They belong to one account on the plan `free`, which has
 * no API access. The token in the answer is the only access to the inbox.
 */

const PUBLIC_ACCOUNT = { accountId: PUBLIC_ACCOUNT_ID, name: 'public web inbox' }
/** What the account's events and usage are attributed to. No such key exists. */
const PUBLIC_KEY = 'key_00000000000000000000000000' as KeyId
const ENVIRONMENT = 'public'

const DURATIONS = ['10m', '1h', '1d'] as const
const HOUR_SECONDS = 3_600

@DescribeBody({ description: 'A new inbox for anyone.', example: { duration: '10m' } })
class CreatePublicInbox {
  @DescribeProperty('How long it exists; 1h by default.')
  @IfGiven()
  @IsIn(DURATIONS, { message: `duration must be ${DURATIONS.join(', ')}` })
  duration?: (typeof DURATIONS)[number]
}

const PublicInbox = Type.Object(
  { inbox: Inbox, token: Type.String({ description: 'For `Authorization: Bearer <token>`.' }) },
  { $id: 'PublicInbox', description: 'An inbox that was created without a key.' },
)

/** Only registered if MAYFLY_PUBLIC_INBOX is set. */
@Controller('public/inboxes')
@Tag('Inboxes')
export class PublicInboxesController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly tokens: InboxTokens,
    private readonly commands: AccountCommands,
    private readonly plans: Plans,
    private readonly throttle: Throttle,
    private readonly instance: Instance,
    private readonly address: ConsoleAddress,
  ) {}

  @Post()
  @Describe({
    summary: 'Create an inbox without a key',
    description:
      'The token in the answer is the only access to the inbox, and may delete it. It ends with the inbox.',
    answer: { description: 'The inbox and its token.', schema: PublicInbox },
    problems: [
      ...(['untrusted-origin', 'account-suspended', 'quota-exceeded', 'rate-limited'] as const),
      ...(['catching-up', 'log-unavailable', 'read-model-unavailable'] as const),
    ],
  })
  async createPublicInbox(
    @Body() { duration = '1h' }: CreatePublicInbox,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ) {
    // Any other page could use up the limit of its visitors. Programs send no Origin.
    if (!reply.hasHeader('access-control-allow-origin')) {
      this.address.requireOwnPage(request, { mayLackOrigin: true })
    }
    await this.count(clientAddress(request))
    const principal = await this.principal()
    const { mailDomain, publicInboxDomain } = this.instance.settings
    const domain = publicInboxDomain ?? mailDomain
    const wanted = { duration, name: null, labels: {}, isProtected: false, domain }
    const created = await this.inboxes.create(principal, RANDOM_MINTING, wanted)
    const access = { access: 'owner', lifeMs: null } as const
    const { secret } = await this.tokens.issue(principal, RANDOM_MINTING, created, access)
    return { inbox: inboxJson({ ...created.inbox, name: created.details.name }), token: secret }
  }

  /**
   * Throws rate-limited, and read-model-unavailable if requests can't be counted. With a key they would pass uncounted, but
   * these belong to no customer.
   */
  private async count(address: string): Promise<void> {
    const { publicInboxesPerAddress, publicInboxesPerHour } = this.instance.settings
    const limits = [
      [`public-inbox:${address}`, publicInboxesPerAddress, 'your IP address'],
      ['public-inbox', publicInboxesPerHour, 'all visitors together'],
    ] as const
    for (const [key, quota, creators] of limits) {
      const policy: RatePolicy = { name: 'public-inboxes', quota, windowSeconds: HOUR_SECONDS }
      const verdict = await this.throttle.count((limiter) => limiter.consume(key, [policy]))
      if (verdict === null) throw unavailable('read-model-unavailable', 'New inboxes cannot be counted now.')
      if (verdict.isAllowed) continue
      throw rateLimited(
        verdict.next.refillsInMs,
        (seconds) =>
          `The limit of ${quota} new inboxes an hour for ${creators} is reached. The next one can be created in ${seconds} s.`,
      )
    }
  }

  /** Opens the account of public inboxes at the first request. */
  private async principal(): Promise<Principal> {
    const { accountId, name } = PUBLIC_ACCOUNT
    const by = { environment: ENVIRONMENT, keyId: PUBLIC_KEY }
    const read = () => this.views.readAccounts((accounts) => accounts.account(accountId))
    let account = await read()
    if (account === null) {
      // The first account on the log must be the one that the first key belongs to.
      if (!this.instance.isStarted()) throw unavailable('catching-up', 'Mayfly is starting.')
      const plan = this.plans.named(PUBLIC_PLAN)
      if (plan === null) throw new Error(`the plan ${PUBLIC_PLAN} is missing`)
      const now = this.instance.now()
      const command = { type: 'OpenAccount', accountId, name, plan, limits: null, now } as const
      await this.commands.execute({ account, key: null }, command, by)
      account = await read()
    }
    if (account === null)
      throw unavailable('catching-up', 'The account of public inboxes cannot be read yet.')
    requireNotSuspended(account)
    return {
      ...by,
      accountId,
      scopes: ['inboxes'],
      plan: this.plans.of(account),
      defaultFaults: [],
      ...{ requestsPerMinute: 0, accountRequestsPerMinute: null },
      countedBy: PUBLIC_KEY,
      ...{ ...KEY_ALONE, expiresAt: null, inboxPassword: null, subject: null },
    }
  }
}
