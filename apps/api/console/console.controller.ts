import { Body, Controller, Delete, Get, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common'
import { IsBoolean, IsString, Matches, MaxLength } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ENVIRONMENT } from '#libs/domain/account/access.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { scopesOfSession } from '../access/authenticator.js'
import { ConsoleTokens } from '../access/console-tokens.js'
import type { KnownSession } from '../access/key-lookup.js'
import { Accounts } from '../accounts/accounts.service.js'
import { clientAddress } from '../http/connection-limits.js'
import { Reply } from '../http/headers.js'
import { invalid, Problem } from '../http/problems.js'
import { IfGiven } from '../http/rules.js'
import { Members } from '../members/members.service.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { IdentityProviders } from '../sign-in/identity-providers.js'
import { ConsoleAddress, SameOriginGuard } from './console-address.js'
import { ConsoleSessions } from './console-sessions.service.js'

/*
 * The console's own requests (docs/console.md). They are not part of the documented API: only the console sends them, and
 * they read a cookie, which the API never does.
 */

class SignIn {
  @MaxLength(300, { message: 'secret may have at most 300 characters' })
  @IsString({ message: 'secret must be a text' })
  secret!: string

  /** Whether to replace a session that another key has started. */
  @IfGiven()
  @IsBoolean({ message: 'replace must be true or false' })
  replace?: boolean
}

class CreateLink {
  /** The member who is to use the link. Default: who makes the request, if it is a member. */
  @IfGiven()
  @IsString({ message: 'member_id must be the id of a member' })
  member_id?: string
}

class TradeSession {
  @IfGiven()
  @Matches(ENVIRONMENT, { message: 'environment must be the name of an environment' })
  environment?: string
}

/** Links to sign in with, for holders of a key. */
@Controller('console/links')
export class ConsoleLinksController {
  constructor(
    private readonly sessions: ConsoleSessions,
    private readonly members: Members,
    private readonly address: ConsoleAddress,
  ) {}

  @Post()
  @RequireScope('admin')
  async create(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() { member_id: wanted = principal.member?.id }: CreateLink,
  ) {
    const member = wanted === undefined ? null : await this.members.forLink(principal, wanted)
    const { secret, expiresAt } = await this.sessions.createLink(principal, member, minting)
    return { url: this.address.linkWith(secret), expires_at: expiresAt.toISOString() }
  }
}

/** Sessions, for the browser that has the cookie. */
@Controller('console')
@UseGuards(SameOriginGuard)
export class ConsoleController {
  constructor(
    private readonly sessions: ConsoleSessions,
    private readonly tokens: ConsoleTokens,
    private readonly accounts: Accounts,
    private readonly address: ConsoleAddress,
    private readonly instance: Instance,
    private readonly providers: IdentityProviders,
  ) {}

  @Post('sign-in')
  @HttpCode(200)
  async signIn(
    @Body() { secret, replace: isReplacing = false }: SignIn,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ) {
    const currentSecret = isReplacing ? null : this.address.cookieOf(request)
    const started = await this.sessions.signIn(secret, clientAddress(request), currentSecret)
    this.sessions.setCookie(reply, started)
    const { session } = started.known
    return { session: sessionJson(session), environments: await this.environmentsOf(started.known) }
  }

  /** Trades the cookie for a bearer token, which gives access to one environment. */
  @Post('session')
  @HttpCode(200)
  async trade(@Body() { environment: wanted }: TradeSession, @Req() request: FastifyRequest) {
    const known = await this.sessions.find(request)
    const { account, session, key, member } = known
    const environments = await this.environmentsOf(known)
    const [first = key.environment] = environments
    const [name, email] = await this.sessions.namesOf(known)
    if (environments.length === 0) {
      const detail = `${email ?? 'The key'} can't use any environment of the account ${name}.`
      throw new Problem('no-role', { detail })
    }
    const environment = wanted ?? (environments.includes(key.environment) ? key.environment : first)
    if (!environments.includes(environment)) {
      const detail = `environment must be one of ${environments.join(', ')}`
      throw invalid({ detail, pointer: '/environment' })
    }
    const { id: sessionId } = session
    const { token, expiresAt } = this.tokens.issue({ accountId: account.id, sessionId, environment })
    return {
      token,
      expires_at: expiresAt.toISOString(),
      environment,
      environments,
      session: sessionJson(session),
      member: member && {
        ...{ id: member.id, email, role: member.role },
        issuer: member.identity?.issuer ?? null,
        environments: member.environments,
      },
      scopes: scopesOfSession(member),
      account: { id: account.id, name, plan: account.plan },
      smtp_port: this.instance.smtpPort(),
      mail_domain: this.instance.settings.mailDomain,
    }
  }

  @Get('sessions')
  async list(@Req() request: FastifyRequest) {
    const known = await this.sessions.find(request)
    const sessions = await this.sessions.list(known)
    return sessions.map((session) => ({
      ...sessionJson(session),
      created_at: session.createdAt.toISOString(),
      key_id: session.keyId,
      member_id: session.memberId,
      current: session.id === known.session.id,
    }))
  }

  @Delete('sessions/:sessionId')
  @HttpCode(204)
  async end(@Param('sessionId') sessionId: string, @Req() request: FastifyRequest) {
    await this.sessions.end(await this.sessions.find(request), sessionId)
  }

  /** The page then goes to the URL of the answer, if it has one, to sign out of the identity provider too. */
  @Delete('session')
  async signOut(@Req() request: FastifyRequest, @Reply() reply: FastifyReply) {
    const known = await this.sessions.find(request)
    const returnUri = `${this.address.requireOrigin(request)}/console`
    await this.sessions.end(known, known.session.id)
    void reply.header('set-cookie', this.address.setCookie('', 0))
    const identity = known.session.isIdentified ? (known.member?.identity ?? null) : null
    const url = await this.providers.signOutUrl(identity, returnUri)
    if (url !== null) return { url }
    void reply.status(204)
    return undefined
  }

  @Delete('sessions')
  @HttpCode(204)
  async endAll(@Req() request: FastifyRequest, @Reply() reply: FastifyReply) {
    await this.sessions.endAll(await this.sessions.find(request))
    void reply.header('set-cookie', this.address.setCookie('', 0))
  }

  /** Those of the account, and of a member who is restricted to some, these. */
  private async environmentsOf({ account, member }: KnownSession): Promise<readonly string[]> {
    return member?.environments ?? (await this.accounts.valuesOf(account)).environments
  }
}

function sessionJson({ id, expiresAt }: KnownSession['session']) {
  return { id, expires_at: expiresAt.toISOString() }
}
