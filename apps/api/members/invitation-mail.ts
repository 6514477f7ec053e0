import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Throttle } from '../access/request-limits.js'
import type { OpenMember } from './member-schemas.js'

/** Of one account, so that nobody can use the relay to flood others. */
const MAILS: RatePolicy = { name: 'invitation-mails', quota: 100, windowSeconds: 3_600 }
const TIMEOUT_MS = 5_000

/** Sends the links of invitations, if MAYFLY_MAIL_RELAY is set. */
export class InvitationMail {
  constructor(
    private readonly settings: Pick<Settings, 'mailRelay' | 'mailFrom' | 'mailDomain'>,
    private readonly throttle: Throttle,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Resolves with whether the relay has accepted the mail. Never rejects: the answer of the API has the link too. */
  async send(
    { id, name }: { id: AccountId; name: string | null },
    { email, role, expiresAt }: OpenMember,
    url: string,
  ): Promise<boolean> {
    const { mailRelay, mailFrom, mailDomain } = this.settings
    if (mailRelay === null || email === null || name === null) return false
    try {
      const counter = `invitation-mails:${id}`
      const verdict = await this.throttle.count((limits) => limits.consume(counter, [MAILS]))
      if (verdict?.isAllowed === false) return false
      const { createTransport } = await import('nodemailer')
      const timeouts = {
        connectionTimeout: TIMEOUT_MS,
        greetingTimeout: TIMEOUT_MS,
        socketTimeout: TIMEOUT_MS,
      }
      const relay = createTransport({ url: mailRelay, ...timeouts })
      await relay.sendMail({
        from: mailFrom ?? `no-reply@${mailDomain}`,
        to: email,
        subject: `Invitation to ${name} on Mayfly`,
        text: `You are invited to the account ${name} on Mayfly as ${role}. Open this link to sign in:\n\n${url}\n\nIt works once, until ${expiresAt.toUTCString()}.\n`,
      })
      return true
    } catch (error) {
      this.onError(error)
      return false
    }
  }
}
