import { Injectable } from '@nestjs/common'
import type { Account } from '#libs/domain/account/account.js'
import { decideConsole } from '#libs/domain/account/console-sessions.js'
import { decide } from '#libs/domain/account/decide.js'
import { daysAfter } from '#libs/domain/account/key-expiry.js'
import {
  decideMember,
  hasAccess,
  type Member,
  type MemberCommand,
  type MemberRefusal,
} from '#libs/domain/account/member.js'
import { isId, type MemberId } from '#libs/domain/ids/typeid.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { ALL, type ListQuery } from '#libs/ports/read-model/lists.js'
import { actorOf, missingScope, type Principal } from '../access/principal.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { ConsoleAddress } from '../console/console-address.js'
import { SECRET_BYTES, secretOf } from '../console/console-sessions.service.js'
import { beingChanged, invalid, noResource, unavailable, type Problem } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { QuotaUse } from '../quotas/quota-use.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { readAccess, type ChangeMember, type InviteMember } from './member-requests.dto.js'
import { InvitationMail } from './invitation-mail.js'
import { memberIdOfInvitation, type InvitationLink, type OpenMember } from './member-schemas.js'

/** The members of an account, and those who are invited. */
@Injectable()
export class Members {
  constructor(
    private readonly views: Views,
    private readonly accounts: AccountCommands,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly address: ConsoleAddress,
    private readonly mail: InvitationMail,
    private readonly quotas: QuotaUse,
    private readonly personal: PersonalData,
  ) {}

  /**
   * Resolves once the invitation is durable, and was mailed if that is possible. Of two requests at the same time for one
   * address both may succeed. Throws invalid-request, missing-scope and quota-exceeded.
   */
  async invite(principal: Principal, body: InviteMember, minting: Minting): Promise<InvitationLink> {
    const { accountId, keyId: usageKeyId } = principal
    const account = await this.accounts.find(accountId)
    const memberId = minting.id('mem')
    const token = secretOf(memberId, minting.bytes(SECRET_BYTES))
    const lookups = await this.views.accounts.memberLookups(accountId)
    const now = this.instance.now()
    const known = await this.views.accounts.member(memberId)
    if (known === null) await this.quotas.require(accountId, 'members')
    const invitation = {
      ...{ type: 'InviteMember' as const, accountId, memberId, ...readAccess(body.role, body) },
      ...{ actor: actorOf(principal, account), usageKeyId, tokenHash: hashSecret(token) },
      isKnown: this.personal.emailLookups(body.email).some((lookup) => lookups.includes(lookup)),
      ...{ expiresAt: daysAfter(now, parseInt(body.expires_in, 10)), now },
    }
    // Nothing gets a key that is refused.
    const { refusal } = decideMember({ member: known, owners: account.owners }, { ...invitation, email: '' })
    if (refusal !== null) throw problemOf(refusal, memberId)
    const email = known?.email ?? (await this.personal.sealEmail(memberId, body.email))
    await this.run(principal, account, { ...invitation, email })
    const member = await this.findRecorded(memberId)
    // Its author may have lost the role meanwhile, or a repeated request comes after its use.
    if (member.state !== 'invited') throw problemOf({ code: 'unknown-invitation' }, memberId)
    return this.withLink(account, member, token)
  }

  /**
   * Resolves with the invitation and its new link. The former one is then invalid. Throws not-found, invalid-request,
   * missing-scope and busy.
   */
  async renew(
    principal: Principal,
    id: string,
    body: Pick<InviteMember, 'expires_in'>,
    minting: Minting,
  ): Promise<InvitationLink> {
    const { id: memberId, accountId } = await this.invitation(principal, id)
    const account = await this.accounts.find(accountId)
    const token = secretOf(memberId, minting.bytes(SECRET_BYTES))
    const tokenHash = hashSecret(token)
    const now = this.instance.now()
    const expiresAt = daysAfter(now, parseInt(body.expires_in, 10))
    const command = { type: 'RenewInvitation', accountId, memberId, tokenHash } as const
    const actor = actorOf(principal, account)
    await this.run(principal, account, { ...command, actor, expiresAt, now })
    const member = await this.findRecorded(memberId)
    if (member.tokenHash !== tokenHash) throw beingChanged('member', memberId)
    return this.withLink(account, member, token)
  }

