import { hash } from 'node:crypto'
import type { ClientAuth, Configuration, CustomFetch } from 'openid-client'
import type { Logger } from 'pino'
import { MAPPED_ROLES, type Identity, type MappedRole } from '#libs/domain/account/member.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ProviderConfig } from '#libs/runtime/config/providers-file.js'
import { messageOf } from '#libs/runtime/errors.js'
import { unavailable } from '../http/problems.js'
import { isEmail } from '../members/member-requests.dto.js'

/** What the browser keeps while the person is at the provider. All are random, and new for each attempt. */
export interface Attempt {
  state: string
  nonce: string
  verifier: string
}

/** Somebody whom a provider has identified. */
export interface Person {
  identity: Identity
  /** Null if the provider does not say that the address was verified. */
  email: string | null
  /** Null if the provider has no claim for it, or no value that stands for a role. */
  role: MappedRole | null
}

const TIMEOUT_SECONDS = 10
const MAX_ANSWER_BYTES = 1024 * 1024
const MAX_LOGGED = 200
/** After that, changed endpoints of a provider apply. Its keys are read again as soon as an unknown one is used. */
const CONFIGURATION_MS = 3_600_000

/**
 * The identity providers of MAYFLY_IDENTITY_PROVIDERS. Signs in with the authorization code flow of OpenID Connect Core 1.0,
 * section 3.1, with PKCE (RFC 7636), state and nonce. The issuer of the answer is checked too, if the provider names it (RFC
 * 9207), and each provider has its own redirect URI, so that an answer of one is never taken for that of another.
 */
export class IdentityProviders {
  private readonly discovered = new Map<string, { configuration: Promise<Configuration>; readAtMs: number }>()

  constructor(
    readonly all: readonly ProviderConfig[],
    private readonly now: () => Date,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  named(name: string): ProviderConfig | null {
    return this.all.find((provider) => provider.name === name) ?? null
  }

  /** Whether an identity of that issuer may sign in to the account, as configured now. */
  allows(identity: Identity | null, accountId: AccountId): boolean {
    const provider = this.providerOf(identity)
    return provider !== undefined && mayUse(provider, accountId)
  }

  private providerOf(identity: Identity | null): ProviderConfig | undefined {
    return this.all.find(({ issuer }) => issuer === identity?.issuer)
  }

  /** The URL at which the person signs in. Throws provider-unavailable. */
  async start(provider: ProviderConfig, redirectUri: string): Promise<{ url: string; attempt: Attempt }> {
    const oidc = await import('openid-client')
    const attempt = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    }
    const { state, nonce } = attempt
    try {
      const configuration = await this.discover(provider)
      const url = oidc.buildAuthorizationUrl(configuration, {
        ...{ redirect_uri: redirectUri, scope: provider.scope, state, nonce },
        code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, attempt }
    } catch (error) {
      this.failed(provider, error)
      throw unavailable(
        'provider-unavailable',
        `${provider.title} can't be reached, or is not configured well.`,
      )
    }
  }

  /**
   * Trades the code in the URL that the provider has sent the browser to. Null if the provider has refused, its answer is not
   * valid, or it can't be reached; the log says why.
   */
  async finish(
    provider: ProviderConfig,
    url: URL,
    { state, nonce, verifier }: Attempt,
  ): Promise<Person | null> {
    const oidc = await import('openid-client')
    try {
      const configuration = await this.discover(provider)
      const tokens = await oidc.authorizationCodeGrant(configuration, url, {
        ...{ pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce },
      })
      const token = tokens.claims()
      if (token === undefined) throw new Error('the answer has no ID token')
      // Many providers have the address only there (OpenID Connect Core 1.0, section 5.4).
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
      const info = hasUserInfo ? await oidc.fetchUserInfo(configuration, tokens.access_token, token.sub) : {}
      return personOf(provider, token, info)
    } catch (error) {
      // The person may have cancelled.
      if (error instanceof oidc.AuthorizationResponseError) this.warn(provider, error)
      else this.failed(provider, error)
      return null
    }
  }

  /** The URL that ends the session at the provider too (RP-Initiated Logout 1.0, section 2); null if it has none. */
  async signOutUrl(identity: Identity | null, returnUri: string): Promise<string | null> {
    const provider = this.providerOf(identity)
    if (provider === undefined) return null
    try {
      const configuration = await this.discover(provider)
      if (configuration.serverMetadata().end_session_endpoint === undefined) return null
      const { buildEndSessionUrl } = await import('openid-client')
      const parameters = { client_id: provider.clientId, post_logout_redirect_uri: returnUri }
      return buildEndSessionUrl(configuration, parameters).href
    } catch (error) {
      this.failed(provider, error)
      return null
    }
  }

  private discover(provider: ProviderConfig): Promise<Configuration> {
    const { name } = provider
    const nowMs = this.now().getTime()
    const known = this.discovered.get(name)
    if (known !== undefined && nowMs - known.readAtMs < CONFIGURATION_MS) return known.configuration
    const configuration = discover(provider)
    this.discovered.set(name, { configuration, readAtMs: nowMs })
    configuration.catch(() => this.discovered.delete(name))
    return configuration
  }

  private failed(provider: ProviderConfig, error: unknown): void {
    // Perhaps the provider has other keys or endpoints than those that were read.
    this.discovered.delete(provider.name)
    this.warn(provider, error)
  }

  private warn({ name, issuer }: ProviderConfig, error: unknown): void {
    const { cause } = Object(error) as { cause?: unknown }
    const parameters = cause instanceof URLSearchParams ? cause : null
    // What the provider says may be long. An answer with an error also has the state, which is left out.
    const said =
      parameters?.get('error_description') ?? parameters?.get('error') ?? (cause ? messageOf(cause) : '')
    this.logger.warn(
      { provider: name, issuer, error: messageOf(error), said: said.slice(0, MAX_LOGGED) },
      'an identity provider failed',
    )
  }
}

/** `fetch` for answers of a limited size. */
const fetchBounded: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit)
  if (response.body === null) return response
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  const { status, headers } = response
  return new Response(Buffer.concat(chunks), { status, headers })
}

