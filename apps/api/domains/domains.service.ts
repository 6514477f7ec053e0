import { domainToASCII } from 'node:url'
import { Inject, Injectable } from '@nestjs/common'
import {
  decideDomain,
  type CatchAll,
  type Domain,
  type DomainCommand,
  type DomainRefusal,
} from '#libs/domain/account/domain.js'
import { isId, type DomainId } from '#libs/domain/ids/typeid.js'
import { base32 } from '#libs/domain/inbox/new-inbox.js'
import type { Engine } from '#libs/engines/engine.js'
import { readDomainName } from '#libs/mail/domain-name.js'
import { DomainDns, mxHostOf, recordsOf } from '#libs/mail/domain-records.js'
import type { ListQuery } from '#libs/ports/read-model/lists.js'
import { DomainChecks } from '#libs/role/domain-checks.js'
import { RecipientDomains } from '#libs/role/recipient-domains.js'
import type { ResourceJson } from '#libs/runtime/resource.js'
import type { Principal } from '../access/principal.js'
import { beingChanged, invalid, noResource, Problem } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { lifespanOf } from '../inboxes/inboxes.service.js'
import { ENGINE, Instance } from '../instance.js'
import { QuotaUse } from '../quotas/quota-use.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import type { ChangeDomain, CreateDomain } from './domain-requests.dto.js'
import { domainJson, type CatchAllJson } from './domain-schemas.js'

const TOKEN_BYTES = 32
const HOSTED_LABEL_BYTES = 8
/** Other requests and checks may change the same domain at the same time. More than this many in a row is unlikely. */
const MAX_ATTEMPTS = 5

/** The domains of accounts, in all environments. */
@Injectable()
export class Domains {
  private readonly mxHost: string
  private readonly checks: DomainChecks

  constructor(
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly recipients: RecipientDomains,
    private readonly quotas: QuotaUse,
    @Inject(ENGINE) { accounts }: Pick<Engine, 'accounts'>,
  ) {
    const { settings, now } = instance
    this.mxHost = mxHostOf(settings)
    this.checks = new DomainChecks({
      ...{ dns: new DomainDns(settings), accounts, now },
      record: (event, by) => recorder.record([event], by),
    })
  }

  /** Resolves once the domain is durable and can be read. Throws invalid-request and quota-exceeded. */
  async create(principal: Principal, body: CreateDomain, minting: Minting): Promise<ResourceJson> {
    const { accountId } = principal
    const { hosted: isHosted = false, environment = principal.environment, subdomains = false } = body
    const domainId = minting.id('dom')
    const token = base32(minting.bytes(TOKEN_BYTES))
    const label = base32(minting.bytes(HOSTED_LABEL_BYTES))
    const name = this.nameOf(body, label)
    const catchAll = await this.readCatchAll(
      principal,
      environment,
      body.catch_all ?? { action: isHosted ? 'create' : 'reject' },
    )
    const [known, names] = await this.views.readAccounts((accounts) =>
      Promise.all([accounts.domain(domainId), accounts.domainNames(accountId)]),
    )
    if (known === null) await this.quotas.require(accountId, 'domains')
    await this.run(principal, known, {
      ...{ type: 'RegisterDomain', accountId, domainId, name, environment, isHosted, subdomains },
      ...{ catchAll, token, names, now: this.instance.now() },
    })
    return this.show(await this.find(principal, domainId))
  }

  list({ accountId }: Principal, query: ListQuery<DomainId>): Promise<Domain[]> {
    return this.views.readAccounts((accounts) => accounts.listDomains(accountId, query))
  }

  /** Throws not-found, also for domains of other accounts. */
  async find({ accountId }: Principal, id: string): Promise<Domain> {
    const domain = isId('dom', id) ? await this.views.readAccounts((accounts) => accounts.domain(id)) : null
    if (domain?.accountId !== accountId) throw noResource('domain', id)
    return domain
  }

