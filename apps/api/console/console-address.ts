import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../http/problems.js'

/*
 * The address of the console, the cookie of its session, and the origin that may send the cookie. If no public URL is set,
 * the console is served at the address that the API listens at, and at loopback names on any port, since a container's
 * port may be published at another one.
 */

const LOOPBACK = /^(localhost|[a-z0-9-]+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
/**
 * The cookies of the console (RFC 6265bis). That of an attempt to sign in comes with the request that the identity provider sends
 * the browser to make, so it can't be `Strict`; the prefix says that no other host has set it.
 */
const COOKIES = {
  /** Account id, a full stop and 256 random bits. */
  session: { name: 'mayfly-session', prefix: '__Secure-', path: '/console', site: 'Strict', maxLength: 100 },
  attempt: { name: 'mayfly-sign-in', prefix: '__Host-', path: '/', site: 'Lax', maxLength: 1_000 },
} as const
type CookieKind = keyof typeof COOKIES

export class ConsoleAddress {
  constructor(
    /** MAYFLY_PUBLIC_URL, or else the address that the API listens at. */
    private readonly url: () => string,
    private readonly hasPublicUrl: boolean,
  ) {}

  /** The page that signs in with a link. Browsers don't send the part after `#`, so the secret is in no log. */
  linkWith(secret: string): string {
    return `${this.url()}/console#sign-in=${secret}`
  }

  /** The origin of the console at the host that a request names. Throws untrusted-origin if it is not served there. */
  requireOrigin({ headers }: FastifyRequest): string {
    const origin = this.originOf(headers.host ?? '')
    if (origin !== null) return origin
    throw untrusted('The console is not served at the host that the request names.')
  }

  /** The origin of the console at a host, as the header `Host` names it; null if it is not served there. */
  originOf(host: string): string | null {
    const { protocol, origin } = new URL(this.url())
    const named = URL.parse(`${protocol}//${host}`)
    if (named === null) return null
    const isLoopback = !this.hasPublicUrl && LOOPBACK.test(named.hostname)
    return named.origin === origin || isLoopback ? named.origin : null
  }

  /**
   * Throws untrusted-origin if the request names another host than that of the console, or a page of another origin has
   * made it. Older browsers don't send Sec-Fetch-Site, and of a name that resolves to this machine only `Host` is wrong.
   */
  requireOwnPage(request: FastifyRequest, { mayLackOrigin }: { mayLackOrigin: boolean }): void {
    const own = this.requireOrigin(request)
    const { origin, 'sec-fetch-site': site } = request.headers
    const isOwn = origin === undefined ? mayLackOrigin : origin === own
    if (!isOwn) throw untrusted(`The Origin of the request must be ${own}.`)
    if (site !== undefined && site !== 'same-origin') {
      throw untrusted('A page of another origin has made the request.')
    }
  }

  /** The value of a cookie in a request: for a session, its secret. Null without one. */
  cookieOf({ headers }: FastifyRequest, kind: CookieKind = 'session'): string | null {
    const cookies = (headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
    const name = `${this.cookieName(kind)}=`
    const value = cookies.find((cookie) => cookie.startsWith(name))?.slice(name.length) ?? ''
    return value === '' || value.length > COOKIES[kind].maxLength ? null : value
  }

  /** The value of `Set-Cookie`. Removes the cookie if the time is 0. */
  setCookie(value: string, maxAgeMs: number, kind: CookieKind = 'session'): string {
    const { path, site } = COOKIES[kind]
    const attributes = `Path=${path}; Max-Age=${Math.floor(maxAgeMs / 1_000)}; HttpOnly; SameSite=${site}`
    return `${this.cookieName(kind)}=${value}; ${attributes}${this.isOnTls ? '; Secure' : ''}`
  }

  private cookieName(kind: CookieKind): string {
    const { prefix, name } = COOKIES[kind]
    return this.isOnTls ? prefix + name : name
  }

  private get isOnTls(): boolean {
    return this.url().startsWith('https:')
  }
}

/**
 * Refuses requests of other sites to handlers that read a cookie. `SameSite=Strict` alone would let in pages of the same
 * site at another port or subdomain, and pages of a domain that resolves to this machine (DNS rebinding).
 */
@Injectable()
export class SameOriginGuard implements CanActivate {
  constructor(private readonly address: ConsoleAddress) {}

  /** Throws untrusted-origin. */
  canActivate(context: ExecutionContext): true {
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    // Browsers leave out Origin only in a GET of the same origin, or one whose answer the page can't read.
    const { method } = request
    this.address.requireOwnPage(request, { mayLackOrigin: method === 'GET' || method === 'HEAD' })
    return true
  }
}

function untrusted(detail: string): Problem {
  return new Problem('untrusted-origin', { detail })
}
