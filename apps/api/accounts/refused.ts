import type { Refusal } from '#libs/domain/account/decide.js'
import { invalid, notFound, Problem } from '../http/problems.js'

/** What a client is told of a refusal; `id` is the one that it asked for. */
export function refused(refusal: Refusal, id: string): Problem {
  switch (refusal.code) {
    case 'unknown-account':
      return notFound(`There is no account ${id.slice(0, 60)}.`)
    case 'unknown-key':
      return notFound(`There is no key ${id.slice(0, 60)}.`)
    case 'limits-not-per-account':
      return invalid({
        detail: `the plan ${refusal.plan} has the same limits for every account`,
        pointer: '/limits',
      })
    case 'plan-lacks-api-access':
      return new Problem('plan-lacks-api-access', { detail: `The plan ${refusal.plan} has no API access.` })
    case 'over-rate-limit':
      return invalid({
        detail: `rate_limit may be at most ${refusal.requestsPerMinute}, the account's requests per minute`,
        pointer: '/rate_limit',
      })
    case 'too-many-keys':
      return invalid({
        detail: `an account may have ${refusal.most} keys that are not revoked: revoke one first`,
        pointer: '',
      })
    case 'key-revoked':
      return invalid({
        detail: `the key was revoked at ${refusal.revokedAt.toISOString()}: issue another one`,
        parameter: 'id',
      })
    case 'over-grace':
      return invalid({ detail: `grace may be at most ${refusal.mostMs / 86_400_000}d`, pointer: '/grace' })
  }
}
