import { fingerprintOf, type SecretKey } from '#libs/ports/key-vault/content.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'
import type { Refusal } from './replies.js'

/** How far Message-ID is searched for: senders put it among the first header fields. */
const HEAD_BYTES = 64 * 1024
/** RFC 5322, section 3.6.4, folded or not (section 2.2.3). */
const MESSAGE_ID = /^message-id:((?:.*)(?:\r?\n[ \t].*)*)/im

interface AcceptedCopy {
  inbox: Inbox
  key: SecretKey
  messageId: MessageId
}

/**
 * Records what became of mails for known inboxes. A mail counts for the key that its sender authenticated with, if that
 * shares the inbox's account and environment, else for the key that made the inbox.
 */
export class MailUsage {
  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  accepted(
    { inbox, key, messageId }: AcceptedCopy,
    mail: { senderKey: SenderKey | null; identity: string | null; size: number; acceptMs: number },
  ) {
    const { senderKey, identity, size, acceptMs } = mail
    this.usage.record(
      {
        type: 'MailAccepted',
        ...aboutOf(inbox, senderKey),
        messageId,
        size,
        acceptMs: Math.round(acceptMs * 1_000) / 1_000,
        fingerprint: identity === null ? null : fingerprintOf(key, `message-id:${inbox.id}`, identity),
        acceptedAt: this.now(),
      },
      inbox,
    )
  }

  refused(inbox: Inbox, senderKey: SenderKey | null, { reason, code }: Refusal): void {
    this.usage.record(
      { type: 'MailRefused', ...aboutOf(inbox, senderKey), reason, code, refusedAt: this.now() },
      inbox,
    )
  }
}

function aboutOf(inbox: Inbox, senderKey: SenderKey | null) {
  const { id: inboxId, keyId, labels } = inbox
  return { keyId: keyOfSender(senderKey, inbox) ?? keyId, inboxId, labels }
}

/** What a sender knows a mail by; null if it says nothing. */
export function identityOf(raw: Buffer): string | null {
  const start = raw.toString('latin1', 0, HEAD_BYTES)
  const end = /\r?\n\r?\n/.exec(start)?.index ?? start.length
  const [, value = ''] = MESSAGE_ID.exec(start.slice(0, end)) ?? []
  const identity = value.replaceAll(/\r?\n/g, '').trim()
  return identity === '' ? null : identity
}
