import { request } from 'undici'
import type { Answer, Target } from './client.js'

/*
 * The requests that the console sends, as a browser sends them.
 */

/** What `POST /console/session` returns. */
export interface TokenJson {
  token: string
  expires_at: string
  environment: string
  environments: string[]
  session: { id: string; expires_at: string }
  account: { id: string; name: string; plan: string }
}

export interface ConsoleRequest {
  body?: object
  /** Replaces those of a browser; null removes one. */
  headers?: Readonly<Record<string, string | null>>
}

/** A request of a page of the console. `cookie` is `<name>=<value>`, null without one. */
export async function askConsole<Body = unknown>(
  { url }: Pick<Target, 'url'>,
  cookie: string | null,
  [method, path]: readonly [method: 'GET' | 'POST' | 'DELETE', path: string],
  { body, headers = {} }: ConsoleRequest = {},
): Promise<Answer<Body>> {
  const ofBrowser = {
    ...(method === 'GET' ? {} : { origin: url }),
    'sec-fetch-site': 'same-origin',
    cookie,
    'content-type': body === undefined ? null : 'application/json',
    ...headers,
  }
  const sent = Object.entries(ofBrowser).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
  const answer = await request(url + path, {
    method,
    headers: Object.fromEntries(sent) as Record<string, string>,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  const received = new Headers()
  for (const [name, values = []] of Object.entries(answer.headers)) {
    for (const value of [values].flat()) received.append(name, value)
  }
  return {
    status: answer.statusCode,
    headers: received,
    body: (text === '' ? null : JSON.parse(text)) as Body,
  }
}

/** A browser that is signed in. */
export interface ConsoleSession {
  /** `<name>=<value>` */
  cookie: string
  id: string
  ask<Body = unknown>(
    request: Parameters<typeof askConsole>[2],
    options?: ConsoleRequest,
  ): Promise<Answer<Body>>
  /** The target with a bearer token of the session. */
  target(environment?: string): Promise<Target>
}

/** Signs in with the secret of a link, or else with the key of the target. Rejects with the answer if it is refused. */
export async function signIn(target: Target, secret = target.apiKey): Promise<ConsoleSession> {
  const answer = await askConsole<TokenJson>(target, null, ['POST', '/console/sign-in'], { body: { secret } })
  if (answer.status !== 200) throw new Error(`not signed in: ${answer.status} ${JSON.stringify(answer.body)}`)
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';')
  const session: ConsoleSession = {
    cookie,
    id: answer.body.session.id,
    ask: (request, options) => askConsole(target, cookie, request, options),
    async target(environment) {
      const body = environment === undefined ? {} : { environment }
      const { body: traded } = await session.ask<TokenJson>(['POST', '/console/session'], { body })
      return { ...target, apiKey: traded.token }
    },
  }
  return session
}

/** The secret in the fragment of a link. */
export function secretIn(link: string): string {
  const [, secret = ''] = link.split('#sign-in=')
  return secret
}
