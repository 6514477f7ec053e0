import { Inject, Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import type { Engine } from '#libs/engines/engine.js'
import { canBeChosen, domainOf } from '#libs/mail/mailbox.js'
import { createOnce } from '#libs/ports/idempotency/create-once.js'
import { isOfFormerOwner, RecipientDomains, type DomainOwner } from '#libs/role/recipient-domains.js'
import type { Principal } from '../access/principal.js'
import { invalid, Problem, unavailable } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { ENGINE, Instance } from '../instance.js'
import { Views } from '../views.js'
import { addressNotAllowed, type ChosenAddress } from './inbox-requests.dto.js'
import { Inboxes, type Created, type NewInbox } from './inboxes.service.js'

/** Creates inboxes with addresses that their creators choose. */
@Injectable()
export class ChosenAddresses {
  constructor(
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'idempotency'>,
    private readonly views: Views,
    private readonly domains: RecipientDomains,
    private readonly inboxes: Inboxes,
    private readonly instance: Instance,
  ) {}

  /**
   * Creates the inbox of an address, of which there is at most one active inbox. An address whose inbox has ended can be
   * used again. Throws as `Inboxes.create` does, and invalid-request, domain-not-verified, address-taken and catching-up.
   */
  async create(
    principal: Principal,
    minting: Minting,
    wanted: NewInbox,
    { address, pointer }: ChosenAddress,
  ): Promise<Created> {
    const owner = await this.requireDomain(principal, address)
    // A repeat of the request has the same claim, and so knows the inbox that an earlier run has created.
    const claim = minting.id('inb')
    const create = (inboxId: InboxId) =>
      this.inboxes.create(principal, minting, { ...wanted, chosen: { inboxId, address, claim } })
    const { inboxes } = this.views
    const found = await this.views.find('inbox-events', () => inboxes.inboxAt(address))
    if (found === null && !canBeChosen(address)) throw addressNotAllowed(pointer)
    const current = found === null ? null : asOf(found.inbox, this.instance.now())
    if (current?.state === 'active' && !isOfFormerOwner(current, owner)) {
      if ((await this.claimOf(principal, current)) === claim) return create(current.id)
      throw taken(address)
    }
    const outcome = await createOnce(
      { address, previous: current?.id ?? null },
      {
        idempotency: this.engine.idempotency,
        inboxes,
        create: (inboxId) => create(inboxId).catch(refusalOf),
        isCreated: (created: Created | Problem) => !(created instanceof Problem),
      },
    )
    if (outcome === null) throw unavailable('catching-up', `The inbox of ${address} is being created.`)
    if (outcome instanceof Problem) throw outcome
    // The inbox of another request, which may have been killed after it had created it.
    if (!('details' in outcome) || outcome.details.claim !== claim) throw taken(address)
    return outcome
  }

  /** Resolves with the owner of the domain, who is the caller. */
  private async requireDomain({ accountId, environment }: Principal, address: Address): Promise<DomainOwner> {
    const { domains } = this
    const domain = domainOf(address) ?? ''
    const owner = await domains.ownerOf(domain)
    if (owner === 'generated') {
      const detail = `addresses in ${domain} are generated: leave out the address`
      throw invalid({ detail, pointer: '' })
    }
    const isCallers =
      typeof owner === 'object'
        ? owner.state === 'verified' && owner.accountId === accountId && owner.environment === environment
        : (owner === 'first-account' || domains.unknownRecipients === 'create') &&
          (await domains.firstAccount()) === accountId
    if (isCallers) return owner
    throw new Problem('domain-not-verified', {
      detail: `${domain} is not a verified domain of this account and environment.`,
    })
  }

  /** Of an inbox that the caller may read; undefined otherwise, and for a generated address. */
  private async claimOf({ accountId, environment }: Principal, inbox: Inbox): Promise<string | undefined> {
    if (inbox.state !== 'active' || inbox.accountId !== accountId) return undefined
    if (inbox.environment !== environment) return undefined
    return (await this.inboxes.details(inbox))?.claim
  }
}

/** An error after which nothing was created. Throws any other. */
function refusalOf(error: unknown): Problem {
  if (error instanceof Problem && error.status < 500) return error
  throw error
}

function taken(address: Address): Problem {
  return new Problem('address-taken', {
    detail: `An inbox of this or another environment has the address ${address}.`,
  })
}
