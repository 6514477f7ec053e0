import { hash } from 'node:crypto'
import { Body, Controller, Param, Post } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { usedByMail } from '#libs/domain/account/quota.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { decide } from '#libs/domain/inbox/decide.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { messageJson } from '#libs/mail/json/message-json.js'
import type { Envelope } from '#libs/mail/message.js'
import { parseHeader } from '#libs/mail/parse.js'
import { packSource, sealMail, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { AccountQuotas, isExcess, type QuotaReservation } from '#libs/ports/read-model/account-quotas.js'
import { InboxCapacity } from '#libs/ports/read-model/inbox-capacity.js'
import { plainAddress } from '#libs/runtime/remote-address.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { inboxesPathOf } from '../http/list-pages.js'
import { invalid, Problem, quotaExceeded } from '../http/problems.js'
import { TakeBody } from '../http/request-bodies.js'
import { keepAnswerUnstored } from '../idempotency/idempotency.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { hasEnded, Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { InjectMessage, readSender } from './inject-requests.dto.js'
import { MessageContent } from './message-content.js'
import { MessageReader } from './message-reader.js'
import { Message } from './message-schemas.js'

const MAX_JSON_BYTES = 2 * 1024 * 1024
/** How much of a source is searched for its From header. */
const HEADER_BYTES = 64 * 1024
/** Longer texts are encoded as base64: quoted-printable would block the event loop for too long. */
const MAX_QUOTED_CHARACTERS = 64 * 1024

/** Injects mail into an inbox without SMTP, under both paths. */
@Controller(['v1/inboxes/:inboxId/messages', 'v1/emails/:inboxId/messages'])
@Tag('Messages')
export class InjectController {
  private readonly capacity = new InboxCapacity()

  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly reader: MessageReader,
    private readonly content: MessageContent,
    private readonly quotas: AccountQuotas,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @TakeBody({ maxJsonBytes: MAX_JSON_BYTES, acceptsMail: true })
  @Describe({
    summary: 'Put a message into an inbox',
    description:
      'Without SMTP: for mail that is already a file or a text. The body is the source, kept byte for byte, or JSON from ' +
      'which one is made. The message is then read, waited for and delivered to webhooks like any other. Faults of the inbox ' +
      'do not apply to it.',
    answer: { description: 'The message.', schema: Message, headers: ['Location'] },
    problems: ['inbox-full', 'quota-exceeded', 'inbox-deleted', 'inbox-expired', 'message-deleted'],
  })
  async injectInboxMessage(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('inboxId') inboxId: string,
    /** The source itself if the body is `message/rfc822`. */
    @Body() body: InjectMessage,
    @Reply() reply: FastifyReply,
  ) {
    const { request } = reply
    const messageId = minting.id('msg')
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const key = await this.reader.keyOf(inbox.id)
    // If this is a repeat of the request, an earlier run may have put the message in.
    const earlier = await this.views.inboxes.message({ inboxId: inbox.id, messageId })
    if (earlier === null) {
      const mail = await this.mailOf(body, inbox, plainAddress(request.ip))
      await this.receive(principal, { inboxId: inbox.id, key, messageId }, mail)
    }
    const message = await this.reader.find(inbox, messageId)
    const { opened } = await this.content.open({ inbox, message }, reply)
    keepAnswerUnstored(request)
    if (earlier !== null) void reply.header('idempotent-replayed', 'true')
    const inboxesPath = inboxesPathOf(request)
    return withLocation(reply, `${inboxesPath}/${inbox.id}/messages`, messageJson(opened, inboxesPath))
  }

  private async mailOf(
    body: InjectMessage | Buffer,
    { address: rcptTo }: ActiveInbox,
    remoteAddress: string,
  ): Promise<{ raw: Buffer; envelope: Envelope }> {
    const trace = { rcptTo, helo: '', remoteAddress, tls: null, injected: true } as const
    if (!Buffer.isBuffer(body)) {
      const raw = await composeMail(body, rcptTo)
      const { maxMessageBytes } = this.instance.settings
      if (raw.length > maxMessageBytes) {
        throw new Problem('body-too-large', { detail: `A mail may have at most ${maxMessageBytes} bytes.` })
      }
      return { raw, envelope: { ...trace, mailFrom: readSender(body.from).address } }
    }
    if (body.length === 0) throw invalid({ detail: 'the mail must not be empty', pointer: '' })
    const unknown = { ...trace, mailFrom: '' }
    const header = body.subarray(0, HEADER_BYTES)
    const { sender } = parseHeader(header, unknown, { code: 'parse-failed', detail: '' })
    return { raw: body, envelope: { ...unknown, mailFrom: sender } }
  }

  /**
   * Resolves once the message is visible. Throws inbox-full, quota-exceeded, or the 410 of an inbox that has ended.
   */
  private async receive(
    principal: Principal,
    { inboxId, key, messageId }: { inboxId: InboxId; key: SecretKey; messageId: MessageId },
    { raw, envelope }: { raw: Buffer; envelope: Envelope },
  ): Promise<void> {
    const source = await packSource(raw)
    const { size } = source
    const { inbox, endOffset } = await this.inboxes.open(principal, inboxId)
    const reservation = this.capacity.reserve({ inbox, endOffset })
    if (reservation === null) {
      const detail = `The inbox ${inboxId} has ${inbox.maxMessages} messages, as many as it may have.`
      return this.requireEarlier(inbox, messageId, new Problem('inbox-full', { detail }))
    }
    let quota: QuotaReservation | null = null
    try {
      const used = usedByMail(size)
      const reserved = await this.quotas.reserve(inbox, used)
      if (isExcess(reserved)) {
        await this.requireEarlier(inbox, messageId, quotaExceeded(reserved, this.instance.now()))
        return
      }
      quota = reserved
      const sealed = sealMail(key, inboxId, messageId, envelope, source)
      const { events, refusal } = decide(
        { inbox, message: null },
        {
          ...{ type: 'ReceiveMessage', inboxId, messageId, duplicateOf: null, fingerprint: null, sealed },
          ...{ size, digest: hash('sha256', sealed, 'hex'), now: this.instance.now() },
        },
      )
      if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
      if (refusal !== null) throw new Error(`${inboxId} refused a message with space for it: ${refusal.code}`)
      const [position] = await this.recorder.record(events, principal)
      if (position === undefined) return
      reservation.fill(position.offset)
      quota.fill(used, position)
    } finally {
      reservation.release()
      quota?.release()
    }
  }

  /** Throws `refusal`, unless an earlier run of the request has put the message in, which the views may not show yet. */
  private async requireEarlier(inbox: ActiveInbox, messageId: MessageId, refusal: Problem): Promise<void> {
    const find = () => this.views.inboxes.message({ inboxId: inbox.id, messageId })
    if ((await this.views.readLatest('inbox-events', find)) === null) throw refusal
  }
}

/** The source of a mail from its validated JSON. */
async function composeMail(mail: InjectMessage, to: string): Promise<Buffer> {
  // Loaded by the first mail, since most processes compose none.
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const { from, subject, text, html, headers = {}, attachments = [] } = mail
  const hasRecipient = Object.keys(headers).some((name) => name.toLowerCase() === 'to')
  const isLong = (text?.length ?? 0) + (html?.length ?? 0) > MAX_QUOTED_CHARACTERS
  const composer = new MailComposer({
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: 'windows',
    from: readSender(from),
    ...(hasRecipient ? {} : { to }),
    subject,
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    ...(isLong && { encoding: 'base64' }),
    headers: Object.entries(headers).map(([key, value]) => ({ key, value })),
    attachments: attachments.map(({ filename, content_type: contentType, content }) => ({
      filename,
      contentType,
      contentDisposition: 'attachment',
      content: Buffer.from(content, 'base64'),
    })),
  })
  return composer.compile().build()
}