  /** Resolves once the change applies on this instance. */
  async change(principal: Principal, id: string, changes: ChangeDomain): Promise<ResourceJson> {
    const { subdomains = null } = changes
    if (subdomains === null && changes.catch_all === undefined) {
      throw invalid({ detail: 'subdomains or catch_all must be given', pointer: '' })
    }
    let domain = await this.find(principal, id)
    const { id: domainId, accountId, environment } = domain
    const catchAll =
      changes.catch_all === undefined
        ? null
        : await this.readCatchAll(principal, environment, changes.catch_all)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const now = this.instance.now()
      const command = { type: 'ChangeDomain', accountId, domainId, subdomains, catchAll, now } as const
      if (!(await this.run(principal, domain, command))) return this.show(domain)
      domain = await this.find(principal, domainId)
    }
    throw beingChanged('domain', domainId)
  }

  /** Resolves with the former domain once it no longer receives mail on this instance. */
  async remove(principal: Principal, id: string): Promise<ResourceJson> {
    const domain = await this.find(principal, id)
    const { id: domainId, accountId } = domain
    const now = this.instance.now()
    await this.run(principal, domain, { type: 'RemoveDomain', accountId, domainId, now })
    return this.show(domain)
  }

  /** Checks the records now. Resolves with the domain and the results. */
  async verify(principal: Principal, id: string): Promise<ResourceJson> {
    let domain = await this.find(principal, id)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const { environment } = domain
      const checkedAt = await this.checks.check(domain, { ...principal, environment })
      domain = await this.find(principal, id)
      if (checkedAt === null || domain.checkedAt?.getTime() === checkedAt.getTime()) return this.show(domain)
    }
    throw beingChanged('domain', domain.id)
  }

  /** The records in the format of a zone file (RFC 1035, section 5). */
  async zoneFile(principal: Principal, id: string): Promise<string> {
    const domain = await this.find(principal, id)
    const lines = recordsOf(domain, this.mxHost).map(({ type, name, value, priority }) =>
      priority === null
        ? `${name}. 3600 IN ${type} "${value}"`
        : `${name}. 3600 IN ${type} ${priority} ${value}.`,
    )
    return `; DNS records of ${domain.name}\n${lines.map((line) => `${line}\n`).join('')}`
  }

  show(domain: Domain): ResourceJson {
    return domainJson(domain, this.mxHost)
  }

  private nameOf({ name: text, hosted = false }: CreateDomain, label: string): string {
    if (hosted) {
      if (text !== undefined)
        throw invalid({ detail: 'a hosted domain has no name of its own', pointer: '/name' })
      return `${label}.${domainToASCII(this.instance.settings.mailDomain)}`
    }
    if (text === undefined) throw invalid({ detail: 'name or hosted must be given', pointer: '' })
    const read = readDomainName(text, this.recipients.generated)
    if ('error' in read) throw invalid({ detail: `name ${read.error}`, pointer: '/name' })
    return read.name
  }

  /** Throws invalid-request if inboxes would outlive the plan's retention, or there is no such inbox to deliver to. */
  private async readCatchAll(
    { accountId, plan }: Principal,
    environment: string,
    { action, inbox_id: inboxId = '', duration, labels = {} }: CatchAllJson,
  ): Promise<CatchAll> {
    if (action === 'reject') return { action }
    if (action === 'create') {
      const lifespan =
        duration === undefined ? null : lifespanOf(duration, plan.retention, '/catch_all/duration')
      return { action, duration: lifespan, labels }
    }
    const row = isId('inb', inboxId)
      ? await this.views.find(inboxId, () => this.views.inboxes.inbox(inboxId))
      : null
    const inbox = row?.inbox
    if (inbox?.accountId !== accountId || inbox.environment !== environment || inbox.state !== 'active') {
      const detail = `there is no active inbox ${inboxId} in the environment ${environment}`
      throw invalid({ detail, pointer: '/catch_all/inbox_id' })
    }
    return { action, inboxId: inbox.id }
  }

  /** Resolves once the events of the command are durable and visible, with whether there are any. */
  private async run(principal: Principal, domain: Domain | null, command: DomainCommand): Promise<boolean> {
    const { events, refusal } = decideDomain(domain, command)
    if (refusal !== null) throw problemOf(refusal, command.domainId)
    const { environment } = domain ?? (command.type === 'RegisterDomain' ? command : principal)
    await this.recorder.record(events, { ...principal, environment })
    return events.length > 0
  }
}

function problemOf(refusal: DomainRefusal, id: string): Problem {
  switch (refusal.code) {
    case 'unknown-domain':
      return noResource('domain', id)
    case 'known-name':
      return new Problem('address-taken', { detail: 'The account already has a domain with this name.' })
  }
}
