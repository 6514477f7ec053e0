import type { SmtpEdge } from '#apps/smtp/smtp-edge.js'
import type { FirstKey } from '#libs/engines/first-key.js'

export interface Welcome {
  url: string
  httpPort: number
  smtpHost: string
  smtp: Omit<SmtpEdge, 'drain'>
  firstKey: FirstKey
}

/** What a terminal shows once Mayfly listens: where it is, and a session to paste. */
export function welcomeText({ url, smtpHost, smtp, firstKey }: Welcome): string {
  const host = smtpHost.includes(':') ? `[${smtpHost}]` : smtpHost
  return `
Mayfly is listening.

  HTTP API   ${url}
  SMTP       ${host}:${smtp.port}
${smtp.tlsPort === null ? '' : `  SMTPS      ${host}:${smtp.tlsPort}\n`}${
    smtp.caFile === null ? '' : `  CA file    ${smtp.caFile}  (trust it in the client that sends)\n`
  }${keyNotice(firstKey)}
Try it: make an inbox, send it a mail, wait for it.

  export MAYFLY_KEY=${keyForSession(firstKey)}
  inbox=$(curl -s -X POST ${url}/v1/inboxes -H "Authorization: Bearer $MAYFLY_KEY")
  id=$(printf %s "$inbox" | sed -E 's/.*"id":"([^"]+)".*/\\1/')
  address=$(printf %s "$inbox" | sed -E 's/.*"address":"([^"]+)".*/\\1/')
  printf 'From: App <app@example.com>\\r\\nTo: %s\\r\\nSubject: Your code is 493201\\r\\n\\r\\nYour code is 493201.\\r\\n' "$address" |
    curl -s smtp://${host}:${smtp.port} --mail-from app@example.com --mail-rcpt "$address" -T -
  curl -s ${url}/v1/inboxes/$id/messages/wait -H "Authorization: Bearer $MAYFLY_KEY"

`
}

function keyNotice(firstKey: FirstKey): string {
  if (firstKey === 'configured') return ''
  return firstKey === 'made-before'
    ? '\n  Lost the API key? Stop Mayfly and run `npx mayfly key recover`.\n'
    : `\n  Your first API key, shown only now:\n\n    ${firstKey.made}\n`
}

function keyForSession(firstKey: FirstKey): string {
  if (firstKey === 'configured') return '"$MAYFLY_BOOTSTRAP_API_KEY"'
  return firstKey === 'made-before' ? "'<the API key that the first start printed>'" : `'${firstKey.made}'`
}
