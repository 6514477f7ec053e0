import type { WebhookRefusal } from '#libs/domain/webhook/decide.js'
import { invalid, notFound, type Problem } from '../http/problems.js'

/** What a client is told of a refusal; `id` is the one that it asked for. */
export function refused(refusal: WebhookRefusal, id: string): Problem {
  switch (refusal.code) {
    case 'unknown-webhook':
      return noWebhook(id)
    case 'unfit-url':
      return invalid({ detail: `url ${refusal.fault}`, pointer: '/url' })
    case 'too-many-webhooks': {
      const { of, most } = refusal
      return invalid({ detail: `an ${of} may have ${most} webhooks: remove one first`, pointer: '' })
    }
    case 'over-grace':
      return invalid({ detail: `grace may be at most ${refusal.mostMs / 86_400_000}d`, pointer: '/grace' })
  }
}

export function noWebhook(id: string): Problem {
  return notFound(`There is no webhook ${id.slice(0, 60)}.`)
}
