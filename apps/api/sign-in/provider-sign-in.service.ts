import { hash } from 'node:crypto'
import { Inject, Injectable } from '@nestjs/common'
import Type from 'typebox'
import { decideMember, isMember, type Member, type MemberCommand } from '#libs/domain/account/member.js'
import { deriveId } from '#libs/domain/ids/mint.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { domainOf } from '#libs/mail/mailbox.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { ProviderConfig } from '#libs/runtime/config/providers-file.js'
import { KnownKeys, type KnownSession } from '../access/key-lookup.js'
import { SignedTokens } from '../access/signed-tokens.js'
import { ConsoleSessions, type SignedIn } from '../console/console-sessions.service.js'
import { invalid, noResource, Problem } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { QuotaUse } from '../quotas/quota-use.js'
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
    private readonly quotas: QuotaUse,
    private readonly personal: PersonalData,
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
   * Resolves with a session of the member that the provider has identified, or that it was connected to. Throws sign-in-failed
   * if the answer of the provider does not belong to the token or is not valid; rate-limited after too many such answers from
   * the address; not-invited if the person is no member of any account; invalid-request if the identity can't be connected;
   * and what `startOf` throws.
   */
  async finish(
    name: string,
    url: URL,
    token: string | null,
    remoteAddress: string,
  ): Promise<{ started: SignedIn; isConnected: boolean }> {
    const provider = this.providers.named(name)
    const attempt = token === null ? null : this.attempts.verify(token, this.instance.now())
    // Not counted as a failure of the address: pages of other sites can make a browser send such requests.
    if (provider === null || attempt?.provider !== name) throw failed()
    const { connecting } = attempt
    return this.sessions.limitFailures(remoteAddress, async () => {
      const person = await this.providers.finish(provider, url, attempt)
      if (person === null) throw failed()
      if (connecting !== null) {
        return { started: await this.connect(provider, person, connecting), isConnected: true }
      }
      return { started: await this.signIn(provider, person), isConnected: false }
    })
  }

  private async signIn(provider: ProviderConfig, person: Person): Promise<SignedIn> {
    let refusal =
      (await this.join(provider, person)) ??
      new Problem('not-invited', {
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

  /** The other accounts of the person who has signed in with a provider, those that the person has joined first. */
  async otherAccounts(known: KnownSession): Promise<{ id: AccountId; name: string | null }[]> {
    const others = await this.othersOf(known)
    const found = await this.views.readAccounts((views) =>
      Promise.all(others.map(({ accountId }) => views.account(accountId))),
    )
    const open = found.filter((each) => each !== null).filter(({ suspendedAt }) => suspendedAt === null)
    return Promise.all(open.map(async ({ id, name }) => ({ id, name: await this.personal.show(id, name) })))
  }

  /** Replaces the session by one of another account of the person. Throws not-found and what `startOf` throws. */
  async switch(known: KnownSession, accountId: string): Promise<SignedIn> {
    const wanted = (await this.othersOf(known)).find((member) => member.accountId === accountId)
    if (wanted === undefined) throw noResource('account', accountId)
    const started = await this.sessions.startOf(wanted)
    await this.sessions.end(known, known.session.id)
    return started
  }

  /** Nothing for a session that a link or a key has started: who has made it need not be the person. */
  private async othersOf({ account, session, member }: KnownSession): Promise<Member[]> {
    const identity = session.isIdentified ? (member?.identity ?? null) : null
    if (identity === null) return []
    const members = await this.people('active', [identity.hash])
    return members.filter(
      ({ accountId }) => accountId !== account.id && this.providers.allows(identity, accountId),
    )
  }

  /**
   * Those of the identity, with the roles that the provider says. Those that can be used are first, and the oldest of them.
   */
  private async membershipsOf(provider: ProviderConfig, { identity, role }: Person): Promise<Member[]> {
    if (role !== null) {
      for (const { id: memberId, accountId } of await this.people('active', [identity.hash])) {
        if (!mayUse(provider, accountId)) continue
        await this.run({ type: 'SetRoleFromProvider', accountId, memberId, role, now: this.instance.now() })
      }
    }
    const rank = ({ environments, joinedAt }: Member) =>
      environments?.length === 0 ? Infinity : (joinedAt?.getTime() ?? 0)
    return (await this.people('active', [identity.hash]))
      .filter(({ accountId }) => mayUse(provider, accountId))
      .sort((one, other) => (rank(one) < rank(other) ? -1 : 1))
  }

  /**
   * Joins the account of the domain of the person's address, and uses the invitations to that address. Resolves with why the
   * account of the domain can't have another member, if so.
   */
  private async join(provider: ProviderConfig, person: Person): Promise<Problem | null> {
    const { identity, email } = person
    if (email === null) return null
    const now = this.instance.now()
    // One with the hash of the identity is half of an admission.
    const invitations = (await this.people('invited', this.personal.emailLookups(email))).filter(
      ({ expiresAt, tokenHash }) => expiresAt > now && tokenHash !== identity.hash,
    )
    const isInvitedTo = (id: AccountId) => invitations.some(({ accountId }) => accountId === id)
    const refusal = await this.admit(provider, { ...person, email }, isInvitedTo).then(
      () => null,
      (error: unknown) => {
        if (error instanceof Problem && error.code === 'quota-exceeded') return error
        throw error
      },
    )
    const joined = new Set((await this.people('active', [identity.hash])).map(({ accountId }) => accountId))
    for (const { id: memberId, accountId, offeredBy } of invitations) {
      if (joined.has(accountId) || !mayUse(provider, accountId)) continue
      const inviter = isMember(offeredBy) ? await this.views.accounts.member(offeredBy) : null
      const command = { type: 'UseInvitation', accountId, memberId, inviter, session: null } as const
      const isRefused = await this.run({ ...command, proof: { identity }, now })
      if (!isRefused) joined.add(accountId)
    }
    return refusal
  }

  /** Makes the person a member of the account that has verified the domain of the address. Throws quota-exceeded. */
  private async admit(
    provider: ProviderConfig,
    { identity, email, role }: Person & { email: string },
    isInvitedTo: (id: AccountId) => boolean,
  ): Promise<void> {
    const domain = await this.views.readAccounts((views) => views.domainHolding(domainOf(email) ?? ''))
    if (domain?.state !== 'verified' || domain.isHosted || !mayUse(provider, domain.accountId)) return
    const { accountId } = domain
    // Whoever is a member with that address connects the identity; whoever was removed must be invited.
    const known = await Promise.all(
      (['active', 'removed'] as const).map((state) =>
        this.people(state, [identity.hash, ...this.personal.emailLookups(email)]),
      ),
    )
    if (isInvitedTo(accountId) || known.flat().some((member) => member.accountId === accountId)) return
    const account = await this.views.accounts.account(accountId)
    const [key] = await this.views.accounts.activeKeys(accountId)
    if (account === null || account.suspendedAt !== null || key === undefined) return
    // Derived, so that of two attempts at the same time only one admits the person.
    const seed = Buffer.from(hash('sha256', accountId + identity.hash), 'hex')
    const memberId = deriveId('mem', { seed, firstAtMs: account.openedAt.getTime() }, 1)
    const member = await this.views.accounts.member(memberId)
    if (member === null) await this.quotas.require(accountId, 'members')
    const sealed = member?.email ?? (await this.personal.sealEmail(memberId, email))
    const command = { type: 'AdmitMember', accountId, memberId, email: sealed, identity, role } as const
    await this.run({ ...command, usageKeyId: key.id, now: this.instance.now() })
  }

  /** Replaces the session by one with the identity. Throws sign-in-failed if it has ended meanwhile, and invalid-request. */
  private async connect(
    provider: ProviderConfig,
    { identity }: Person,
    [accountId, sessionId]: [string, string],
  ): Promise<SignedIn> {
    const isWellFormed = isId('acc', accountId) && isId('ses', sessionId)
    const known = isWellFormed ? await this.knownKeys.session(accountId, sessionId) : null
    if (known?.member == null) throw failed()
    const { account, member, session } = known
    const others = await this.people('active', [identity.hash])
    // A session by a link that another member or a key has made may be that of somebody else.
    const isOwnSession = session.offeredBy === null
    const isFree = others.every((each) => each.accountId !== account.id || each.id === member.id)
    const ids = { accountId: account.id, memberId: member.id }
    if (isOwnSession && isFree && mayUse(provider, account.id)) {
      await this.run({ type: 'IdentifyMember', ...ids, identity, now: this.instance.now() })
    }
    const connected = await this.views.accounts.member(member.id)
    // Of two attempts at the same time, the first on the log counts.
    if (connected?.identity?.hash !== identity.hash) {
      const detail = 'the identity belongs to another member, or the member has another one'
      throw invalid({ detail, pointer: '' })
    }
    const started = await this.sessions.startOf(connected)
    await this.sessions.end(known, session.id)
    return started
  }

  private people(state: Member['state'], lookups: readonly string[]): Promise<Member[]> {
    return this.views.readAccounts((views) => views.people(state, lookups))
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
    // A role that the provider says is nobody's choice in the account.
    const actor =
      command.type === 'SetRoleFromProvider' ? { keyId: null } : { keyId: key.id, actor: memberId }
    const by = { accountId, environment: key.environment, ...actor }
    for (const event of events) await this.recorder.record([event], by)
    return refusal !== null
  }
}

function failed(): Problem {
  return new Problem('sign-in-failed', {
    detail: 'The identity provider did not confirm who you are, or it took too long.',
  })
}
