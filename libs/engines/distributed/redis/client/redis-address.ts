import { RedisSetupError } from './setup-error.js'

/** What an address of a node says. */
export interface RedisAddress {
  host: string
  port: number
  db: number
  username: string | undefined
  password: string | undefined
  /** Whether over TLS. */
  isSecured: boolean
}

/** Throws RedisSetupError where it says nothing of use. */
export function addressIn(text: string): RedisAddress {
  const url = URL.parse(text)
  // What can't be read may have its password anywhere: nothing of it is shown.
  if (url === null) throw new RedisSetupError('REDIS_URL is not redis://user:password@host:port/database')
  const { protocol, hostname, port, username, password, pathname } = url
  if (!/^(\/\d*)?$/.test(pathname)) throw new RedisSetupError('the database in REDIS_URL is not a number')
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 6379 : Number(port),
    db: Number(pathname.slice(1)),
    username: decoded(username),
    password: decoded(password),
    isSecured: protocol === 'rediss:',
  }
}

function decoded(part: string): string | undefined {
  try {
    return part === '' ? undefined : decodeURIComponent(part)
  } catch (cause) {
    throw new RedisSetupError('REDIS_URL has a user or password with a % that must be written %25', { cause })
  }
}

/** An address as it may be shown: without user and password. */
export function withoutSecrets(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'an address that is none' : `${url.protocol}//${url.host}`
}
