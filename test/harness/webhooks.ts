import type { Schemas } from '#clients/typescript/src/options.js'
import { call, create, UnexpectedAnswerError, type RequestOptions, type Target } from './client.js'

export type WebhookJson = Schemas['Webhook']
export type NewWebhookJson = Schemas['WebhookWithSecret']
export type DeliveryJson = Schemas['Delivery']

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
