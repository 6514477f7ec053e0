import { hash } from 'node:crypto'
import { Inject, Injectable } from '@nestjs/common'
import Type from 'typebox'
import type { Account } from '#libs/domain/account/account.js'
import { decideMember, isMember, type Member, type MemberCommand } from '#libs/domain/account/member.js'
import { deriveId } from '#libs/domain/ids/mint.js'
import { isId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { domainOf } from '#libs/mail/mailbox.js'
import type { ProviderConfig } from '#libs/runtime/config/providers-file.js'
import { KnownKeys, type KnownSession } from '../access/key-lookup.js'
import { SignedTokens } from '../access/signed-tokens.js'
import { ConsoleSessions, type SignedIn } from '../console/console-sessions.service.js'
import { invalid, noResource, Problem } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { CountedQuotas } from '../quotas/counted-quotas.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { IdentityProviders, mayUse, type Person } from './identity-providers.js'

/** The person must be back from the provider within this time. */
export const ATTEMPT_MS = 10 * 60_000

const ATTEMPT = Type.Object({
  provider: Type.String(),
  state: Type.String(),
  nonce: Type.String(),
  verifier: Type.String(),
  /** The account and the session of a member who wants to connect the identity; null for somebody who signs in. */
  connecting: Type.Union([Type.Null(), Type.Tuple([Type.String(), Type.String()])]),
})

/** Signs in people whom an identity provider has identified, as the members that they are. */
@Injectable()
export class ProviderSignIn {
  private readonly attempts

  constructor(
    private readonly providers: IdentityProviders,
    private readonly sessions: ConsoleSessions,
    private readonly knownKeys: KnownKeys,
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
    private readonly quotas: CountedQuotas,
    private readonly instance: Instance,
    @Inject(ENGINE) { secrets }: Pick<Engine, 'secrets'>,
  ) {
    this.attempts = new SignedTokens(secrets, 'sign in with an identity provider', ATTEMPT)
  }

  /** Resolves with the provider's URL, and the token that the browser must send to `finish`. Throws provider-unavailable. */
  async start(
    provider: ProviderConfig,
    redirectUri: string,
    connecting: KnownSession | null,
  ): Promise<{ url: string; token: string }> {
    const { url, attempt } = await this.providers.start(provider, redirectUri)
    const expiresAt = new Date(this.instance.now().getTime() + ATTEMPT_MS)
    const ids = connecting && ([connecting.account.id, connecting.session.id] as [string, string])
    const token = this.attempts.sign({ provider: provider.name, ...attempt, connecting: ids }, expiresAt)
    return { url, token }
  }

  /**
   * Resolves with the session of the member that the provider has identified, or null if it was connected to the member who is
   * signed in. Throws sign-in-failed if the answer of the provider does not belong to the token or is not valid; not-invited if
   * the person is no member of any account; invalid-request if the identity can't be connected; and what `startOf` throws.
   */
  async finish(name: string, url: URL, token: string | null): Promise<SignedIn | null> {
    const provider = this.providers.named(name)
    const attempt = token === null ? null : this.attempts.verify(token, this.instance.now())
    if (provider === null || attempt?.provider !== name) throw failed()
    const person = await this.providers.finish(provider, url, attempt)
    if (person === null) throw failed()
    if (attempt.connecting !== null) {
      await this.connect(provider, person, attempt.connecting)
      return null
    }
    await this.join(provider, person)
    let refusal = new Problem('not-invited', {
      detail: 'No account has a member with this identity, nor an invitation for its verified address.',
    })
    for (const member of await this.membershipsOf(provider, person)) {
      try {
        return await this.sessions.startOf(member)
      } catch (error) {
        // The account may be suspended, and that of the next membership not.
        if (!(error instanceof Problem)) throw error
        refusal = error
      }
    }
    throw refusal
  }

  /** The other accounts of the person who is signed in, those that the person has joined first. */
  async otherAccounts({ account, member }: KnownSession): Promise<Account[]> {
    const others = await this.othersOf(member)
    const found = await Promise.all(
      others.map(({ accountId }) => this.views.readAccounts((views) => views.account(accountId))),
    )
    return found
      .filter((each) => each !== null)
      .filter(({ id, suspendedAt }) => id !== account.id && suspendedAt === null)
  }

  /** Replaces the session by one of another account of the person. Throws not-found and what `startOf` throws. */
  async switch(known: KnownSession, accountId: string): Promise<SignedIn> {
    const wanted = (await this.othersOf(known.member)).find((member) => member.accountId === accountId)
    if (wanted === undefined) throw noResource('account', accountId)
    const started = await this.sessions.startOf(wanted)
    await this.sessions.end(known, known.session.id)
    return started
  }

  private async othersOf(member: Member | null): Promise<Member[]> {
    const identity = member?.identity ?? null
    if (identity === null) return []
    const members = await this.views.readAccounts((views) => views.membersWithIdentity(identity.hash))
    return members.filter(
      ({ id, accountId }) => id !== member?.id && this.providers.allows(identity, accountId),
    )
  }

  /** Those of the identity, the oldest first, with the roles that the provider says. */
  private async membershipsOf(provider: ProviderConfig, { identity, role }: Person): Promise<Member[]> {
    const read = async () => {
      const members = await this.views.readAccounts((views) => views.membersWithIdentity(identity.hash))
      return members
        .filter(({ accountId }) => mayUse(provider, accountId))
        .sort((one, other) => (one.joinedAt?.getTime() ?? 0) - (other.joinedAt?.getTime() ?? 0))
    }
    const members = await read()
    if (role === null) return members
    for (const { id: memberId, accountId } of members) {
      await this.run({ type: 'TakeRole', accountId, memberId, role, now: this.instance.now() })
    }
    return read()
  }

  /** Uses the invitations to the address of the person; or without any membership then, joins the account of its domain. */
  private async join(provider: ProviderConfig, { identity, email, role }: Person): Promise<void> {
    if (email === null) return
    const invitations = await this.views.readAccounts((views) => views.invitationsTo(email))
    const members = await this.views.readAccounts((views) => views.membersWithIdentity(identity.hash))
    const now = this.instance.now()
    for (const { id: memberId, accountId, offeredBy } of invitations) {
      const isMemberAlready = members.some((member) => member.accountId === accountId)
      if (isMemberAlready || !mayUse(provider, accountId)) continue
      const inviter = isMember(offeredBy) ? await this.views.accounts.member(offeredBy) : null
      const command = { type: 'UseInvitation', accountId, memberId, now, inviter, session: null } as const
      await this.run({ ...command, proof: { identity } })
    }
    if ((await this.views.readAccounts((views) => views.membersWithIdentity(identity.hash))).length > 0)
      return
    const domain = await this.views.readAccounts((views) => views.domainHolding(domainOf(email) ?? ''))
    if (domain?.state !== 'verified' || domain.isHosted || !mayUse(provider, domain.accountId)) return
    const { accountId } = domain
    const account = await this.views.accounts.account(accountId)
    const [key] = await this.views.accounts.activeKeys(accountId)
    if (account === null || account.suspendedAt !== null || key === undefined) return
    // Derived, so that of two attempts at the same time only one admits the person, and a removed member does not come back.
    const seed = Buffer.from(hash('sha256', accountId + identity.hash), 'hex')
    const memberId = deriveId('mem', { seed, firstAtMs: account.openedAt.getTime() }, 1)
    if ((await this.views.accounts.member(memberId)) === null) await this.quotas.require(accountId, 'members')
    const command = { type: 'AdmitMember', accountId, memberId, now, email, identity, role } as const
    await this.run({ ...command, usageKeyId: key.id })
  }

  /** Throws sign-in-failed if the session has ended meanwhile, and invalid-request. */
  private async connect(
    provider: ProviderConfig,
    { identity }: Person,
    [accountId, sessionId]: [string, string],
  ): Promise<void> {
    const isForm = isId('acc', accountId) && isId('ses', sessionId)
    const known = isForm ? await this.knownKeys.session(accountId, sessionId) : null
    if (known?.member == null) throw failed()
    const { account, member, session } = known
    const others = await this.views.readAccounts((views) => views.membersWithIdentity(identity.hash))
    // A session by a link that another member has made may be that of the other member.
    const isOwnSession = session.offeredBy === null
    const isFree = others.every((each) => each.accountId !== account.id || each.id === member.id)
    if (!isOwnSession || !isFree || !mayUse(provider, account.id)) {
      throw invalid({
        detail: 'the identity belongs to another member, or may not sign in to the account',
        pointer: '',
      })
    }
    const command = { type: 'IdentifyMember', accountId: account.id, memberId: member.id, identity } as const
    const isRefused = await this.run({ ...command, now: this.instance.now() })
    if (isRefused) throw invalid({ detail: 'the member signs in with another identity', pointer: '' })
  }

  /** Resolves once the events, each in its turn, are durable and apply. Whether the command was refused. */
  private async run(command: MemberCommand): Promise<boolean> {
    const { accountId, memberId } = command
    const [account, member] = await this.views.readAccounts((views) =>
      Promise.all([views.account(accountId), views.member(memberId)]),
    )
    const keyId = command.type === 'AdmitMember' ? command.usageKeyId : member?.usageKeyId
    const key = keyId === undefined ? null : await this.views.accounts.key(keyId)
    if (account === null || key === null || account.suspendedAt !== null) return true
    const { events, refusal } = decideMember({ member, owners: account.owners }, command)
    const by = { accountId, keyId: key.id, environment: key.environment, actor: memberId }
    for (const event of events) await this.recorder.record([event], by)
    return refusal !== null
  }
}

function failed(): Problem {
  return new Problem('sign-in-failed', {
    detail: 'The identity provider did not confirm who you are, or it took too long.',
  })
}
