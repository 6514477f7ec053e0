import { Body, Controller, Delete, Get, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common'
import { IsBoolean, IsString, Matches, MaxLength } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ENVIRONMENT } from '#libs/domain/account/access.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { ConsoleTokens } from '../access/console-tokens.js'
import type { KnownSession } from '../access/key-lookup.js'
import { Accounts } from '../accounts/accounts.service.js'
import { clientAddress } from '../http/connection-limits.js'
import { Reply } from '../http/headers.js'
import { invalid } from '../http/problems.js'
import { IfGiven } from '../http/rules.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
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
    private readonly address: ConsoleAddress,
  ) {}

  @Post()
  @RequireScope('admin')
  async create(@Caller() principal: Principal, @Mint() minting: Minting) {
    const { secret, expiresAt } = await this.sessions.createLink(principal, minting)
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
    const { session } = started.known
    const leftMs = session.expiresAt.getTime() - this.instance.now().getTime()
    void reply.header('set-cookie', this.address.setCookie(started.secret, leftMs))
    return { session: sessionJson(session), environments: await this.environmentsOf(started.known) }
  }

  /** Trades the cookie for a bearer token, which gives access to one environment. */
  @Post('session')
  @HttpCode(200)
  async trade(@Body() { environment: wanted }: TradeSession, @Req() request: FastifyRequest) {
    const known = await this.find(request)
    const { account, session, key } = known
    const environments = await this.environmentsOf(known)
    const environment = wanted ?? key.environment
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
      account: { id: account.id, name: account.name, plan: account.plan },
      smtp_port: this.instance.smtpPort(),
      mail_domain: this.instance.settings.mailDomain,
    }
  }

  @Get('sessions')
  async list(@Req() request: FastifyRequest) {
    const { account, session: current } = await this.find(request)
    const sessions = await this.sessions.list(account)
    return sessions.map((session) => ({
      ...sessionJson(session),
      created_at: session.createdAt.toISOString(),
      key_id: session.keyId,
      current: session.id === current.id,
    }))
  }

  @Delete('sessions/:sessionId')
  @HttpCode(204)
  async end(@Param('sessionId') sessionId: string, @Req() request: FastifyRequest) {
    await this.sessions.end(await this.find(request), sessionId)
  }

  @Delete('session')
  @HttpCode(204)
  async signOut(@Req() request: FastifyRequest, @Reply() reply: FastifyReply) {
    const known = await this.find(request)
    await this.sessions.end(known, known.session.id)
    void reply.header('set-cookie', this.address.setCookie('', 0))
  }

  @Delete('sessions')
  @HttpCode(204)
  async endAll(@Req() request: FastifyRequest, @Reply() reply: FastifyReply) {
    await this.sessions.endAll(await this.find(request))
    void reply.header('set-cookie', this.address.setCookie('', 0))
  }

  private find(request: FastifyRequest): Promise<KnownSession> {
    return this.sessions.find(this.address.cookieOf(request))
  }

  private async environmentsOf({ account }: KnownSession): Promise<readonly string[]> {
    return (await this.accounts.valuesOf(account)).environments
  }
}

function sessionJson({ id, expiresAt }: KnownSession['session']) {
  return { id, expires_at: expiresAt.toISOString() }
}
