import { Body, Controller, Get, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common'
import { IsBoolean, IsString } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ConsoleAddress, SameOriginGuard } from '../console/console-address.js'
import { ConsoleSessions } from '../console/console-sessions.service.js'
import { clientAddress } from '../http/connection-limits.js'
import { Reply } from '../http/headers.js'
import { noResource, Problem } from '../http/problems.js'
import { IfGiven } from '../http/rules.js'
import { AcceptAnyQuery } from '../http/validation.js'
import { IdentityProviders } from './identity-providers.js'
import { ATTEMPT_MS, ProviderSignIn } from './provider-sign-in.service.js'

class StartSignIn {
  /** Whether the member who is signed in wants to sign in with the provider from now on. */
  @IfGiven()
  @IsBoolean({ message: 'connect must be true or false' })
  connect?: boolean
}

class SwitchAccount {
  @IsString({ message: 'account_id must be the id of an account' })
  account_id!: string
}

/** Signing in to the console with an identity provider, for browsers. Not part of the documented API. */
@Controller('console')
export class ProviderSignInController {
  constructor(
    private readonly providers: IdentityProviders,
    private readonly signIn: ProviderSignIn,
    private readonly sessions: ConsoleSessions,
    private readonly address: ConsoleAddress,
  ) {}

  @Get('providers')
  @UseGuards(SameOriginGuard)
  list() {
    return this.providers.all.map(({ name, title }) => ({ name, title }))
  }

  /** The page goes to the URL of the answer. */
  @Post('sign-in/:provider')
  @HttpCode(200)
  @UseGuards(SameOriginGuard)
  async start(
    @Param('provider') name: string,
    @Body() { connect: isConnecting = false }: StartSignIn,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ) {
    const provider = this.providers.named(name)
    if (provider === null) throw noResource('identity provider', name)
    const connecting = isConnecting ? await this.sessions.find(request) : null
    const started = await this.signIn.start(provider, this.redirectUri(request, name), connecting)
    void reply.header('set-cookie', this.address.setCookie(started.token, ATTEMPT_MS, 'attempt'))
    return { url: started.url }
  }

  /** The provider sends the browser here. Always answers with the page of the console, and never with another address. */
  @Get('sign-in/:provider/callback')
  @AcceptAnyQuery()
  @HttpCode(303)
  async finish(
    @Param('provider') name: string,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ): Promise<void> {
    const query = new URL(request.url, 'http://localhost').search
    const url = new URL(this.redirectUri(request, name) + query)
    const attempt = this.address.cookieOf(request, 'attempt')
    void reply.header('set-cookie', this.address.setCookie('', 0, 'attempt'))
    try {
      const { started, isConnected } = await this.signIn.finish(name, url, attempt, clientAddress(request))
      this.sessions.setCookie(reply, started)
      void reply.header('location', isConnected ? '/console/account' : '/console')
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      // Only a code, so that no link can make the page show a text.
      void reply.header('location', `/console#sign-in-error=${error.code}`)
    }
  }

  /** The other accounts of the person who is signed in. */
  @Get('accounts')
  @UseGuards(SameOriginGuard)
  async accounts(@Req() request: FastifyRequest) {
    return this.signIn.otherAccounts(await this.sessions.find(request))
  }

  @Post('accounts')
  @HttpCode(204)
  @UseGuards(SameOriginGuard)
  async switch(
    @Body() { account_id: accountId }: SwitchAccount,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ): Promise<void> {
    this.sessions.setCookie(reply, await this.signIn.switch(await this.sessions.find(request), accountId))
  }

  private redirectUri(request: FastifyRequest, name: string): string {
    return `${this.address.requireOrigin(request)}/console/sign-in/${name}/callback`
  }
}
