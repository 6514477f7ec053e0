import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { MAPPED_ROLES, type MappedRole } from '#libs/domain/account/member.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import { messageOf } from '#libs/runtime/errors.js'
import { SETTINGS } from './settings-table.js'
import { ConfigurationError } from './settings.js'

/** An identity provider (OpenID Connect) that members may sign in with. */
export interface ProviderConfig {
  /** In URLs. */
  name: string
  /** For people. */
  title: string
  issuer: string
  clientId: string
  /** Null for a public client. */
  clientSecret: string | null
  scope: string
  /** Whether addresses count as verified without the claim `email_verified`. */
  trustsEmails: boolean
  /** The only accounts that it may sign in to; null for all. */
  accounts: readonly AccountId[] | null
  /** The claim with the values that stand for roles; null if roles are only given in Mayfly. */
  roles: { claim: string; byValue: Readonly<Record<string, MappedRole>> } | null
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])$/

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })

const PROVIDER = Type.Object(
  {
    title: Type.Optional(text(60)),
    issuer: text(1_000),
    client_id: text(300),
    client_secret: Type.Optional(text(2_000)),
    scope: Type.Optional(text(1_000)),
    trusts_emails: Type.Optional(Type.Boolean()),
    accounts: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    role_claim: Type.Optional(text(300)),
    roles: Type.Optional(
      Type.Record(Type.String(), Type.Union(MAPPED_ROLES.map((role) => Type.Literal(role)))),
    ),
  },
  { additionalProperties: false },
)
const validator = Compile(PROVIDER)

/** The identity providers in a file; none if `path` is null. Throws ConfigurationError with all errors. */
export function readProviders(path: string | null): ProviderConfig[] {
  if (path === null) return []
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The message of a syntax error quotes the file, which has secrets.
    throw invalid([
      `the file ${path} can't be read as JSON${error instanceof SyntaxError ? '' : `: ${messageOf(error)}`}`,
    ])
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw invalid([`the file ${path} must contain an object with a property for each identity provider`])
  }
  const errors: string[] = []
  const providers = Object.entries(content).flatMap(([name, given]: [string, unknown]) => {
    const found = validator.Check(given) ? errorsOf(given) : schemaErrorsOf(given)
    if (!NAME.test(name)) {
      found.push(
        'is not a valid name: a lower-case letter, then up to 31 lower-case letters, digits and hyphens',
      )
    }
    errors.push(...found.map((error) => `${JSON.stringify(name)} ${error}`))
    return validator.Check(given) ? [providerOf(name, given)] : []
  })
  // An identity is found by its issuer, so one issuer must not have two rules.
  const issuers = providers.map(({ issuer }) => issuer.replace(/\/$/, ''))
  if (new Set(issuers).size < issuers.length) errors.push('two identity providers have the same issuer')
  if (errors.length > 0) throw invalid(errors)
  return providers
}

function schemaErrorsOf(given: unknown): string[] {
  return validator.Errors(given).map(({ instancePath, message }) => `${instancePath || 'it'}: ${message}`)
}

function errorsOf({ issuer, accounts, roles, role_claim: claim }: Static<typeof PROVIDER>): string[] {
  return [
    ...(isIssuer(issuer)
      ? []
      : ['needs "issuer": an https URL without a query, or an http URL of this machine']),
    ...(MANY_TENANTS.test(issuer) ? ['needs "issuer" with your tenant: this one is of all tenants'] : []),
    ...(accounts?.every((id) => isId('acc', id)) === false
      ? ['may have "accounts": ids such as "acc_01jd6axq2ve9r5t1y3n7m4k8c6"']
      : []),
    ...((roles === undefined) === (claim === undefined)
      ? []
      : ['needs both "role_claim" and "roles", or neither']),
    // Otherwise a group of one company would be an administrator of all other accounts it is a member of.
    ...(roles !== undefined && accounts === undefined ? ['needs "accounts" if it has "roles"'] : []),
  ]
}

/** Of Microsoft Entra ID: everybody can have an address there that nobody has verified. */
const MANY_TENANTS = /^https:\/\/login\.microsoftonline\.com\/(common|organizations|consumers)(\/|$)/i

function isIssuer(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || /[\s?#@]|\/\.well-known\//.test(text)) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname))
}

function providerOf(name: string, given: Static<typeof PROVIDER>): ProviderConfig {
  const { title = name, issuer, client_id: clientId, client_secret: clientSecret = null } = given
  const {
    scope = 'openid email',
    trusts_emails: trustsEmails = false,
    accounts,
    roles,
    role_claim: claim,
  } = given
  return {
    ...{ name, title, issuer, clientId, clientSecret, scope, trustsEmails },
    accounts: accounts?.filter((id) => isId('acc', id)) ?? null,
    roles: claim === undefined || roles === undefined ? null : { claim, byValue: roles },
  }
}

function invalid(errors: readonly string[]): ConfigurationError {
  return new ConfigurationError(errors.map((error) => `${SETTINGS.providersFile.variable}: ${error}`))
}
