import { call, create, UnexpectedAnswerError, type RequestOptions, type Target } from './client.js'

export interface WebhookJson {
  id: string
  url: string
  inbox_id: string | null
  events: string[]
  state: 'active' | 'disabled'
  created_at: string
  disabled_reason: 'by-request' | 'gone' | 'failing' | null
}

export interface NewWebhookJson extends WebhookJson {
  secret: string
}

export interface DeliveryJson {
  id: string
  event: string
  message_id: string | null
  domain_id: string | null
  state: 'pending' | 'succeeded' | 'failed' | 'abandoned'
  abandoned_reason: string | null
  next_attempt_at: string | null
  attempts: { time: string; status: number | null; answer: string | null; error: string | null }[]
}

/** Registers a webhook at `/v1/webhooks` or at an inbox's path. */
export function registerWebhook(
  target: Target,
  path: string,
  body: object = {},
  options: Pick<RequestOptions, 'headers'> = {},
): Promise<NewWebhookJson> {
  return create(target, path, { url: 'https://ci.example/mail', ...body }, options)
}

/** The log of a webhook's deliveries, newest first unless the query says otherwise. */
export async function deliveriesOf(target: Target, webhookId: string, query = ''): Promise<DeliveryJson[]> {
  const path = `/v1/webhooks/${webhookId}/deliveries${query}`
  const { status, body } = await call<DeliveryJson[]>(target, 'GET', path)
  if (status !== 200) throw new UnexpectedAnswerError(path, status, body)
  return body
}
