import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Provider from 'oidc-provider'

/*
 * Identity providers on loopback: oidc-provider, which is certified for OpenID Connect, and a hostile one.
 */

const CLIENT = { client_id: 'mayfly', client_secret: 'a-secret-of-the-client' }

// It recommends settings for production.
for (const level of ['info', 'warn'] as const) {
  const { [level]: write } = console
  console[level] = (...values: unknown[]) => {
    if (!String(values[0]).startsWith('oidc-provider ')) write(...values)
  }
}

/** What a provider says about somebody. */
export interface Claims {
  email?: string
  email_verified?: boolean
  groups?: string[]
}

interface ListeningProvider {
  issuer: string
  /** Its part of the file of MAYFLY_IDENTITY_PROVIDERS. */
  settings: { issuer: string; client_id: string; client_secret: string }
  dispose(): void
}

export interface IdentityProvider extends ListeningProvider {
  /** By login name; any password is right. */
  people: Map<string, Claims>
  /** Accepts a Mayfly, which has the provider under that name. */
  accept(mayflyUrl: string, name: string): void
  /** The provider has other keys from then on, and nobody is signed in. */
  restart(): void
  /** Signs in as a browser does. Resolves with the URL that the provider sends it back to. */
  authorize(url: string, login: string): Promise<string>
}

/** Writes the file of MAYFLY_IDENTITY_PROVIDERS. Resolves with the setting. */
export async function providersFile(providers: object): Promise<{ MAYFLY_IDENTITY_PROVIDERS: string }> {
  const path = join(await mkdtemp(join(tmpdir(), 'mayfly-providers-')), 'providers.json')
  await writeFile(path, JSON.stringify(providers))
  return { MAYFLY_IDENTITY_PROVIDERS: path }
}

async function listen(handler: () => RequestListener): Promise<ListeningProvider> {
  const server = createServer((request, response) => handler()(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const dispose = () => {
    server.close()
    server.closeAllConnections()
  }
  return { issuer, settings: { issuer, ...CLIENT }, dispose }
}

/** It has its own pages to sign in and to consent. Browsers keep its session until they sign out. */
export async function startIdentityProvider(): Promise<IdentityProvider> {
  const people = new Map<string, Claims>()
  let handler: RequestListener = (_, response) => response.writeHead(503).end()
  let redirectUri = ''
  let home = ''
  const server = await listen(() => handler)
  const restart = () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const provider = new Provider(server.issuer, {
      clients: [{ ...CLIENT, redirect_uris: [redirectUri], post_logout_redirect_uris: [home] }],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig' }] },
      cookies: { keys: [randomUUID()] },
      claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
      findAccount: (_, login) => ({
        accountId: login,
        claims: () => ({ sub: login, ...people.get(login) }),
      }),
    })
    const answer = provider.callback()
    handler = (request, response) => void answer(request, response)
  }
  return {
    ...server,
    people,
    restart,
    accept(mayflyUrl, name) {
      redirectUri = `${mayflyUrl}/console/sign-in/${name}/callback`
      home = `${mayflyUrl}/console`
      restart()
    },
    async authorize(url, login) {
      const cookies = new Map<string, string>()
      let at = url
      for (let step = 0; step < 20; step++) {
        if (at.startsWith(redirectUri)) return at
        const ask = async (target: string, body?: URLSearchParams) => {
          const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
          const method = body === undefined ? {} : { method: 'POST', body }
          const answer = await fetch(target, { redirect: 'manual', headers: { cookie }, ...method })
          for (const set of answer.headers.getSetCookie()) {
            const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
            cookies.set(name, value)
          }
          return answer
        }
        let answer = await ask(at)
        if (answer.status === 200) {
          const html = await answer.text()
          const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(html) ?? []
          const [, action = ''] = /action="([^"]+)"/.exec(html) ?? []
          answer = await ask(new URL(action, at).href, new URLSearchParams({ prompt, login, password: 'x' }))
        }
        const location = answer.headers.get('location')
        if (location === null) throw new Error(`${answer.status} from ${at}: ${await answer.text()}`)
        at = new URL(location, at).href
      }
      throw new Error(`redirected too often, last to ${at}`)
    },
  }
}

/** What is wrong with an answer of the hostile provider. */
export interface Hostility {
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  /** Signs with a key that the provider has not published. */
  hasForeignKey?: boolean
  isUnsigned?: boolean
  status?: number
}

export interface HostileProvider extends ListeningProvider {
  /** Of the next answers. */
  hostility: Hostility
  /** What a browser would be sent back with, and the claims of the ID token by default. */
  answerTo(url: string, claims: Record<string, unknown>): URLSearchParams
}

/** A provider whose ID tokens have the claims and the signature that a test wants. */
export async function startHostileProvider(): Promise<HostileProvider> {
  const own = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const foreign = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  let expected: Record<string, unknown> = {}
  const hostile = { hostility: {} as Hostility }
  const server = await listen(() => (request, response) => {
    const { issuer } = server
    const send = (body: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.url === '/.well-known/openid-configuration') {
      return send({
        ...{ issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/jwks`, authorization_response_iss_parameter_supported: true },
      })
    }
    if (request.url === '/jwks') {
      return send({
        keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig', alg: 'RS256' }],
      })
    }
    const { claims, header, hasForeignKey = false, isUnsigned = false, status = 200 } = hostile.hostility
    const now = Math.floor(Date.now() / 1_000)
    const payload = { iss: issuer, aud: CLIENT.client_id, iat: now, exp: now + 60, ...expected, ...claims }
    const key = hasForeignKey ? foreign.privateKey : own.privateKey
    const idToken = tokenOf({ alg: 'RS256', kid: 'own', ...header }, payload, isUnsigned ? null : key)
    return send({ access_token: 'a-token', token_type: 'Bearer', id_token: idToken }, status)
  })
  return Object.assign(hostile, server, {
    answerTo(url: string, claims: Record<string, unknown>) {
      const { searchParams } = new URL(url)
      expected = { nonce: searchParams.get('nonce'), ...claims }
      return new URLSearchParams({
        code: 'a-code',
        state: searchParams.get('state') ?? '',
        iss: server.issuer,
      })
    },
  })
}

function tokenOf(header: object, payload: object, key: KeyObject | null): string {
  const text = [header, payload]
    .map((each) => Buffer.from(JSON.stringify(each)).toString('base64url'))
    .join('.')
  return `${text}.${key === null ? '' : sign('sha256', Buffer.from(text), key).toString('base64url')}`
}
