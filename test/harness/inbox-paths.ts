/** Every path of an inbox that is answered 410 after its end, except a repeated DELETE. */
export function pathsOf(inboxId: string, messageId: string): [method: string, path: string][] {
  const message = `/v1/inboxes/${inboxId}/messages/${messageId}`
  return [
    ['GET', `/v1/inboxes/${inboxId}`],
    ['GET', `/v1/inboxes/${inboxId}/messages`],
    ['GET', `/v1/inboxes/${inboxId}/messages?order=desc&subject=x`],
    ['GET', `/v1/inboxes/${inboxId}/messages/wait?timeout=0`],
    ['GET', message],
    ['GET', `${message}?raw=false`],
    ['GET', `${message}/raw`],
    ['GET', `${message}/attachments/0`],
    ['DELETE', message],
    ['GET', `/v1/inboxes/${inboxId}/webhooks`],
  ]
}
