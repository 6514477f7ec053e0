import { join, resolve } from 'node:path'
import { startAnalytics } from '#apps/analytics/analytics.js'
import { startApi } from '#apps/api/api.js'
import { startLifecycle } from '#apps/lifecycle/lifecycle.js'
import { startProjector } from '#apps/projector/projector.js'
import { startSmtp, type SmtpEdge } from '#apps/smtp/smtp-edge.js'
import { startWebhooks } from '#apps/webhooks/webhooks.js'
import { readPlans } from '#libs/runtime/config/plans-file.js'
import { ensureConfiguredKey, makeFirstKey, type FirstKey } from '#libs/engines/first-key.js'
import { onEngine } from '#libs/role/run-role.js'
import type { ProcessContext } from '#libs/runtime/process/run-process.js'

/*
 * Every role in one process, on either engine. The projector comes first, so that the views know what they
 * don't know; those that take something in come last, and are the first to stop.
 */

export interface StandaloneOptions extends ProcessContext {
  /** Shows the first API key, if one is made. */
  announce: (secret: string) => void
}

export interface Standalone extends Welcome {
  /** Takes nothing new in, finishes what is under way, and leaves nothing half written. */
  close(): Promise<void>
}

/** Resolves once every role runs; what had started is closed again where one can't. */
export function startStandalone({ announce, ...process }: StandaloneOptions): Promise<Standalone> {
  return onEngine('standalone', process, async ({ engine, settings, logger, now, registry, running }) => {
    const plans = readPlans(settings.plansFile)
    const projector = await startProjector({ engine, settings, now, logger, registry })
    running.defer(() => projector.close())
    const lifecycle = await startLifecycle({ engine, now, logger, registry })
    running.defer(() => lifecycle.close())
    const webhooks = await startWebhooks({ engine, settings, now, logger, registry })
    running.defer(() => webhooks.close())
    const analytics = await startAnalytics({ engine, logger, registry })
    running.defer(() => analytics.close())

    // Before anything listens: a client that knows the key may use it at once.
    await ensureConfiguredKey({ engine, settings, now, logger })
    let isStarted = false
    const api = await startApi({ engine, settings, plans, now, logger, registry, isStarted: () => isStarted })
    running.defer(() => api.close())
    const tlsFolder = join(resolve(settings.dataDir), 'tls')
    const smtp = await startSmtp({ engine, settings, tlsFolder, logger, registry, now })
    running.defer(() => smtp.drain())
    // Last, so that a new key is shown only by a start that got this far.
    const firstKey = await makeFirstKey({ engine, settings, now, logger, announce })
    isStarted = true
    const { url, port: httpPort } = api
    return { url, httpPort, smtpHost: settings.smtpHost, smtp, firstKey }
  })
}

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