  /** A repeat changes nothing. Throws not-found, missing-scope, invalid-request if it was used, and busy. */
  async revoke(principal: Principal, id: string): Promise<OpenMember> {
    const { id: memberId, accountId, email } = await this.open(await this.invitation(principal, id))
    const account = await this.accounts.find(accountId)
    const command = { type: 'RevokeInvitation', accountId, memberId, now: this.instance.now() } as const
    await this.run(principal, account, { ...command, actor: actorOf(principal, account) })
    const revoked = await this.findRecorded(memberId)
    if (revoked.state !== 'revoked') throw beingChanged('member', memberId)
    return { ...revoked, email }
  }

  list({ accountId }: Principal, state: 'active' | 'invited', query: ListQuery<MemberId>): Promise<Member[]> {
    return this.views.readAccounts((accounts) => accounts.listMembers(accountId, { state, ...query }))
  }

  /** Throws not-found, also for somebody who has not joined or was removed. */
  async get(principal: Principal, id: string): Promise<Member> {
    const member = await this.find(principal, id)
    if (member?.state !== 'active') throw noResource('member', id)
    return member
  }

  /** Throws not-found. */
  async invitation(principal: Principal, id: string): Promise<Member> {
    const member = isId('inv', id) ? await this.find(principal, memberIdOfInvitation(id)) : null
    if (member === null) throw noResource('invitation', id)
    return member
  }

  /** Throws not-found, invalid-request, missing-scope and busy. */
  async change(principal: Principal, id: string, body: ChangeMember): Promise<Member> {
    const member = await this.get(principal, id)
    const account = await this.accounts.find(member.accountId)
    const wanted = readAccess(body.role ?? member.role, body, member)
    const ids = { accountId: account.id, memberId: member.id }
    const command = { type: 'ChangeMember', ...ids, ...wanted, now: this.instance.now() } as const
    await this.run(principal, account, { ...command, actor: actorOf(principal, account) })
    const changed = await this.get(principal, id)
    if (!hasAccess(changed, wanted)) throw beingChanged('member', member.id)
    return changed
  }

  /**
   * Removes a member, its personal keys, and the links that it has made for others. Resolves with the ids of the keys that the
   * member has issued, once nothing of it works on this instance. A repeat completes it. Throws not-found, missing-scope,
   * invalid-request for the last owner, and busy.
   */
  async remove(principal: Principal, id: string) {
    const member = await this.find(principal, id)
    if (member === null) throw noResource('member', id)
    const { accountId, id: memberId } = member
    // Erased once the member is removed.
    const { email } = await this.open(member)
    const before = await this.accounts.find(accountId)
    const now = this.instance.now()
    const actor = actorOf(principal, before)
    await this.run(principal, before, { type: 'RemoveMember', accountId, memberId, actor, now })
    const recorded = await this.findRecorded(memberId)
    if (recorded.state !== 'removed') throw beingChanged('member', memberId)
    const removed = { ...recorded, email }
    const account = await this.accounts.find(accountId)
    const [active, issued, invited] = await this.views.readAccounts((accounts) =>
      Promise.all([
        accounts.activeKeys(accountId),
        accounts.listKeys(memberId, ALL),
        accounts.listMembers(accountId, { ...ALL, state: 'invited' }),
      ]),
    )
    const own = active.filter(({ createdBy }) => createdBy === memberId).map((key) => key.id)
    const personal = issued.filter((key) => own.includes(key.id))
    const events = [
      ...personal.flatMap((key) => {
        const command = {
          type: 'RevokeApiKey',
          accountId,
          keyId: key.id,
          revokedBy: principal.keyId,
          now,
        } as const
        return decide({ account, key }, command).events
      }),
      ...invited
        .filter(({ offeredBy }) => offeredBy === memberId)
        .flatMap((each) => {
          const command = { type: 'RevokeInvitation', accountId, memberId: each.id, actor, now } as const
          return decideMember({ member: each, owners: account.owners }, command).events
        }),
      ...account.consoleSessions
        .filter(({ offeredBy }) => offeredBy === memberId)
        .flatMap(({ id: sessionId }) => {
          return decideConsole(account, { type: 'EndConsoleSession', sessionId, now }).events
        }),
    ]
    await this.recorder.record(events, principal)
    const revokedKeys = personal.map((key) => key.id)
    const serviceKeys = own.filter((id) => !revokedKeys.includes(id))
    return { member: removed, revokedKeys, serviceKeys }
  }

