import { workerData } from 'piscina'
import { asBuffer } from '#libs/ports/event-log/cloud-event.js'
import { authenticateMail, type Sender } from '#libs/mail/authentication/authenticate.js'
import { MailDns } from '#libs/mail/authentication/mail-dns.js'
import type { Authentication } from '#libs/mail/message.js'

export interface AuthenticateTask {
  raw: Uint8Array
  sender: Sender
  /** For DNS; what has not answered by then counts as a temporary error. */
  withinMs: number
}

export interface AuthenticateData {
  dnsServers: readonly string[] | null
}

const { dnsServers } = workerData as AuthenticateData
const dns = new MailDns(dnsServers)

/** Runs in a thread of its own, for many mails at once: most of their time is DNS's. */
export default function authenticate({ raw, sender, withinMs }: AuthenticateTask): Promise<Authentication> {
  return authenticateMail(asBuffer(raw), sender, dns.forMail(withinMs))
}