async function discover({ issuer, clientId, clientSecret }: ProviderConfig): Promise<Configuration> {
  const oidc = await import('openid-client')
  const authenticate: ClientAuth = (server, ...request) => {
    // The default is "client_secret_basic" (OpenID Connect Discovery 1.0, section 3).
    const isBasic = server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true
    const withSecret = isBasic ? oidc.ClientSecretBasic : oidc.ClientSecretPost
    const method = clientSecret === null ? oidc.None() : withSecret(clientSecret)
    method(server, ...request)
  }
  return oidc.discovery(new URL(issuer), clientId, undefined, authenticate, {
    timeout: TIMEOUT_SECONDS,
    [oidc.customFetch]: fetchBounded,
    execute: [
      // ID tokens must be signed with a key of the provider, also if TLS vouches for them.
      oidc.enableNonRepudiationChecks,
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- Marked so that it stands out: only for this machine.
      ...(issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []),
    ],
  })
}

export function mayUse({ accounts }: ProviderConfig, accountId: AccountId): boolean {
  return accounts === null || accounts.includes(accountId)
}

function personOf(
  { issuer, roles, trustsEmails }: ProviderConfig,
  token: Readonly<Record<string, unknown>>,
  info: Readonly<Record<string, unknown>>,
): Person {
  // Both from the same answer: one must not verify the address of the other.
  const { email, email_verified: isVerified } = token.email === undefined ? info : token
  const isVouchedFor = isVerified === true || (trustsEmails && isVerified === undefined)
  const values = roles === null ? [] : [token[roles.claim] ?? info[roles.claim]].flat()
  const held = Object.entries(roles?.byValue ?? {}).flatMap(([value, role]) =>
    values.includes(value) ? role : [],
  )
  return {
    identity: { issuer, hash: hash('sha256', JSON.stringify([issuer, token.sub])) },
    email: typeof email === 'string' && isEmail(email) && isVouchedFor ? email : null,
    role: MAPPED_ROLES.find((role) => held.includes(role)) ?? null,
  }
}
