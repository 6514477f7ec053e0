import type { ComponentChildren } from 'preact'
import type { Message, Schemas } from '#clients/typescript/src/mayfly.js'
import { attachmentName } from '#libs/mail/attachment-name.js'
import { formatBytes, formatDuration, Time } from '../parts/format.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'

/** How a message was received: envelope, authentication, times and digests. */
export function MessageDetails({ message }: { message: Message }) {
  const { envelope, authentication, received_at, date, size, sha256, attachments } = message
  const delayMs = date === null ? null : Date.parse(received_at) - Date.parse(date)
  return (
    <>
      <h3>{text.details.envelope}</h3>
      <dl>
        <Row name="MAIL FROM">{envelope.mail_from === '' ? '<>' : visibleLine(envelope.mail_from)}</Row>
        <Row name="RCPT TO">{visibleLine(envelope.rcpt_to)}</Row>
        <Row name="EHLO">{visibleLine(envelope.helo)}</Row>
        <Row name={text.details.remoteAddress}>{envelope.remote_address}</Row>
        <Row name="TLS">
          {envelope.tls === null ? text.details.noTls : `${envelope.tls.version}, ${envelope.tls.cipher}`}
        </Row>
      </dl>
      <h3>{text.details.authentication}</h3>
      <Authentication results={authentication} />
      <h3>{text.details.times}</h3>
      <dl>
        <Row name={text.details.date}>{date === null ? text.none : <Time value={date} />}</Row>
        <Row name={text.details.received}>
          <Time value={received_at} />
        </Row>
        {delayMs !== null && delayMs >= 0 && <Row name={text.details.delay}>{formatDuration(delayMs)}</Row>}
        <Row name={text.details.size}>{formatBytes(size)}</Row>
        <Row name="SHA-256">{sha256}</Row>
        <Row name={text.details.messageId}>{message.id}</Row>
      </dl>
      {attachments.length > 0 && (
        <>
          <h3>{text.details.attachments}</h3>
          <dl>
            {attachments.map(({ index, filename, content_type, sha256: digest }) => (
              <Row key={index} name={visibleLine(attachmentName(filename, content_type))}>
                {digest}
              </Row>
            ))}
          </dl>
        </>
      )}
    </>
  )
}

function Row({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Authentication({ results: { spf, dkim, dmarc, arc } }: { results: Schemas['Authentication'] }) {
  if (spf === null && dmarc === null && dkim.length === 0) return <p>{text.details.notVerified}</p>
  return (
    <dl>
      {spf !== null && (
        <Row name="SPF">
          <Result result={spf.result} /> {factsOf(spf.domain, spf.detail)}
        </Row>
      )}
      {dkim.map(({ result, domain, selector, algorithm, detail }, index) => (
        <Row name="DKIM" key={index}>
          <Result result={result} /> {factsOf(domain, selector, algorithm, detail)}
        </Row>
      ))}
      {dmarc !== null && (
        <Row name="DMARC">
          <Result result={dmarc.result} /> {factsOf(dmarc.domain, dmarc.policy, dmarc.detail)}
        </Row>
      )}
      {arc !== undefined && (
        <Row name="ARC">
          <Result result={arc.result} /> {factsOf(arc.detail)}
        </Row>
      )}
    </dl>
  )
}

/** The sender has written some of them. */
function factsOf(...facts: readonly (string | null)[]): string {
  return visibleLine(facts.filter((fact) => fact !== null).join(' '))
}

function Result({ result }: { result: string }) {
  const kind = result === 'pass' ? 'good' : /fail|error/.test(result) ? 'bad' : ''
  return <strong class={kind}>{result}</strong>
}
