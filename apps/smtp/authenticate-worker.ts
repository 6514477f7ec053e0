import { workerData } from 'piscina'
import { authenticateMail, type Sender } from '#libs/mail/authentication/authenticate.js'
import { MailDns } from '#libs/mail/authentication/mail-dns.js'
import type { Authentication } from '#libs/mail/message.js'
import { asBuffer } from '#libs/ports/event-log/cloud-event.js'

export interface AuthenticateTask {
  raw: Uint8Array
  sender: Sender
  /** The timeout of DNS. Queries without an answer by then are temporary errors. */
  withinMs: number
}

export interface AuthenticateData {
  dnsServers: readonly string[] | null
}

const { dnsServers } = workerData as AuthenticateData
const dns = new MailDns(dnsServers)

/** Runs in a worker thread, for many mails concurrently, because most of the time is spent waiting for DNS. */
export default function authenticate({ raw, sender, withinMs }: AuthenticateTask): Promise<Authentication> {
  return authenticateMail(asBuffer(raw), sender, dns.forMail(withinMs))
}
