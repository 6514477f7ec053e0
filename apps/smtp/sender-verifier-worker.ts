import { workerData } from 'piscina'
import { authenticateMail, type Sender } from '#libs/mail/authentication/authenticate.js'
import { MailDns } from '#libs/mail/authentication/mail-dns.js'
import type { Authentication } from '#libs/mail/message.js'
import { asBuffer } from '#libs/ports/event-log/cloud-event.js'

export interface VerificationTask {
  raw: Uint8Array
  sender: Sender
  /** The timeout of DNS. Queries without an answer by then are temporary errors. */
  withinMs: number
}

export interface VerificationData {
  dnsServers: readonly string[] | null
}

const { dnsServers } = workerData as VerificationData
const dns = new MailDns(dnsServers)

/** Runs in a worker thread, for many mails concurrently, because most of the time is spent waiting for DNS. */
export default function verifySender({ raw, sender, withinMs }: VerificationTask): Promise<Authentication> {
  return authenticateMail(asBuffer(raw), sender, dns.forMail(withinMs))
}