  /**
   * A member for whom the caller may make a link to sign in: itself, for an owner any other one, and for an operator one of any
   * account. Throws not-found and missing-scope.
   */
  async forLink(principal: Principal, id: string): Promise<Member> {
    if (principal.scopes.includes('operator') && isId('mem', id)) {
      const member = await this.views.readAccounts((accounts) => accounts.member(id))
      if (member?.state === 'active') return member
    }
    const member = await this.get(principal, id)
    const account = await this.accounts.find(member.accountId)
    if (principal.member?.id === member.id || actorOf(principal, account).isOwner) return member
    throw missingScope('Only an owner can make a link for another member.', [])
  }

  async open(member: Member): Promise<OpenMember> {
    return { ...member, email: await this.personal.show(member.id, member.email) }
  }

  private async withLink(account: Account, member: Member, token: string): Promise<InvitationLink> {
    const url = this.address.linkWith(token)
    const [opened, name] = await Promise.all([
      this.open(member),
      this.personal.show(account.id, account.name),
    ])
    return { member: opened, url, isMailed: await this.mail.send({ id: account.id, name }, opened, url) }
  }

  /** Null for an id of another account. */
  private async find({ accountId }: Principal, id: string): Promise<Member | null> {
    const member = isId('mem', id) ? await this.views.readAccounts((accounts) => accounts.member(id)) : null
    return member?.accountId === accountId ? member : null
  }

  /** It is missing only if the views were lost in the meantime and are being rebuilt. */
  private async findRecorded(id: MemberId): Promise<Member> {
    const member = await this.views.accounts.member(id)
    if (member === null) throw unavailable('catching-up', `The member ${id} can't be read yet.`)
    return member
  }

  private async run(principal: Principal, { owners }: Account, command: MemberCommand): Promise<void> {
    const member = await this.views.accounts.member(command.memberId)
    const { events, refusal } = decideMember({ member, owners }, command)
    if (refusal !== null) throw problemOf(refusal, command.memberId)
    await this.recorder.record(events, principal)
  }
}

function problemOf(refusal: MemberRefusal, memberId: MemberId): Problem {
  switch (refusal.code) {
    case 'unknown-member':
      return noResource('member', memberId)
    case 'unknown-invitation':
    case 'invalid-link':
      return invalid({ detail: 'the invitation was revoked: invite again', parameter: 'invitationId' })
    case 'invitation-used':
      return invalid({ detail: 'the invitation was used', parameter: 'invitationId' })
    case 'known-email':
      return invalid({
        detail: 'email belongs to a member, or to an invitation that was not used',
        pointer: '/email',
      })
    case 'not-restrictable':
      return invalid({
        detail: `a member with the role ${refusal.role} can use all environments`,
        pointer: '/environments',
      })
    case 'always-reads-mail':
      return invalid({
        detail: `a member with the role ${refusal.role} always has the permission content:read`,
        pointer: '/permissions',
      })
    case 'last-owner':
      return invalid({ detail: 'the account needs another owner first', pointer: '' })
    case 'has-identity':
      return invalid({ detail: 'the member signs in with another identity', pointer: '' })
    case 'own-access':
      return missingScope('Members cannot change what they may do themselves.', [])
    case 'not-an-owner':
      return missingScope('Only an owner can make somebody an owner, or change an owner.', [])
    case 'beyond-own-access':
      return missingScope(
        `The caller can't give what it does not have itself: ${refusal.missing.join(', ')}.`,
        refusal.missing,
      )
  }
}
