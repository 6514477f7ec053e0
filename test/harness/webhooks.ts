import { call, OtherAnswerError, type Target } from './client.js'

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

/** Registers a webhook under a path, `/v1/webhooks` or an inbox's; fails on any answer but 201. */
export async function registerWebhook(
  target: Target,
  path: string,
  body: object = {},
): Promise<NewWebhookJson> {
  const wanted = { url: 'https://ci.example/mail', ...body }
  const answer = await call<NewWebhookJson>(target, 'POST', path, { body: wanted })
  if (answer.status !== 201) throw new OtherAnswerError('no webhook', answer.status, answer.body)
  return answer.body
}
