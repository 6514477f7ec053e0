import { unsealMail } from '#libs/ports/key-vault/sealing.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { EventLog, LogReader } from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import type { Envelope } from '#libs/mail/message.js'
import { loggedEvent, type LoggedEvent } from '#libs/ports/read-model/views.js'

type Log = LogReader
type Range = Parameters<EventLog['read']>[0]

export interface ReceivedMail {
  event: MessageReceived
  envelope: Envelope
  raw: Buffer
}

/** The events in a range of a partition, in order. Rejects if one can't be decoded. */
export async function eventsIn(log: Log, range: Range): Promise<LoggedEvent<InboxEvent>[]> {
  const events: LoggedEvent<InboxEvent>[] = []
  for await (const records of log.read(range)) {
    for (const record of records) {
      const result = inboxEventCodec.decode(record)
      if (result.kind !== 'event') throw new Error(`a record of kind ${result.kind}`)
      events.push(loggedEvent(record.offset, result.recorded))
    }
  }
  return events
}

/** The decrypted mails in the ranges, in the order of each partition. */
export async function openedMails(
  log: Log,
  vault: Pick<KeyVault, 'find'>,
  ranges: readonly Range[],
): Promise<ReceivedMail[]> {
  const mails: ReceivedMail[] = []
  for (const range of ranges) {
    for (const { event } of await eventsIn(log, range)) {
      if (event.type !== 'MessageReceived') continue
      const found = await vault.find(event.inboxId)
      if (found.state !== 'known') throw new Error('the key of a mail is not known')
      const { envelope, raw } = await unsealMail(found.key, event.inboxId, event.messageId, event.sealed)
      mails.push({ event, envelope, raw })
    }
  }
  return mails
}
