import type { FirstKey } from '#apps/api/access/bootstrap.js'

export interface Welcome {
  url: string
  httpPort: number
  smtpHost: string
  smtpPort: number
  firstKey: FirstKey
}

/** What a terminal shows once Mayfly listens: where it is, and a session to paste. */
export function welcomeText({ url, smtpHost, smtpPort, firstKey }: Welcome): string {
  return `
Mayfly is listening.

  HTTP API   ${url}
  SMTP       ${smtpHost}:${smtpPort}
${shown(firstKey)}
Try it: make an inbox, send it a mail, wait for it.

  export MAYFLY_KEY=${inSession(firstKey)}
  inbox=$(curl -s -X POST ${url}/v1/inboxes -H "Authorization: Bearer $MAYFLY_KEY")
  id=$(printf %s "$inbox" | sed -E 's/.*"id":"([^"]+)".*/\\1/')
  address=$(printf %s "$inbox" | sed -E 's/.*"address":"([^"]+)".*/\\1/')
  printf 'From: App <app@example.com>\\r\\nTo: %s\\r\\nSubject: Your code is 493201\\r\\n\\r\\nYour code is 493201.\\r\\n' "$address" |
    curl -s smtp://${smtpHost}:${smtpPort} --mail-from app@example.com --mail-rcpt "$address" -T -
  curl -s ${url}/v1/inboxes/$id/messages/wait -H "Authorization: Bearer $MAYFLY_KEY"

`
}

function shown(firstKey: FirstKey): string {
  return typeof firstKey === 'string'
    ? ''
    : `\n  Your first API key, shown this once:\n\n    ${firstKey.made}\n`
}

function inSession(firstKey: FirstKey): string {
  if (firstKey === 'configured') return '"$MAYFLY_BOOTSTRAP_API_KEY"'
  return firstKey === 'made-before' ? "'<the key that was shown at the first start>'" : `'${firstKey.made}'`
}
